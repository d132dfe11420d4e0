"""Reads JSON into types of a user's program that need pydantic, and describes them to a model."""

from typing import Any

from pydantic import PydanticUndefinedAnnotation, PydanticUserError, TypeAdapter, ValidationError

from ra.core.value import JsonObject

MAX_ERRORS = 5  # per message


def adapter(hint: Any) -> tuple[TypeAdapter[Any], JsonObject]:
    """A reader for values of a type, and its JSON schema. Raises TypeError with the reason if there is none."""
    try:
        reader: TypeAdapter[Any] = TypeAdapter(hint)
        return reader, _bare(reader.json_schema())
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        raise TypeError(" ".join(str(error).split()).partition(". ")[0]) from error


def why(error: ValidationError) -> str:
    """The errors of a value, without links, and without the input, which the model knows."""
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [f"{'.'.join(map(str, part['loc'])) or 'the whole'}: {part['msg']}" for part in errors]
    more = [f"and {len(lines) - MAX_ERRORS} more"] if len(lines) > MAX_ERRORS else []
    return "; ".join([*lines[:MAX_ERRORS], *more])


def _bare(part: Any) -> Any:
    """The schema without titles, which repeat the name beside them; under `properties`, `title` is a name itself."""
    if isinstance(part, list):
        return [_bare(inner) for inner in part]
    if not isinstance(part, dict):
        return part
    bare: dict[str, Any] = {}
    for key, inner in part.items():
        if key in ("properties", "$defs"):
            bare[key] = {name: _bare(schema) for name, schema in inner.items()}
        elif key in ("default", "const", "enum", "examples"):
            bare[key] = inner
        elif key != "title":
            bare[key] = _bare(inner)
    return bare
