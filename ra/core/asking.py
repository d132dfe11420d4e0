"""The questions that a face asks its user (may this tool call run? what goes into this form?) and their answers."""

import math
from collections.abc import Awaitable, Callable
from typing import Literal, get_args

from ra.core.events import FileChange
from ra.core.messages import ToolCall
from ra.core.value import Value

Verdict = Literal["once", "session", "project", "no"]
FieldValue = str | int | float | bool | list[str] | None


class Field(Value, frozen=True):
    """One field of a form. `choices` are the only permitted answers; `many` allows several of them."""

    name: str
    words: str = ""
    kind: Literal["text", "integer", "number", "boolean"] = "text"
    choices: tuple[str, ...] = ()
    many: bool = False
    required: bool = False
    default: FieldValue = None


class Question(Value, frozen=True):
    """May this call run? `preview` is exactly what would run, `reason` says why permission is needed.

    `change` is the difference that the call would make to a file. `edits`: the call is a plain change in the project,
    and the answer "session" allows all such changes. With `form`, the question is not about a call: it asks for the
    `fields`, if there are any, and a positive answer carries their `values`.
    """

    call: ToolCall
    reason: str
    preview: str
    change: FileChange | None = None
    edits: bool = False
    form: bool = False
    fields: tuple[Field, ...] = ()


class Answer(Value, frozen=True):
    """The user's decision. With `edited`, that call runs instead of the proposed one. `why` is the reason for a "no".

    `values` are the answers to a form, by field name.
    """

    verdict: Verdict
    edited: ToolCall | None = None
    why: str = ""
    values: dict[str, FieldValue] = {}

    def __post_init__(self) -> None:
        if self.verdict not in get_args(Verdict):  # whatever is not "no" allows, so "deny" must not become an answer
            words = ", ".join(map(repr, get_args(Verdict)))
            raise ValueError(f"The verdict of an Answer is {self.verdict!r}; use one of {words}.")


Asker = Callable[[Question], Awaitable[Answer]]
"""How a face asks its user. A face without a user has no asker: every question is then refused."""


def read_field(field: Field, text: str) -> FieldValue:
    """The typed text as a value of the field's type. Raises ValueError with a message that says what is accepted."""
    text = text.strip()
    if not text:
        if field.default is None and field.required:
            raise ValueError("An answer is required.")
        return field.default
    if field.many:
        return [_choice(field, part.strip()) for part in text.split(",") if part.strip()]
    if field.choices:
        return _choice(field, text)
    match field.kind:
        case "boolean":
            if text.lower() not in _BOOLEANS:
                raise ValueError("Answer y or n.")
            return _BOOLEANS[text.lower()]
        case "integer":
            return _number(text, int, "Type a whole number.")
        case "number":
            return _number(text, float, "Type a number.")
        case "text":
            return text


_BOOLEANS = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


def _choice(field: Field, text: str) -> str:
    """The choice with this text, or with this number in the list. Raises ValueError."""
    if text in field.choices:
        return text
    if text.isdecimal() and 1 <= int(text) <= len(field.choices):
        return field.choices[int(text) - 1]
    raise ValueError(f"Choose one of {', '.join(field.choices)}.")


def _number(text: str, kind: type[int] | type[float], hint: str) -> int | float:
    try:
        number = kind(text)
    except ValueError as error:
        raise ValueError(hint) from error
    if not math.isfinite(number):  # JSON has neither nan nor inf
        raise ValueError(hint)
    return number


def field_label(field: Field) -> str:
    """The prompt that a face shows before the input."""
    label = field.words or field.name
    hints = []
    if field.choices:
        hints.append(", ".join(f"{number} {choice}" for number, choice in enumerate(field.choices, 1)))
    elif field.kind == "boolean":
        hints.append("y/n")
    if field.many:
        hints.append("several, separated by commas")
    if field.default is not None:
        hints.append(f"Enter: {'yes' if field.default is True else 'no' if field.default is False else field.default}")
    elif not field.required:
        hints.append("Enter: no answer")
    return f"{label} ({'; '.join(hints)}): " if hints else f"{label}: "
