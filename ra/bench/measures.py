"""Measures what a model still sees: names, lines and user sentences, with and without what only an index shows."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from typing import NamedTuple

from ra.bench.trace import RecordedCall, Trace
from ra.context.compaction.names import identifiers, spoken, strings, texts
from ra.context.compaction.quotes import typed_text
from ra.context.compaction.sentences import sentences
from ra.context.render import COMPACTED, HANDOVER
from ra.core.facts import Said
from ra.core.messages import Message, Text
from ra.core.value import same_head
from ra.costs.promptcache import CachePiece

LEAST_LINE = 25  # characters; shorter lines recur by chance
MOST_NEEDED = 400  # lines of one call that count: a rewritten file is not remembered line by line
_NUMBERED = re.compile(r"\s*\d+(?:\t|→|: ?|\| ?)")  # how tools number the lines of a file
_SUMMARY = "<compacted-context>"

Feature = str | int
"""A name; a line, after a line break; the number of a sentence that the user typed."""


class Need(NamedTuple):
    """What one call uses again: names and lines from before it, and how many sentences the user had typed."""

    names: frozenset[str]
    lines: dict[str, Message]  # each with the last message that contained it, which would have to be read again
    sentences: int


class Visible(NamedTuple):
    """How much of the needed was visible."""

    names: int
    lines: int
    sentences: int


class TraceNames:
    """What a trace's calls need, and which of it each message contains. Shared by all replays of the trace."""

    def __init__(self, trace: Trace) -> None:
        self._features: dict[int, tuple[Message, frozenset[Feature]]] = {}
        self._stand_ins: dict[int, tuple[Message, frozenset[Feature]]] = {}  # of messages that a strategy made
        self.pieces: dict[int, tuple[Message, list[CachePiece]]] = {}
        self.needs: list[Need] = []
        self._wanted = frozenset(line for call in trace.calls for line in lines_asked(call.message))
        self._sentences: list[str] = []
        calls = {call.place: call for call in trace.calls}
        seen: set[str] = set()
        holders: dict[str, Message] = {}
        for place, event in enumerate(trace.events):
            if place in calls:
                self.needs.append(self._need(calls[place], seen, holders))
            if isinstance(event.fact, Said):
                message = event.fact.message
                if message.role == "user" and not message.name:
                    text = typed_text(message)
                    self._sentences += (text[one.start : one.end].strip() for one in sentences(text))
                features = frozenset(self._read(message))
                self._features[id(message)] = (message, features)
                for feature in features:
                    if isinstance(feature, str) and feature[0] == "\n":
                        holders[feature] = message
                    elif isinstance(feature, str):
                        seen.add(feature)

    def resized(self) -> "TraceNames":
        """A copy for a replay in which messages have other sizes."""
        twin = copy(self)
        twin.pieces = {}
        return twin

    def of(self, message: Message) -> frozenset[Feature]:
        cached = self._features.get(id(message)) or self._stand_ins.get(id(message))
        if cached is None:
            cached = self._stand_ins[id(message)] = (message, frozenset(self._read(message)))
        return cached[1]

    def forget(self, shown: Sequence[Message] = ()) -> None:
        """Drop what was read of messages that a strategy made and that are not shown any more: indexes are large."""
        for key in self._stand_ins.keys() - set(map(id, shown)):
            del self._stand_ins[key]
            self.pieces.pop(key, None)

    def _need(self, call: RecordedCall, seen: set[str], holders: dict[str, Message]) -> Need:
        lines = [line for line in lines_asked(call.message) if line in holders]
        return Need(asked(call.message) & seen, {line: holders[line] for line in lines}, len(self._sentences))

    def _read(self, message: Message) -> Iterator[Feature]:
        yield from spoken(message)
        pieces = list(texts(message))
        if self._wanted:
            for text in pieces:
                yield from self._wanted.intersection(_lines(text))
        if message.role == "user":
            words = "\n".join(pieces)
            yield from (number for number, sentence in enumerate(self._sentences) if sentence in words)


class Sight:
    """What the model sees, as a bag that follows the conversation from request to request."""

    def __init__(self, memory: TraceNames) -> None:
        self._memory = memory
        self._messages: Sequence[Message] = ()
        self._bag: Counter[Feature] = Counter()
        self._stand_ins: Counter[Feature] = Counter()

    def look(self, messages: Sequence[Message]) -> None:
        """Sets the messages that the model sees now."""
        matching = same_head(self._messages, messages)
        for message in self._messages[matching:]:
            self._bag.subtract(self._memory.of(message))
            if _stands_in(message):
                self._stand_ins.subtract(self._memory.of(message))
        for message in messages[matching:]:
            self._bag.update(self._memory.of(message))
            if _stands_in(message):
                self._stand_ins.update(self._memory.of(message))
        self._messages = messages

    def sees(self, need: Need) -> Visible:
        bag = self._bag
        return Visible(
            sum(bag[name] > 0 for name in need.names),
            sum(bag[line] > 0 for line in need.lines),
            sum(bag[number] > 0 for number in range(need.sentences)),
        )

    def sees_without_index(self, need: Need) -> Visible:
        bag, stand_ins = self._bag, self._stand_ins
        return Visible(
            sum(bag[name] > stand_ins[name] for name in need.names),
            sum(bag[line] > stand_ins[line] for line in need.lines),
            sum(bag[number] > stand_ins[number] for number in range(need.sentences)),
        )

    def gone(self, need: Need) -> list[Message]:
        """The messages that would have to be read again for the lines that are not visible."""
        sources = {id(source): source for line, source in need.lines.items() if not self._bag[line] > 0}
        return list(sources.values())


def asked(message: Message) -> frozenset[str]:
    """The identifiers in the arguments of its tool calls."""
    return identifiers("\n".join(text for call in message.calls for text in strings(call.args)))


def lines_asked(message: Message) -> list[str]:
    """The lines in the arguments of its tool calls, each after a line break."""
    lines = (line for call in message.calls for text in strings(call.args) for line in _lines(text))
    return list(dict.fromkeys(lines))[:MOST_NEEDED]


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        bare = _NUMBERED.sub("", line, count=1).strip()
        if len(bare) >= LEAST_LINE:
            yield "\n" + bare


def _stands_in(message: Message) -> bool:
    """Whether it is an index, a summary or a handover, which nobody said."""
    if message.name in (COMPACTED, HANDOVER):
        return True
    last = message.blocks[-1] if message.blocks else None
    return message.role == "user" and isinstance(last, Text) and last.text.startswith(_SUMMARY)
