"""Types of a program as the form of an answer: structs, dataclasses, pydantic models, and plain JSON schemas."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ra.core.errors import UsageError
from ra.core.value import JsonObject
from ra.session.structured import SchemaFormat


class TypedFormat:
    """An answer that a type can be made from. Raises UsageError for a type that JSON cannot become."""

    def __init__(self, output_type: Any) -> None:
        self._type = output_type
        # pydantic is not imported for this: a model says by itself what it needs.
        self._validate = getattr(output_type, "model_validate_json", None)
        try:
            if self._validate is not None:
                self.schema: JsonObject = output_type.model_json_schema()
            else:
                self.schema = _rooted(msgspec.json.schema(output_type))
                msgspec.json.Decoder(output_type)
        except TypeError as error:
            raise UsageError(
                f"output_type: no answer can become {output_type!r} ({error}). Use a msgspec Struct, a dataclass, a "
                "TypedDict, a pydantic model, list[…] of one, or a JSON schema."
            ) from error

    def problem(self, text: str) -> str:
        try:
            self.value(text)
        except (ValueError, RecursionError) as error:  # msgspec's and pydantic's errors are ValueErrors
            return " ".join(str(error).split())[:1000] or type(error).__name__
        return ""

    def value(self, text: str) -> Any:
        """Raises ValueError."""
        return self._validate(text) if self._validate else msgspec.json.decode(text, type=self._type)


class PlainFormat(SchemaFormat):
    """An answer that fits a JSON schema, as dicts and lists."""

    def value(self, text: str) -> Any:
        return msgspec.json.decode(text)


def format_of(output_type: Any) -> TypedFormat | PlainFormat | None:
    """None for text, which has no form."""
    if output_type is None or output_type is str:
        return None
    return PlainFormat(dict(output_type)) if isinstance(output_type, Mapping) else TypedFormat(output_type)


def _rooted(schema: JsonObject) -> JsonObject:
    """The schema with the type itself at its root: providers want an object there, and no reference to one."""
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    definitions: JsonObject = schema.get("$defs", {})
    if name not in definitions:
        return schema
    body: JsonObject = dict(definitions[name])
    if f'"#/$defs/{name}"' in msgspec.json.encode(definitions).decode():  # it refers to itself
        return body | {"$defs": definitions}
    other_definitions = {other: part for other, part in definitions.items() if other != name}
    return body | ({"$defs": other_definitions} if other_definitions else {})
