"""The requests of a session's model calls: pieces (sections, tools, messages), as changes from call to call."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ra.bench.trace import RecordedCall, Trace
from ra.context.tokens import source_of
from ra.context.view import View
from ra.core.facts import Said, Spent
from ra.core.messages import Message, say
from ra.core.model import Section, ToolSpec

UNSEEN = say("system", "The system prompt and the tools are not part of this transcript.", name="system and tools")
"""Represents what the transcripts of other agents do not show; the first bill gives its size."""

Content = Message | Section | ToolSpec


class RequestChange(NamedTuple):
    """One request: how many pieces of the previous one it begins with, and the numbers of the following ones."""

    keep: int
    added: list[int]
    reply: int


class Requests:
    """The requests of all calls of a trace, and their pieces.

    A session of ra is folded as it was sent. Another agent's transcript shows only the conversation, with the
    compactions that it recorded.
    """

    def __init__(self, trace: Trace, *, own: bool) -> None:
        self._trace = trace
        self._numbers: dict[int, int] = {}  # id of a content → its number; `contents` prevents the reuse of ids
        self.contents: list[Content] = []
        self.positions: list[int] = []
        self.sent: list[RequestChange] = []
        self._said = {id(event.fact.message): event.at for event in trace.events if isinstance(event.fact, Said)}
        before: Sequence[Content] = ()
        for call, contents, places in _own(trace) if own else _foreign(trace):
            keep = _common(before, contents)
            added = [self._number(content, places) for content in contents[keep:]]
            self.sent.append(RequestChange(keep, added, self._number(call.message, places)))
            before = contents

    def tokens(self, number: int) -> int:
        """In the model's own count."""
        content, trace = self.contents[number], self._trace
        match content:
            case Message():
                return trace.base if content is UNSEEN else trace.size(content)
            case Section():
                return round(trace.estimator.section(content) * trace.factor)
            case ToolSpec():
                return round(trace.estimator.tools((content,)) * trace.factor)

    def source(self, number: int) -> str:
        match self.contents[number]:
            case Message() as message:
                return source_of(message)
            case Section(name=name):
                return name
            case ToolSpec():
                return "tools"

    def role(self, number: int) -> str:
        content = self.contents[number]
        return "system" if isinstance(content, ToolSpec) else content.role

    def _number(self, content: Content, places: "dict[int, int]") -> int:
        number = self._numbers.get(id(content))
        if number is None:
            number = self._numbers[id(content)] = len(self.contents)
            self.contents.append(content)
            self.positions.append(self._said.get(id(content)) or places.get(id(content), 0))
        return number


def _common(before: Sequence[Content], after: Sequence[Content]) -> int:
    if tuple(after[: len(before)]) == tuple(before):  # nearly always, and at the speed of C
        return len(before)
    pairs = enumerate(zip(before, after, strict=False))
    return next((index for index, (old, new) in pairs if old != new), min(len(before), len(after)))


def _foreign(trace: Trace) -> Iterator[tuple[RecordedCall, tuple[Content, ...], dict[int, int]]]:
    """The recorded requests, after what the transcript does not show."""
    messages: list[Message] = []
    for call, sent in zip(trace.calls, trace.sent, strict=True):
        del messages[sent.keep :]
        messages += sent.added
        yield call, (UNSEEN, *messages), {}


def _own(trace: Trace) -> Iterator[tuple[RecordedCall, tuple[Content, ...], dict[int, int]]]:
    """The fold that the engine sends from, at each call."""
    view, event_count = View(trace.estimator), 0
    for call in trace.calls:
        for event in trace.events[event_count : call.place]:
            view.apply(event)
        simple = all(isinstance(event.fact, Said | Spent) for event in trace.events[event_count : call.place])
        event_count = call.place
        tools = view.configured.tools if view.configured else ()
        groups = view.groups[-2:] if simple else view.groups  # a rewrite may change the form of any group
        places = {id(message): group.at for group in groups for message in view.shown(group)}
        yield call, (*tools, *view.sections, *view.messages), places
