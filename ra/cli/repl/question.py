"""Tell a key that answers a question from one that was typed ahead, in mid-sentence or in a paste."""

import asyncio
import time
from collections.abc import Callable, Mapping

SEEN_S = 0.08  # nobody answers sooner after a question has appeared
QUIET_S = 1.0  # who is writing something must have paused that long
ALONE_S = 0.25  # an answer stands alone: keys that follow each other faster are a word or a paste


class QuestionPanel:
    """One question and its answer. Whoever reads the keyboard tells it the keys."""

    def __init__(self, text: str, keys: Mapping[str, str], *, clock: Callable[[], float] = time.monotonic) -> None:
        self.text = text
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.keys = keys
        self._clock = clock
        self._asked = clock()
        self._held = ""  # an answer, if nothing follows it
        self._timer: asyncio.TimerHandle | None = None

    def press(self, key: str, *, before: float, writing: bool) -> str:
        """A key; `before` is when the last one came, `writing` whether the input line holds a text.

        Gives back what was no answer but writing: that goes on.
        """
        now = self._clock()
        if self._timer is not None:
            if key in "\r\n":
                self._settle(self._held)  # many people press Enter after a letter
                return ""
            self._timer.cancel()
            held, self._held, self._timer = self._held, "", None
            return held + key
        if now - self._asked < SEEN_S or (writing and now - before < QUIET_S):
            return key
        if key.lower() not in self.keys:
            return key
        self._held = key.lower()
        self._timer = asyncio.get_running_loop().call_later(ALONE_S, self._settle, self._held)
        return ""

    def turn_away(self) -> None:
        self._settle("")

    def _settle(self, key: str) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self.answer.done():
            self.answer.set_result(key)
