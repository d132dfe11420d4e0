"""The types of the page's JSON for `tsc`, generated from the values that the server sends."""

import types
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from ra.web import values

_NAMES = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}


def declarations() -> str:
    structs = [each for each in vars(values).values() if isinstance(each, type) and issubclass(each, values.Shown)]
    parts = ["// Generated from ra/web/values.py: python -m tests.regenerate\n"]
    for struct in structs:
        if struct is not values.Shown:
            fields = [f"  {field.encode_name}: {_type(field.type)};" for field in msgspec.structs.fields(struct)]
            parts.append("\n".join([f"export interface {struct.__name__} {{", *fields, "}\n"]))
    return "\n".join(parts)


def _type(annotation: Any) -> str:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is list:
        inner = _type(args[0])
        return f"({inner})[]" if "|" in inner else f"{inner}[]"
    if origin is dict:
        return f"Record<{_type(args[0])}, {_type(args[1])}>"
    if origin is Literal:
        return " | ".join(f'"{value}"' for value in args)
    if origin in (Union, types.UnionType):
        return " | ".join(map(_type, args))
    return _NAMES.get(annotation) or annotation.__name__
