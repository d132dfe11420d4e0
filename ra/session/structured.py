"""Answers that are JSON of a given form: what the model is told, how an answer is checked, how it is corrected."""

import re
from collections.abc import Iterator
from datetime import datetime, time
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from ra.core.errors import UsageError
from ra.core.messages import Message, say
from ra.core.model import Section
from ra.core.value import JsonObject

if TYPE_CHECKING:
    from jsonschema import FormatChecker
    from jsonschema.protocols import Validator

MAX_CORRECTIONS = 2
MAX_PROBLEMS = 5  # that one correction names
FORMAT = "answer format"
PATTERN_S = 1.0
"""How long a `pattern` is tried on one text: some take longer than anybody lives."""

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_FORMS = {
    "uri": re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]+"),
    "hostname": re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*"),
    "duration": re.compile(
        r"P(?:\d+W|(?=[\dT])(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?)"
    ),
}

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
        from jsonschema.validators import extend, validator_for
        from referencing import Registry

        if not isinstance(schema, dict):
            raise UsageError('The schema must be a JSON object, such as {"type": "object", "properties": {…}}.')
        kind = validator_for(schema, default=Draft202012Validator)
        try:
            kind.check_schema(schema)
        except SchemaError as error:
            place = "/".join(map(str, error.absolute_path))
            raise UsageError(f"The schema is wrong{f' at {place}' if place else ''}: {error.message[:300]}.") from error
        _check_references(schema)
        self.schema: JsonObject = schema
        bounded = extend(kind, {"pattern": _pattern, "multipleOf": _multiple_of})  # type: ignore[no-untyped-call]  # its stub leaves it bare
        # An empty registry: what a schema names is never fetched.
        self._validator = bounded(schema, registry=Registry(), format_checker=_formats(kind.FORMAT_CHECKER))

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


def _check_references(schema: JsonObject) -> None:
    """Raises UsageError for a reference that leads out of the schema, to nothing or back to itself."""
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    references = sorted(_references(schema))
    if foreign := [ref for ref in references if not ref.startswith("#")]:
        raise UsageError(f"The schema refers to {foreign[0]!r}; put everything that it needs into the schema itself.")
    if references and '"$id"' in msgspec.json.encode(schema).decode():
        return  # a reference in a part with an address of its own is counted from there
    resource = Resource.from_contents(schema, default_specification=DRAFT202012)
    resolver = Registry().with_resource("", resource).resolver()
    for ref in references:
        target: Any = {"$ref": ref}
        seen: list[str] = []
        while isinstance(target, dict) and isinstance(target.get("$ref"), str):
            if target["$ref"] in seen:
                raise UsageError(f"The schema's reference {ref!r} leads back to itself; nothing can fit it.")
            seen.append(target["$ref"])
            try:
                target = resolver.lookup(seen[-1]).contents
            except Unresolvable as error:
                raise UsageError(f"The schema refers to {seen[-1]!r}, which is not in it.") from error


def _formats(checker: "FormatChecker") -> "FormatChecker":
    """The formats that need no further package, and those that providers with structured output of their own hold."""
    from jsonschema import FormatChecker

    formats = FormatChecker(())
    formats.checkers = dict(checker.checkers)
    formats.checks("date-time", ValueError)(_is_date_time)
    formats.checks("time", ValueError)(_is_time)
    for name, form in _FORMS.items():
        formats.checks(name)(partial(_has_form, form))
    return formats


def _has_form(form: re.Pattern[str], value: object) -> bool:
    return not isinstance(value, str) or form.fullmatch(value) is not None


def _is_date_time(value: object) -> bool:
    """Raises ValueError."""
    return not isinstance(value, str) or datetime.fromisoformat(value).tzinfo is not None


def _is_time(value: object) -> bool:
    """Raises ValueError."""
    return not isinstance(value, str) or time.fromisoformat(value).tzinfo is not None


def _pattern(validator: "Validator", pattern: str, value: Any, schema: Any) -> Iterator[Any]:
    """The keyword `pattern`, for at most so long."""
    import regex
    from jsonschema import ValidationError

    if not isinstance(value, str):
        return
    try:
        if regex.search(pattern, value, timeout=PATTERN_S) is None:
            yield ValidationError(f"{value!r} does not match {pattern!r}")
    except (TimeoutError, regex.error) as error:
        yield ValidationError(f"the pattern {pattern!r} cannot be tried on it: {error}")


def _multiple_of(validator: "Validator", step: float, value: Any, schema: Any) -> Iterator[Any]:
    """The keyword `multipleOf` of the numbers as they are written: 19.99 is a multiple of 0.01."""
    from jsonschema import ValidationError

    if validator.is_type(value, "number") and Fraction(str(value)) % Fraction(str(step)):
        yield ValidationError(f"{value!r} is not a multiple of {step!r}")


def _references(part: object) -> set[str]:
    if isinstance(part, dict):
        named = {part["$ref"]} if isinstance(part.get("$ref"), str) else set()
        return named.union(*(_references(inner) for inner in part.values()))
    if isinstance(part, list):
        return set().union(*(_references(inner) for inner in part))
    return set()
