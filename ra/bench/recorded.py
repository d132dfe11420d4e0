"""Folds a recorded conversation into the messages of each of its calls."""

from collections.abc import Sequence

from ra.context.engine import cache_marks
from ra.context.render import HANDOVER
from ra.context.tokens import Estimator
from ra.context.view import View
from ra.core.facts import Checkpointed, Edited, Rewrite, Rotated, Said, Spent, TimelineEvent
from ra.core.messages import Message, say
from ra.core.model import Marks, Section, ToolSpec


def is_own(events: Sequence[TimelineEvent]) -> bool:
    """Whether ra itself sent it. Only ra's bills say what the requests contained; an imported session has others."""
    return any(isinstance(event.fact, Spent) and event.fact.parts for event in events)


class OwnRequests:
    """A session of ra: the fold that the engine sends from."""

    def __init__(self, estimator: Estimator) -> None:
        self._view = View(estimator)
        self.rewritten = False

    def hear(self, event: TimelineEvent) -> None:
        self._view.apply(event)
        self.rewritten |= isinstance(event.fact, Rewrite)

    @property
    def messages(self) -> tuple[Message, ...]:
        return self._view.messages

    @property
    def fixed(self) -> tuple[ToolSpec | Section, ...]:
        """What precedes the messages, as far as the session shows it."""
        request = self._view.request()
        return (*request.tools, *request.sections)

    def marks(self) -> Marks:
        """The cache marks, as the engine sets them."""
        gap = self._view.newest_gap() if self.rewritten else None
        return cache_marks(self._view.request(), cut=self.rewritten, gap=gap)


class ForeignRequests:
    """Another agent's session: the conversation, with the compactions that it recorded."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._places: list[int] = []
        self.rewritten = False

    def hear(self, event: TimelineEvent) -> None:
        match event.fact:
            case Said(message):
                self._messages.append(message)
                self._places.append(event.at)
            case Checkpointed() as checkpoint:
                self._hide(checkpoint.hidden, checkpoint.summary or checkpoint.marker)
            case Rotated() as rotation:
                self._hide(((0, rotation.keep_from - 1),), rotation.handover)
            case Edited(messages=messages):
                self._messages, self._places = list(messages), [event.at] * len(messages)
                self.rewritten = True
            case _:
                pass

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(self._messages)

    @property
    def fixed(self) -> tuple[ToolSpec | Section, ...]:
        return ()

    def marks(self) -> Marks:
        """The marks of other agents, as far as bills show them: the system part, and the last two turns."""
        last = len(self._messages) - 1
        answers = (index for index in range(last, 0, -1) if self._messages[index].role == "assistant")
        before = next(answers, 0) - 1
        return Marks(False, (), tuple(index for index in (before, last) if index >= 0))

    def _hide(self, ranges: Sequence[tuple[int, int]], stand_in: str) -> None:
        visible = [
            (message, at)
            for message, at in zip(self._messages, self._places, strict=True)
            if at and not any(first <= at <= last for first, last in ranges)
        ]
        opening = [(say("user", stand_in, name=HANDOVER), 0)] if stand_in else []
        self._messages = [message for message, _ in (*opening, *visible)]
        self._places = [at for _, at in (*opening, *visible)]
        self.rewritten = True


def requests_of(events: Sequence[TimelineEvent], estimator: Estimator) -> OwnRequests | ForeignRequests:
    """The fold for these events; a caller that has used a request resets `rewritten`."""
    return OwnRequests(estimator) if is_own(events) else ForeignRequests()
