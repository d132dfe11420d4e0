"""The question whether a tool call may run, or what the user says to a form; and the answer."""

from collections.abc import Awaitable, Callable
from typing import Literal

from ra.core.events import FileChange
from ra.core.messages import ToolCall
from ra.core.value import Value

FieldValue = str | int | float | bool | list[str] | None


class Field(Value, frozen=True):
    """One thing that a form asks for. `choices` are all that may be answered; with `many`, several of them."""

    name: str
    words: str = ""
    kind: Literal["text", "integer", "number", "boolean"] = "text"
    choices: tuple[str, ...] = ()
    many: bool = False
    required: bool = False
    default: FieldValue = None


class Question(Value, frozen=True):
    """May this call run? `preview` is exactly what would run, `reason` why it is not simply done.

    `change` is the difference that a file would get. `edits`: it is a plain change in the project, and the answer
    "session" allows all of them. With `form`, it is no call that is asked about: the user's yes comes with `values`
    for the `fields`, if there are any.
    """

    call: ToolCall
    reason: str
    preview: str
    change: FileChange | None = None
    edits: bool = False
    form: bool = False
    fields: tuple[Field, ...] = ()


class Answer(Value, frozen=True):
    """The user's word. With `edited`, that call runs instead of the one asked about. `why` goes with a no.

    `values` are what the user filled in, by the names of a question's fields.
    """

    verdict: Literal["once", "session", "project", "no"]
    edited: ToolCall | None = None
    why: str = ""
    values: dict[str, FieldValue] = {}


Asker = Callable[[Question], Awaitable[Answer]]
"""How a face asks its user. A face without a user has none, and what would ask is refused."""


def read_field(field: Field, text: str) -> FieldValue:
    """What was typed, as the field wants it. Raises ValueError with words that say what would be right."""
    text = text.strip()
    if not text:
        if field.default is None and field.required:
            raise ValueError("It needs an answer.")
        return field.default
    if field.many:
        return [_choice(field, part.strip()) for part in text.split(",") if part.strip()]
    if field.choices:
        return _choice(field, text)
    match field.kind:
        case "boolean":
            if text.lower() not in _BOOLEANS:
                raise ValueError("Please answer y or n.")
            return _BOOLEANS[text.lower()]
        case "integer":
            return _number(text, int, "Please type a whole number.")
        case "number":
            return _number(text, float, "Please type a number.")
        case "text":
            return text


_BOOLEANS = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


def _choice(field: Field, text: str) -> str:
    """A choice by its words or by its number in the list."""
    if text in field.choices:
        return text
    if text.isdecimal() and 1 <= int(text) <= len(field.choices):
        return field.choices[int(text) - 1]
    raise ValueError(f"Please choose one of {', '.join(field.choices)}.")


def _number(text: str, kind: type[int] | type[float], words: str) -> int | float:
    try:
        return kind(text)
    except ValueError as error:
        raise ValueError(words) from error


def field_label(field: Field) -> str:
    """What a face shows before the place where the answer is typed."""
    words = field.words or field.name
    hints = []
    if field.choices:
        hints.append(", ".join(f"{place} {choice}" for place, choice in enumerate(field.choices, 1)))
    elif field.kind == "boolean":
        hints.append("y/n")
    if field.many:
        hints.append("several, separated by commas")
    if field.default is not None:
        hints.append(f"Enter: {'yes' if field.default is True else 'no' if field.default is False else field.default}")
    elif not field.required:
        hints.append("Enter: no answer")
    return f"{words} ({'; '.join(hints)}): " if hints else f"{words}: "
