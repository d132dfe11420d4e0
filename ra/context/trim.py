"""Shortens text and messages to a size, with a marker that tells how to recall the rest."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from typing import Protocol

import msgspec

from ra.context.fit import Claim, allot
from ra.context.tokens import Estimator, Where
from ra.core.messages import Block, Content, Document, Image, Message, Text, Thinking, ToolCall, ToolResult, say
from ra.core.text import reference
from ra.core.value import Value, encode

TERSE = 48  # tokens: with less room the marker is one character, and the reference stands in the report alone


class Trimmed(Value, frozen=True):
    """What is left. `indexes` are the messages' indexes in the original; a marker has the index of the next message.

    `cut` describes what was left out and how to recall it, empty if nothing was; `kept` has the text by reference.
    """

    messages: tuple[Message, ...]
    indexes: tuple[int, ...]
    tokens: int
    cut: str = ""
    kept: dict[str, str] = {}


class Trim(Protocol):
    """A way to make messages smaller."""

    size: int

    def fit(self, limit: int) -> int:
        """The tokens that are left within the limit."""
        ...

    def take(self, limit: int) -> Trimmed:
        """What is left within the limit."""
        ...


def groups(messages: Sequence[Message]) -> list[tuple[Message, ...]]:
    """The messages in pieces that must stay whole: an answer with the results of its calls, or one message."""
    batches: list[list[Message]] = []
    open_calls: set[str] = set()
    for message in messages:
        answered = {block.call_id for block in message.blocks if isinstance(block, ToolResult)}
        if batches and answered and answered <= open_calls:
            batches[-1].append(message)
            continue
        open_calls = {call.id for call in message.calls}
        batches.append([message])
    return [tuple(group) for group in batches]


class Shortened(Value, frozen=True):
    text: str
    cut: str = ""
    kept: dict[str, str] = {}


def shorten(text: str, limit: int, where: Where, estimator: Estimator) -> Shortened:
    """At most so many tokens of a text, with a marker at the cut that tells how to recall it."""
    size = estimator.text(text)
    if size <= limit:
        return Shortened(text)
    ref = reference(text)
    marker = f"\n[… cut here: recall {ref} reads the whole text, {size} tokens …]\n" if limit >= TERSE else "…"
    short = estimator.clip(text, limit, where, marker=marker)
    return Shortened(short, f"{size} tokens cut to {estimator.text(short)}; recall {ref}", {ref: text})


class ByGroup:
    """Keeps the newest whole groups, without holes; with `turns`, whole turns, so that no answer stands there without
    what was asked. Where the current input is the only turn that fits, groups of the turn before it fill the room.

    `name` is given to the marker that stands in for the others, and without a name there is none. With `at_least_one`,
    a newest group that is too large by itself is shortened instead of dropped.
    """

    def __init__(
        self,
        messages: Sequence[Message],
        estimator: Estimator,
        *,
        name: str = "",
        at_least_one: bool = False,
        turns: bool = False,
    ) -> None:
        self._messages = messages
        self._estimator = estimator
        self._name = name
        self._at_least_one = at_least_one
        self._groups = groups(messages)
        self._newest = [0]  # tokens of the newest 0, 1, 2… groups
        for group in reversed(self._groups):
            self._newest.append(self._newest[-1] + estimator.messages(group))
        self.size = self._newest[-1]
        self._turns = [0, *self._whole_turns()] if turns else []

    def _whole_turns(self) -> list[int]:
        """The numbers of newest groups that form whole turns with an answer, ascending."""
        newest = self._groups[::-1]
        answered = next((index for index, group in enumerate(newest) if group[0].role == "assistant"), len(newest))
        return [count for count, group in enumerate(newest, 1) if count > answered and group[0].role != "assistant"]

    def fit(self, limit: int) -> int:
        return self.take(limit).tokens

    def take(self, limit: int) -> Trimmed:
        total = len(self._messages)
        if limit >= self.size or not total:
            return Trimmed(tuple(self._messages), tuple(range(total)), self.size)
        count = self._count(limit)
        newest = self._shortened(limit) if self._at_least_one and not count else self._whole(count)
        dropped = total - len(newest.messages)
        if not dropped:
            return newest
        marked = self._name and newest.tokens + self._marker_size <= limit
        note = f"{dropped} of {total} messages, {self.size - newest.tokens} tokens; recall {self._ref}"
        return Trimmed(
            (self._marker, *newest.messages) if marked else newest.messages,
            (dropped, *newest.indexes) if marked else newest.indexes,
            newest.tokens + (self._marker_size if marked else 0),
            "; ".join(filter(None, (note, newest.cut))),
            {self._ref: self._transcript, **newest.kept},
        )

    def needed(self, index: int) -> int:
        """The limit that keeps the message at `index` and everything after it."""
        size, first = 0, len(self._messages)
        for group in reversed(self._groups):
            first -= len(group)
            size += self._estimator.messages(group)
            if first <= index:
                break
        return size + self._marker_size if first else self.size

    def _whole(self, count: int) -> Trimmed:
        """The newest groups."""
        total = len(self._messages)
        first = total - sum(len(group) for group in self._groups[len(self._groups) - count :])
        return Trimmed(tuple(self._messages[first:]), tuple(range(first, total)), self._newest[count])

    def _shortened(self, limit: int) -> Trimmed:
        """The newest group, with its texts shortened."""
        has_others = len(self._groups) > 1 and self._marker_size <= limit
        last = ByText(self._groups[-1], self._estimator).take(limit - self._marker_size if has_others else limit)
        first = len(self._messages) - len(self._groups[-1])
        return msgspec.structs.replace(last, indexes=tuple(first + index for index in last.indexes))

    def _count(self, limit: int) -> int:
        """The number of newest groups that fit beside the marker; 1 if only the newest fits without it."""
        room = limit - self._marker_size
        count = bisect_right(self._newest, room) - 1 if room >= 0 else 0
        if not count and len(self._newest) > 1 and self._newest[1] <= limit:
            return 1  # what was said last is worth more than the marker
        turns = bisect_right(self._turns, count) - 1
        return self._turns[turns] if turns > 0 else count

    @cached_property
    def _transcript(self) -> str:
        return transcript(self._messages)

    @cached_property
    def _ref(self) -> str:
        return reference(self._transcript)

    @cached_property
    def _marker(self) -> Message:
        # It names the whole and not what is hidden, so that its size does not depend on where the cut is.
        total = f"all {len(self._messages)} messages, {self.size} tokens"
        return say("user", f"[… earlier messages are cut: recall {self._ref} reads {total} …]", name=self._name)

    @cached_property
    def _marker_size(self) -> int:
        return self._estimator.message(self._marker) if self._name else 0


class ByText:
    """Shortens text, oldest first, and keeps every message and role while their empty frames fit.

    What a user typed is shortened after the files that came with it: it keeps up to half of the limit.
    """

    def __init__(self, messages: Sequence[Message], estimator: Estimator, *, where: Where = "both") -> None:
        self._messages = messages
        self._estimator = estimator
        self._where: Where = where
        self._known: dict[int, Trimmed] = {}
        self.size = estimator.messages(messages)

    def fit(self, limit: int) -> int:
        return self.size if limit >= self.size else self.take(limit).tokens

    def take(self, limit: int) -> Trimmed:
        if limit >= self.size:
            return Trimmed(tuple(self._messages), tuple(range(len(self._messages))), self.size)
        if limit not in self._known:
            self._known[limit] = self._take(limit)
        return self._known[limit]

    def _take(self, limit: int) -> Trimmed:
        count = self._that_fit_bare(limit)
        first = len(self._messages) - count
        messages = self._messages[first:]
        texts = [text for message in messages for text in _texts(message.blocks)]
        sizes = [self._estimator.text(text) for text in texts]
        room = limit - self._estimator.messages(messages) + sum(sizes)
        # Providers refuse empty text, so a message without text still has the marker.
        floors = [1] * len(texts)
        if len(messages) == 1 and messages[0].role == "user" and len(texts) > 1:
            floors[0] = max(1, min(room // 2, room - len(texts)))
        parts = [
            Claim(size, partial(self._fit_text, text), size, minimum=min(floor, size))
            for text, size, floor in zip(texts, sizes, floors, strict=True)
        ]
        limits = allot(parts, room).limits
        short = [shorten(text, most, self._where, self._estimator) for text, most in zip(texts, limits, strict=True)]
        replacements = iter(short)
        shortened = tuple(
            _with_texts(message, [next(replacements).text for _ in _texts(message.blocks)]) for message in messages
        )
        kept_texts = {ref: text for cut in short for ref, text in cut.kept.items()}
        notes = [cut.cut for cut in short if cut.cut]
        if first:
            dropped = transcript(self._messages[:first])
            notes.insert(0, f"{first} of {len(self._messages)} messages; recall {reference(dropped)}")
            kept_texts[reference(dropped)] = dropped
        tokens = self._estimator.messages(shortened)
        return Trimmed(shortened, tuple(range(first, len(self._messages))), tokens, "; ".join(notes), kept_texts)

    def _fit_text(self, text: str, limit: int) -> int:
        return self._estimator.text(shorten(text, limit, self._where, self._estimator).text)

    def _that_fit_bare(self, limit: int) -> int:
        """The number of newest messages, in whole groups, that fit with nothing but the marker for text."""
        count = 0
        for group in reversed(groups(self._messages)):
            for message in group:
                sizes = [self._estimator.text(text) for text in _texts(message.blocks)]
                limit -= self._estimator.message(message) - sum(sizes) + sum(min(1, size) for size in sizes)
            if limit < 0:
                break
            count += len(group)
        return count


def transcript(messages: Iterable[Message]) -> str:
    """The messages as a readable transcript, with every word of them."""
    return "\n\n".join(f"{message.role}: " + "\n".join(map(_written, message.blocks)) for message in messages)


def _written(block: Block) -> str:
    match block:
        case Text() | Thinking():
            return block.text
        case ToolCall():
            return f"{block.name} {block.broken or encode(block.args).decode()}"
        case ToolResult():
            return "\n".join(map(_written, block.content))
        case Image() | Document():
            return f"[{block.media_type}, {len(block.data)} bytes]"


def _texts(blocks: Iterable[Block | Content]) -> list[str]:
    """The texts that may be shortened: not thinking, which is signed, and not calls."""
    texts: list[str] = []
    for block in blocks:
        match block:
            case Text():
                texts.append(block.text)
            case ToolResult():
                texts += _texts(block.content)
            case _:
                pass
    return texts


def _with_texts(message: Message, texts: list[str]) -> Message:
    """The message with its texts replaced by these, in order."""
    if texts == _texts(message.blocks):
        return message
    replacements = iter(texts)

    def content(part: Content) -> Content:
        return Text(next(replacements), part.signature) if isinstance(part, Text) else part

    def block(part: Block) -> Block:
        match part:
            case Text():
                return Text(next(replacements), part.signature)
            case ToolResult():
                return msgspec.structs.replace(part, content=tuple(map(content, part.content)))
            case _:
                return part

    return msgspec.structs.replace(message, blocks=tuple(map(block, message.blocks)))
