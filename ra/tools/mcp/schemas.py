"""Fits the schemas of a server's tools to what every provider accepts: one odd tool must not fail a whole request."""

import re
from typing import Any

from ra.core.value import JsonObject

# With one of these at the root of a schema, Anthropic and OpenAI reject the whole request with 400.
_COMBINED = ("allOf", "anyOf", "oneOf")
_NOT_AT_THE_ROOT = (
    *_COMBINED,
    "not",
    "if",
    "then",
    "else",
    "enum",
    "const",
    "required",
    "$ref",
    "$schema",
    "$id",
    "id",
)
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_FORMS: dict[str, type] = {"properties": dict, "required": list}


def readable(tools: Any) -> Any:
    """The tools of a listing, each with a schema: the SDK rejects all of them if one has none.

    If a schema is invalid, the arguments may be anything.
    """
    if not isinstance(tools, list):
        return tools
    usable = [tool for tool in tools if isinstance(tool, dict) and isinstance(tool.get("name"), str)]
    for tool in usable:
        schema = tool.get("inputSchema")
        parts = schema if isinstance(schema, dict) and schema.get("type", "object") == "object" else {}
        well_formed = {key: part for key, part in parts.items() if isinstance(part, _FORMS.get(key, object))}
        tool["inputSchema"] = {**well_formed, "type": "object"}
    return usable


def fitted(schema: JsonObject) -> JsonObject | None:
    """The schema as a plain object of named arguments; None if a required argument has an illegal name.

    Alternatives at the root contribute all their names, none of them required: the server checks what it gets.
    """
    properties: JsonObject = dict(schema.get("properties", {}))
    stated: list[Any] = list(schema.get("required", ()))
    for word, branches in (("$ref", [schema]), *((word, schema.get(word)) for word in _COMBINED)):
        for branch in branches if isinstance(branches, list) else ():
            part = _resolved(branch, schema)
            properties = {**part.get("properties", {}), **properties}
            stated += part.get("required", ()) if word in ("allOf", "$ref") else ()
    required = [name for name in stated if isinstance(name, str) and name in properties]
    if not all(map(_PROPERTY.fullmatch, required)):
        return None
    legal = {name: part for name, part in properties.items() if _PROPERTY.fullmatch(name)}
    rest = {key: part for key, part in schema.items() if key not in _NOT_AT_THE_ROOT}
    needed = {"required": list(dict.fromkeys(required))} if required else {}
    plain: JsonObject = _local({**rest, "type": "object", "properties": legal, **needed})
    return plain


def _resolved(branch: Any, schema: JsonObject) -> JsonObject:
    """An alternative as an object, following one reference, with `properties` and `required` of the right types."""
    if isinstance(branch, dict) and isinstance(branch.get("$ref"), str):
        place, _, name = branch["$ref"].removeprefix("#/").partition("/")
        definitions = schema.get(place)
        branch = definitions.get(name) if isinstance(definitions, dict) else None
    if not isinstance(branch, dict):
        return {}
    return {key: part for key, part in branch.items() if isinstance(part, _FORMS.get(key, object))}


def _local(part: Any) -> Any:
    """The schema without references to other documents, which nobody fetches: such parts accept anything."""
    if isinstance(part, list):
        return [_local(inner) for inner in part]
    if not isinstance(part, dict):
        return part
    if isinstance(part.get("$ref"), str) and not part["$ref"].startswith("#"):
        return {key: inner for key, inner in part.items() if key in ("description", "title")}
    return {key: _local(inner) for key, inner in part.items()}
