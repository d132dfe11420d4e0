"""Fits a schema to a provider's structured output; constraints that do not fit are checked afterwards."""

import re
from collections.abc import Mapping
from typing import Any

from ra.core.value import JsonObject
from ra.providers.settings import ProviderName

_KEPT = ("type", "enum", "const", "description", "title", "$ref")
_LOOSE = (
    "patternProperties",
    "oneOf",
    "allOf",
    "not",
    "if",
    "dependentSchemas",
    "prefixItems",
    "unevaluatedProperties",
)
"""Keywords that a strict schema cannot express; a schema with one of them goes into the prompt instead."""

_CLAUDE = re.compile(r"claude-(?:opus|sonnet|haiku)-(\d+)(?:-(\d{1,2}))?(?:-|$)")


def native(provider: ProviderName, model: str, schema: JsonObject, *, has_tools: bool) -> JsonObject:
    """The schema for this model's structured output; empty if the model has none or does not support the schema."""
    strict = tightened(schema)
    if strict is None or strict.get("type") != "object":
        return {}
    match provider:
        case "openai" | "openai-chat" | "local":
            return strict
        case "google":  # with tools, Gemini refuses a response type
            return {} if has_tools else strict
        case "anthropic":
            return strict if _is_new_claude(model) else {}
        case _:
            return {}


def tightened(schema: JsonObject) -> JsonObject | None:
    """A narrower schema with closed objects and only required properties; None if it would lose too much.

    A value that fits it fits the keywords that it keeps; lengths, patterns and ranges are checked later.
    """
    definitions = schema.get("$defs", schema.get("definitions", {}))
    body = _tightened(schema)
    if body is None or not isinstance(definitions, Mapping):
        return None
    parts = {name: _tightened(part) for name, part in definitions.items()}
    if any(part is None for part in parts.values()):
        return None
    return body | ({"$defs": parts} if parts else {})


def _tightened(schema: Any) -> JsonObject | None:
    if not isinstance(schema, Mapping) or any(word in schema for word in _LOOSE):
        return None
    tightened: JsonObject = {word: schema[word] for word in _KEPT if word in schema}
    if isinstance(tightened.get("$ref"), str):
        tightened["$ref"] = tightened["$ref"].replace("#/definitions/", "#/$defs/")
    if "anyOf" in schema:
        options = [_tightened(option) for option in schema["anyOf"]]
        if None in options:
            return None
        tightened["anyOf"] = options
    if "items" in schema:
        tightened["items"] = _tightened(schema["items"])
        if tightened["items"] is None:
            return None
    if schema.get("type") != "object" and "properties" not in schema:
        return tightened if tightened else None
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties or schema.get("additionalProperties") not in (None, False):
        return None
    inner = {name: _tightened(part) for name, part in properties.items()}
    if any(part is None for part in inner.values()):
        return None
    return tightened | {"type": "object", "properties": inner, "required": list(inner), "additionalProperties": False}


def _is_new_claude(model: str) -> bool:
    """Whether this is Claude 4.5 or later, or Opus 4.1."""
    match = _CLAUDE.search(model)
    if match is None:
        return False
    version = (int(match[1]), int(match[2] or 0))
    return version >= (4, 5) or (version == (4, 1) and "opus" in model)
