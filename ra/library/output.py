"""Turns answers into types of a program: structs, every type that pydantic supports, and plain JSON schemas."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ra.core.errors import UsageError
from ra.core.value import JsonObject
from ra.session.structured import SchemaFormat


class StructFormat:
    """Answers that msgspec decodes: structs, and lists and unions of them. Raises TypeError for other types."""

    def __init__(self, output_type: Any) -> None:
        self.schema: JsonObject = _rooted(msgspec.json.schema(output_type))
        self._decoder = msgspec.json.Decoder(output_type)

    def problem(self, text: str) -> str:
        try:
            self.value(text)
        except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
            return str(error)[:1000] or type(error).__name__
        return ""

    def value(self, text: str) -> Any:
        """The answer as a value. Raises ValueError."""
        return self._decoder.decode(text)


class PydanticFormat:
    """Answers that pydantic decodes: models, dataclasses, enums, unions, dates, and plain types.

    Raises TypeError for other types.
    """

    def __init__(self, output_type: Any) -> None:
        from ra.tools.pydantic_types import adapter  # start-up time: pydantic, only for such types

        self._reader, schema = adapter(output_type)
        self.schema: JsonObject = _rooted(schema)

    def problem(self, text: str) -> str:
        from pydantic import ValidationError

        from ra.tools.pydantic_types import why

        try:
            self.value(text)
        except ValidationError as error:
            return why(error)[:1000]
        return ""

    def value(self, text: str) -> Any:
        """The answer as a value. Raises pydantic's ValidationError."""
        return self._reader.validate_json(text)


class PlainFormat(SchemaFormat):
    """Answers that fit a JSON schema, as dicts and lists."""

    def value(self, text: str) -> Any:
        return msgspec.json.decode(text)


def format_of(output_type: Any) -> StructFormat | PydanticFormat | PlainFormat | None:
    """The format of an answer, None for text. Raises UsageError for a type that JSON cannot represent."""
    if output_type is None or output_type is str:
        return None
    if isinstance(output_type, Mapping):
        return PlainFormat(dict(output_type))
    is_struct = isinstance(output_type, type) and issubclass(output_type, msgspec.Struct)
    reasons = []
    for form in (StructFormat,) if is_struct else (PydanticFormat, StructFormat):
        try:
            return form(output_type)
        except TypeError as error:
            reasons.append(" ".join(str(error).split()))
    raise UsageError(
        f"output_type: no answer can become {output_type!r} ({reasons[0][:300]}). Use a pydantic model, a dataclass, a "
        "msgspec Struct, a TypedDict, an enum, a union or list[…] of these, or a JSON schema."
    )


def _rooted(schema: JsonObject) -> JsonObject:
    """The schema with the type itself at its root: providers require an object there, not a reference to one."""
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    definitions: JsonObject = schema.get("$defs", {})
    if name not in definitions:
        return schema
    body: JsonObject = dict(definitions[name])
    if f'"#/$defs/{name}"' in msgspec.json.encode(definitions).decode():  # it is recursive
        return body | {"$defs": definitions}
    other_definitions = {other: part for other, part in definitions.items() if other != name}
    return body | ({"$defs": other_definitions} if other_definitions else {})
