"""Strategies of other systems that ra does not offer, for comparison."""

from collections.abc import Sequence
from decimal import Decimal

import msgspec

from ra.bench.replay import Sent
from ra.bench.trace import RecordedCall, Trace
from ra.core.facts import Said, TimelineEvent
from ra.core.messages import Message, Text, ToolResult
from ra.core.model import Usage

MASKED = "[old tool output hidden]"
LAST = 10  # tool results that a rolling mask keeps
PROTECTED = 20_000  # newest tokens that pruning leaves alone
BATCH = 40_000  # tokens of old tool output that make pruning worth a rewritten cache


class Nothing:
    """Sends everything, always. Needs a window that is large enough."""

    name = "nothing"

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._messages: list[Message] = []

    def hear(self, event: TimelineEvent) -> None:
        if isinstance(event.fact, Said):
            self._messages.append(event.fact.message)

    def send(self, call: RecordedCall) -> Sent:
        return Sent(tuple(self._messages), rolling(self._messages))

    def billed(self, call: RecordedCall, usage: Usage, dollars: Decimal) -> None:
        pass

    def close(self) -> None:
        pass


class Recorded(Nothing):
    """The requests that were sent: ra's own as its engine folds them, another agent's as far as it recorded them."""

    name = "recorded"

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self._requests = iter(trace.sent)

    def hear(self, event: TimelineEvent) -> None:
        pass

    def send(self, call: RecordedCall) -> Sent:
        request = next(self._requests)
        del self._messages[request.keep :]
        self._messages += request.added
        return Sent(
            tuple(self._messages),
            request.marks.messages,
            rewritten=request.rewritten,
            fixed=request.fixed,
            fixed_marks=request.marks,
            paid=request.paid,
            unmarked=self._trace.unmarked,
        )


class Limited(Nothing):
    """Drops the oldest groups in one step, down to half of the limit, if a request would exceed it."""

    name = "drop-oldest"

    def __init__(self, trace: Trace, limit: int) -> None:
        super().__init__(trace)
        self._limit = limit

    def send(self, call: RecordedCall) -> Sent:
        changed = self._tidy()
        total = self._trace.base + sum(map(self._trace.size, self._messages))
        if total > self._limit:
            end = 1
            while end < len(self._messages) - 1 and (total > self._limit // 2 or self._messages[end].role == "tool"):
                total -= self._trace.size(self._messages[end])
                end += 1
            del self._messages[1:end]
            changed = 1
        marks = rolling(self._messages)
        if changed is not None:
            marks = [changed - 1, marks[-1]]  # the end of the unchanged part, so that it is read from the cache
        return Sent(tuple(self._messages), marks, rewritten=changed is not None)

    def _tidy(self) -> int | None:
        """Changes what was sent before; returns the index of the first changed message."""
        return None


class RollingMask(Limited):
    """Before every call, hides all tool output except the newest results."""

    name = "rolling-mask"

    def __init__(self, trace: Trace, limit: int, last: int = LAST) -> None:
        super().__init__(trace, limit)
        self._last = last

    def _tidy(self) -> int | None:
        return self._mask(self._shown()[: -self._last])

    def _shown(self) -> list[int]:
        return [
            index for index, message in enumerate(self._messages) if message.role == "tool" and not is_masked(message)
        ]

    def _mask(self, indexes: Sequence[int]) -> int | None:
        for index in indexes:
            self._messages[index] = masked(self._messages[index])
        return indexes[0] if indexes else None


class BatchPrune(RollingMask):
    """Hides old tool output once a whole batch of it has accumulated."""

    name = "batch-prune"

    def __init__(self, trace: Trace, limit: int, protected: int = PROTECTED, batch: int = BATCH) -> None:
        super().__init__(trace, limit)
        self._protected = protected
        self._batch = batch

    def _tidy(self) -> int | None:
        size = self._trace.size
        protected, index = self._protected, len(self._messages)
        while index and protected >= 0:
            index -= 1
            protected -= size(self._messages[index])
        old_results = [at for at in self._shown() if at < index]
        return self._mask(old_results if sum(size(self._messages[at]) for at in old_results) >= self._batch else [])


def is_masked(message: Message) -> bool:
    return any(isinstance(block, ToolResult) and block.content == (Text(MASKED),) for block in message.blocks)


def masked(message: Message) -> Message:
    """A tool result without its output."""
    blocks = tuple(
        msgspec.structs.replace(block, content=(Text(MASKED),)) if isinstance(block, ToolResult) else block
        for block in message.blocks
    )
    return msgspec.structs.replace(message, blocks=blocks)


def rolling(messages: Sequence[Message]) -> list[int]:
    """Marks on the last message and at the end of the previous request."""
    last = len(messages) - 1
    answer = next((index for index in range(last, 0, -1) if messages[index].role == "assistant"), 0)
    return [index for index in (answer - 1, last) if index >= 0]
