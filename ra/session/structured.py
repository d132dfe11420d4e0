"""Answers that are JSON of a given form: what the model is told, how an answer is checked, how it is corrected."""

import re
from pathlib import Path
from typing import Protocol

import msgspec

from ra.core.errors import UsageError
from ra.core.messages import Message, say
from ra.core.model import Section
from ra.core.value import JsonObject

MAX_CORRECTIONS = 2
MAX_PROBLEMS = 5  # that one correction names
FORMAT = "answer format"

_FENCE = re.compile(r"```(?:json[c5]?)?[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL | re.IGNORECASE)


class AnswerFormat(Protocol):
    """What an answer must be: JSON that fits a schema, or that a type of the user's program can be made from."""

    schema: JsonObject

    def problem(self, text: str) -> str:
        """What is wrong with an answer, "" when it fits. `text` is what `json_text` found."""
        ...


class SchemaFormat:
    """JSON that fits a JSON schema. Raises UsageError for one that is none."""

    def __init__(self, schema: object) -> None:
        from jsonschema import Draft202012Validator, SchemaError
        from jsonschema.validators import validator_for
        from referencing import Registry

        if not isinstance(schema, dict):
            raise UsageError('The schema must be a JSON object, such as {"type": "object", "properties": {…}}.')
        kind = validator_for(schema, default=Draft202012Validator)
        try:
            kind.check_schema(schema)
        except SchemaError as error:
            place = "/".join(map(str, error.absolute_path))
            raise UsageError(f"The schema is wrong{f' at {place}' if place else ''}: {error.message[:300]}.") from error
        foreign = sorted(ref for ref in _references(schema) if not ref.startswith("#"))
        if foreign:
            raise UsageError(
                f"The schema refers to {foreign[0]!r}; put everything that it needs into the schema itself."
            )
        self.schema: JsonObject = schema
        # An empty registry: what a schema names is never fetched.
        self._validator = kind(schema, registry=Registry())

    def problem(self, text: str) -> str:
        from referencing.exceptions import Unresolvable

        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            return f"it is not valid JSON ({error})"
        try:
            errors = sorted(self._validator.iter_errors(value), key=lambda error: list(map(str, error.absolute_path)))
        except Unresolvable as error:
            return f"the schema refers to what is not in it: {error}"
        except RecursionError:
            return "the schema refers to itself without end"
        lines = [f"{'/'.join(map(str, error.absolute_path)) or 'the whole'}: {error.message[:300]}" for error in errors]
        more = [f"and {len(lines) - MAX_PROBLEMS} more"] if len(lines) > MAX_PROBLEMS else []
        return "; ".join([*lines[:MAX_PROBLEMS], *more])


def read_schema(given: str) -> SchemaFormat:
    """The schema that a flag names: a file, or the JSON itself. Raises UsageError."""
    text = given
    if not given.lstrip().startswith("{"):
        try:
            text = Path(given).expanduser().read_text("utf-8-sig")
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise UsageError(f"--json-schema {given[:200]}: {why}. Name a file, or write the schema itself.") from error
    try:
        return SchemaFormat(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"--json-schema {given[:200]}: this is not valid JSON ({error}).") from error


def json_text(text: str) -> str:
    """The JSON of an answer: without a fence around it, and without words before and after."""
    bare = text.strip()
    if fenced := _FENCE.search(bare):
        bare = fenced[1].strip()
    if not bare or bare[0] in '{["-0123456789' or bare in ("true", "false", "null"):
        return bare
    starts = [place for place in (bare.find("{"), bare.find("[")) if place >= 0]
    end = max(bare.rfind("}"), bare.rfind("]"))
    return bare[min(starts) : end + 1] if starts and end > min(starts) else bare


def told(schema: JsonObject) -> Section:
    """What stands in the system part where the provider has no structured output of its own."""
    words = "Your final answer must be JSON alone, without a fence and without other words, that fits this JSON schema:"
    return Section(FORMAT, "pinned", f"{words}\n{msgspec.json.encode(schema).decode()}")


def correction(problem: str) -> Message:
    words = f"Your answer does not fit: {problem}. Answer again with the corrected JSON alone."
    return say("user", words, name=FORMAT)


def _references(part: object) -> set[str]:
    if isinstance(part, dict):
        named = {part["$ref"]} if isinstance(part.get("$ref"), str) else set()
        return named.union(*(_references(inner) for inner in part.values()))
    if isinstance(part, list):
        return set().union(*(_references(inner) for inner in part))
    return set()
