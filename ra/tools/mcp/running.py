"""The tool calls that are at work: who may be asked about them, and how long they may still take."""

import asyncio
import contextlib
from collections.abc import Iterator

from ra.core.asking import Asker
from ra.core.functions import Emit
from ra.core.messages import ToolCall


class RunningCall:
    """A call that has a `deadline`, which stands still while somebody else is waited for."""

    def __init__(self, call: ToolCall, deadline: asyncio.Timeout, ask: Asker | None, emit: Emit) -> None:
        self.call = call
        self.ask = ask
        self.emit = emit
        self._deadline = deadline
        self._seconds_left: float | None = None
        self._pauses = 0

    def pause(self) -> None:
        self._pauses += 1
        end = self._deadline.when()
        if self._pauses == 1 and end is not None:
            self._seconds_left = end - asyncio.get_running_loop().time()
            self._deadline.reschedule(None)

    def go_on(self) -> None:
        self._pauses -= 1
        if self._pauses == 0 and self._seconds_left is not None:
            self._deadline.reschedule(asyncio.get_running_loop().time() + self._seconds_left)


class RunningCalls:
    """Those of one session."""

    def __init__(self) -> None:
        self._calls: list[RunningCall] = []

    def begin(self, call: ToolCall, deadline: asyncio.Timeout, ask: Asker | None, emit: Emit) -> None:
        self._calls.append(RunningCall(call, deadline, ask, emit))

    def end(self, call: ToolCall) -> None:
        self._calls = [running for running in self._calls if running.call is not call]

    def of(self, server: str) -> RunningCall | None:
        """The latest call to a tool of an MCP server, by the name that its tools begin with."""
        return next((call for call in reversed(self._calls) if call.call.name.startswith(f"{server}__")), None)

    @contextlib.contextmanager
    def paused(self, server: str) -> Iterator[None]:
        """The time in which a server waits for us or for a person is not its own."""
        calls = [call for call in self._calls if call.call.name.startswith(f"{server}__")]
        for call in calls:
            call.pause()
        try:
            yield
        finally:
            for call in calls:
                if call in self._calls:
                    call.go_on()
