"""Animates one line on stderr during silence: elapsed time, tokens and dollars, or the wait before a retry."""

import asyncio
import shutil
import time
from decimal import Decimal

from ra.cli.output import RetryWait, Streams
from ra.core.events import Event, RunEnded, RunStopped, TextDelta, ThinkingDelta, ToolStarted, TurnEnded

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
PATIENCE_S = 0.4  # shorter silences need no spinner


class Spinner:
    def __init__(self, streams: Streams) -> None:
        self.streams = streams
        self._began = self._spoke = time.monotonic()
        self._tokens = 0
        self._dollars = Decimal(0)
        self._doing = "thinking"
        self._drawn = False
        self._retry = RetryWait()
        self._task = asyncio.get_running_loop().create_task(self._turn())

    def hear(self, event: Event) -> None:
        self._wipe()
        self._spoke = time.monotonic()
        self._retry.hear(event)
        match event:
            case TurnEnded(_, _, usage, dollars):
                self._tokens += usage.total_input + usage.output
                self._dollars += Decimal(dollars or 0)
            case ToolStarted(call):
                self._doing = call.name
            case TextDelta() | ThinkingDelta():
                self._doing = "writing"
            case RunStopped():
                self._doing = "counting what was used"
            case RunEnded():
                self.stop()
            case _:
                self._doing = "thinking"

    def stop(self) -> None:
        self._task.cancel()
        self._wipe()

    async def _turn(self) -> None:
        number = 0
        while True:
            await asyncio.sleep(0.1)
            now = time.monotonic()
            line = self._retry.line
            # While the line contains text of the answer, nothing may be drawn over it.
            if self.streams.asking or (not line and (now - self._spoke < PATIENCE_S or self._doing == "writing")):
                continue
            number += 1
            if not line:
                spent = f" · {self._tokens:,} tokens · ${self._dollars:.4f}" if self._tokens else ""
                frame = FRAMES[number % len(FRAMES)]
                line = f"{frame} {self._doing} {now - self._began - self.streams.asked_s:.0f} s{spent}"
            room = shutil.get_terminal_size().columns - len("^C") - 1  # which the terminal itself prints after it
            self.streams.err(f"\r\x1b[2K{line[:room]}")
            self._drawn = True

    def _wipe(self) -> None:
        if self._drawn:
            self.streams.err("\r\x1b[2K")
            self._drawn = False
