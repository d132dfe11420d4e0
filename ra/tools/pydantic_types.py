"""Reads JSON into the types of a user's program that only pydantic knows, and describes them to a model."""

from typing import Any

from pydantic import PydanticUndefinedAnnotation, PydanticUserError, TypeAdapter, ValidationError

from ra.core.value import JsonObject

MAX_ERRORS = 5  # that one message names


def adapter(hint: Any) -> tuple[TypeAdapter[Any], JsonObject]:
    """What reads values of a type, and its JSON schema. Raises TypeError that says why there is none."""
    try:
        reader: TypeAdapter[Any] = TypeAdapter(hint)
        return reader, _bare(reader.json_schema())
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        raise TypeError(" ".join(str(error).split()).partition(". ")[0]) from error


def why(error: ValidationError) -> str:
    """What does not fit, without links, and without the input, which a model knows."""
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [f"{'.'.join(map(str, part['loc'])) or 'the whole'}: {part['msg']}" for part in errors]
    more = [f"and {len(lines) - MAX_ERRORS} more"] if len(lines) > MAX_ERRORS else []
    return "; ".join([*lines[:MAX_ERRORS], *more])


def _bare(part: Any) -> Any:
    """A title repeats the name that stands beside it; under `properties` it is a name itself."""
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
