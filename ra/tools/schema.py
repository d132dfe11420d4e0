"""Describe a struct to a model as a small JSON schema: types, descriptions, what is required."""

import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from ra.core.value import JsonObject

_SIMPLE: dict[Any, JsonObject] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Any: {},
}


def schema_of(struct: type[msgspec.Struct]) -> JsonObject:
    hints = get_type_hints(struct, include_extras=True)
    # By hand and not with msgspec.json.schema, whose $defs, titles and defaults cost tokens and tell a model nothing.
    names = dict(zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True))
    optional = len(struct.__struct_fields__) - len(struct.__struct_defaults__)
    required = [
        names[field]
        for place, field in enumerate(struct.__struct_fields__)
        if place < optional or struct.__struct_defaults__[place - optional] is msgspec.NODEFAULT
    ]
    schema: JsonObject = {"type": "object", "properties": {names[f]: _of(hints[f]) for f in struct.__struct_fields__}}
    return {**schema, "required": required} if required else schema


def _of(hint: Any) -> JsonObject:
    if hint in _SIMPLE:
        return dict(_SIMPLE[hint])
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        words = [meta.description for meta in inner[1:] if isinstance(meta, msgspec.Meta) and meta.description]
        return {**_of(inner[0]), **({"description": words[0]} if words else {})}
    if origin is Literal:
        return (
            {"type": "string", "enum": list(inner)} if all(isinstance(v, str) for v in inner) else {"enum": list(inner)}
        )
    if origin in (Union, types.UnionType):
        # An argument that may be left out needs no null: leaving it out is the null.
        options = [_of(option) for option in inner if option not in (type(None), msgspec.UnsetType)]
        return options[0] if len(options) == 1 else {"anyOf": options}
    if origin in (list, tuple, set, frozenset) or hint in (list, tuple, set, frozenset):
        items = [option for option in inner if option is not Ellipsis]
        return {"type": "array", **({"items": _of(items[0])} if items else {})}
    if origin is dict or hint is dict:
        return {"type": "object"}
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return schema_of(hint)
    raise TypeError(f"no JSON schema for {hint!r}; use str, int, float, bool, list, dict, Literal or a Struct")
