"""Distinguishes a key that answers a question from one that was typed ahead, in mid-sentence or in a paste."""

import asyncio
import time
from collections.abc import Callable, Mapping

SEEN_S = 0.08  # nobody answers sooner after a question has appeared
QUIET_S = 1.0  # a user who is writing must have paused this long
ALONE_S = 0.25  # an answer is a single key: keys in faster succession are a word or a paste


class QuestionPanel:
    """One question and its answer. The reader of the keyboard passes the keys to it."""

    def __init__(self, text: str, keys: Mapping[str, str], *, clock: Callable[[], float] = time.monotonic) -> None:
        self.text = text
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.keys = keys
        self.hinted = False  # Enter alone answers nothing: the panel says what does
        self._clock = clock
        self._asked = clock()
        self._held = ""  # an answer, unless another key follows
        self._timer: asyncio.TimerHandle | None = None

    def press(self, key: str, *, before: float, writing: bool) -> str:
        """Handles a key; `before` is the time of the previous one, `writing` whether the input line contains text.

        Returns the keys that were not an answer: they belong to the input line.
        """
        now = self._clock()
        if self._timer is not None:
            if key in "\r\n":
                self._settle(self._held)  # many people press Enter after a letter
                return ""
            self._timer.cancel()
            held, self._held, self._timer = self._held, "", None
            return held + key
        self.hinted = self.hinted or key in ("\r", "\n")
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
