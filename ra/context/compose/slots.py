"""Puts a prompt together from named slots, ordered by position and fitted into the budget."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import msgspec

from ra.context.fit import Claim, FitRow, allot
from ra.context.tokens import Estimator
from ra.context.trim import ByGroup, ByText, Trim, Trimmed
from ra.core.errors import UsageError
from ra.core.messages import Message, Role, plain_message, say, tool_output
from ra.core.text import clean
from ra.core.value import Value

TrimBehavior = Literal["char", "message"]
ROLES = get_args(Role)
TRIM_BEHAVIORS = get_args(TrimBehavior)

Kind = Literal["input", "system", "rest"]


class Rendered(Value, frozen=True):
    """The prompt. `kept` maps references to what was cut, so that it can be stored and recalled."""

    messages: tuple[Message, ...]
    rows: tuple[FitRow, ...] = ()
    warnings: tuple[str, ...] = ()
    kept: dict[str, str] = {}


class Slot(msgspec.Struct, frozen=True):
    name: str
    messages: tuple[Message, ...]
    priority: int
    max_ratio: float
    min_ratio: float
    min_tokens: int
    position: int
    trim_behavior: TrimBehavior


class SlotPiece(msgspec.Struct, frozen=True):
    """The messages of a slot that are cut by the same rule: the current input, system messages, or the rest."""

    slot: int
    kind: Kind
    indexes: tuple[int, ...]
    trim: Trim
    part: Claim


class Slots:
    """The slots of one prompt. `budget` is its limit in the model's tokens; `prompt` is the current input."""

    def __init__(self, budget: int, estimator: Estimator, *, prompt: Message | None = None) -> None:
        self._budget = max(0, budget)
        self._estimator = estimator
        self._prompt = prompt
        self._slots: list[Slot] = []
        self._warnings: list[str] = []

    def add(
        self,
        name: str,
        content: str | Message | Mapping[str, Any] | Sequence[Message | Mapping[str, Any]] | None,
        *,
        priority: int = 0,
        max_ratio: float = 1.0,
        min_ratio: float = 0.0,
        min_tokens: int = 0,
        position: int | None = None,
        role: Role | None = None,
        trim_behavior: TrimBehavior = "message",
    ) -> None:
        """Add content to the prompt. None, an empty string and an empty list add nothing. Raises UsageError.

        Ratios are of the whole budget; they are clamped to 0…1, and the minimum to the maximum.
        """
        _check_name(name)
        _check_integer(name, "priority", priority)
        _check_integer(name, "position", position, optional=True)
        _check_choice(name, "role", role, ROLES, optional=True)
        _check_choice(name, "trim_behavior", trim_behavior, TRIM_BEHAVIORS)
        _check_integer(name, "min_tokens", min_tokens)
        if min_tokens < 0:
            raise UsageError(f"slots.add({name!r}): min_tokens is {min_tokens}; use 0 or more.")
        most = _clamped(name, "max_ratio", max_ratio)
        least = min(most, _clamped(name, "min_ratio", min_ratio))
        messages = self._messages(name, content, role)
        if messages:
            place = len(self._slots) if position is None else position
            self._slots.append(Slot(name, messages, priority, most, least, min_tokens, place, trim_behavior))

    def render(self) -> Rendered:
        """The prompt: slots in order, cut to their shares and to the budget. May be called again after more slots.

        Caps come first, then the slots are cut by ascending priority, the first in order first, oldest content first.
        If no slot has a priority, system messages are kept. The current input is always cut last.
        """
        slots = sorted(self._slots, key=lambda slot: slot.position)  # stable: ties stay in the order of adding
        pieces = [piece for index, slot in enumerate(slots) for piece in self._pieces(index, slot)]
        allotment = allot([piece.part for piece in pieces], self._estimator.plain(self._budget))
        cuts = [piece.trim.take(limit) for piece, limit in zip(pieces, allotment.limits, strict=True)]
        messages: list[Message] = []
        rows: list[FitRow] = []
        for index, slot in enumerate(slots):
            pieces_of_slot = [(piece, cut) for piece, cut in zip(pieces, cuts, strict=True) if piece.slot == index]
            messages += _in_order(pieces_of_slot)
            rows.append(self._row(slot, [cut for _, cut in pieces_of_slot]))
        warnings = list(self._warnings)
        if allotment.floors_ignored:
            warnings.append(
                f"The minimums of the slots exceed the budget of {self._budget} tokens: the minimums are ignored, "
                "and priority decides."
            )
        else:
            below = sorted({pieces[index].slot for index in allotment.short})
            warnings += [
                f"Slot {rows[index].name!r} is below its minimum: its next whole message does not fit."
                for index in below
                if rows[index].tokens
            ]
        warnings += [
            f"The current input was cut: {cut.cut}."
            for piece, cut in zip(pieces, cuts, strict=True)
            if piece.kind == "input" and cut.cut
        ]
        warnings += [
            f"Slot {row.name!r} does not fit and was left out: {row.cut}."
            for row in rows
            if row.size and not row.tokens
        ]
        texts = {ref: text for cut in cuts for ref, text in cut.kept.items()}
        return Rendered(tuple(messages), tuple(rows), tuple(warnings), texts)

    def _messages(self, name: str, content: object, role: Role | None) -> tuple[Message, ...]:
        match content:
            case None | "":
                return ()
            case str():
                if self._prompt is not None and content == self._prompt.text and role in (None, self._prompt.role):
                    return (self._prompt,)
                return (_spoken(role or "user", clean(content), name),)
            case Message():
                messages: tuple[Message, ...] = (content,)
            case list() | tuple():
                messages = tuple(_message(name, item) for item in content)
            case _:
                messages = (_message(name, content),)
        messages = tuple(self._prompt if message == self._prompt else message for message in messages)
        if role is not None and any(message.role != role for message in messages):
            self._warnings.append(f"Slot {name!r}: role={role!r} is for strings; its messages keep their own roles.")
        return messages

    def _pieces(self, index: int, slot: Slot) -> list[SlotPiece]:
        """The slot's messages, by the rule that cuts them. They share its limit; what is cut last takes first."""
        keep_system = all(neighbour.priority == 0 for neighbour in self._slots)
        kinds: dict[Kind, list[int]] = {"input": [], "system": [], "rest": []}
        for at, message in enumerate(slot.messages):
            is_system = keep_system and message.role == "system"
            kind: Kind = "input" if message is self._prompt else "system" if is_system else "rest"
            kinds[kind].append(at)
        ranks = sorted({neighbour.priority for neighbour in self._slots})
        priorities: dict[Kind, int] = {"input": ranks[-1] + 2, "system": ranks[-1] + 1, "rest": slot.priority}
        cap = self._estimator.plain(int(self._budget * slot.max_ratio))
        minimum = self._estimator.plain(max(self._budget * slot.min_ratio, slot.min_tokens))
        pieces: list[SlotPiece] = []
        for kind, indexes in kinds.items():
            if indexes:
                messages = [slot.messages[at] for at in indexes]
                by_text = kind != "rest" or slot.trim_behavior == "char"  # what is cut last is never dropped whole
                trim: Trim = ByText(messages, self._estimator) if by_text else ByGroup(messages, self._estimator)
                part = Claim(trim.size, trim.fit, cap, minimum if kind == "rest" else trim.size, priorities[kind])
                pieces.append(SlotPiece(index, kind, tuple(indexes), trim, part))
                cap, minimum = cap - trim.fit(min(cap, trim.size)), max(0, minimum - trim.size)
        return pieces

    def _row(self, slot: Slot, cuts: list[Trimmed]) -> FitRow:
        return FitRow(
            slot.name,
            "tool" if slot.messages[0].name == f"tool:{slot.name}" else slot.messages[0].role,
            self._estimator.scaled(sum(cut.tokens for cut in cuts)),
            self._estimator.scaled(self._estimator.messages(slot.messages)),
            int(self._budget * slot.max_ratio),
            max(int(self._budget * slot.min_ratio), slot.min_tokens),
            slot.priority,
            cut="; ".join(cut.cut for cut in cuts if cut.cut),
        )


def _in_order(pieces: list[tuple[SlotPiece, Trimmed]]) -> list[Message]:
    """The rest of a slot, in the order in which it was added."""
    remaining = [
        (piece.indexes[index], message)
        for piece, trimmed in pieces
        for index, message in zip(trimmed.indexes, trimmed.messages, strict=True)
    ]
    return [message for _, message in sorted(remaining, key=lambda pair: pair[0])]


def _spoken(role: Role, text: str, name: str) -> Message:
    if role == "tool":
        return tool_output(text, name)
    return say(role, text, name=name)


def _message(slot: str, value: object) -> Message:
    """The value as a Message. Messages stay the same objects, so that the current input can be recognised."""
    if isinstance(value, Message):
        return value
    try:
        return plain_message(value)
    except TypeError as error:
        raise UsageError(
            f"slots.add({slot!r}): content holds a {type(value).__name__}; use a string, a Message, {{role, content}}, "
            f"a list of them, or None ({error})."
        ) from error


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise UsageError(f"slots.add: name is {name!r}; use a string that is not empty.")


def _check_integer(slot: str, key: str, value: object, *, optional: bool = False) -> None:
    if (value is None and optional) or (isinstance(value, int) and not isinstance(value, bool)):
        return
    raise UsageError(f"slots.add({slot!r}): {key} is {value!r}; use an integer{' or None' if optional else ''}.")


def _check_choice(slot: str, key: str, value: object, legal: tuple[str, ...], *, optional: bool = False) -> None:
    if (value is None and optional) or value in legal:
        return
    raise UsageError(f"slots.add({slot!r}): {key} is {value!r}; use {', '.join(legal)}.")


def _clamped(slot: str, key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise UsageError(f"slots.add({slot!r}): {key} is {value!r}; use a number from 0 to 1.")
    return min(max(0.0, value), 1.0)
