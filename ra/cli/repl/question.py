"""Which key is an answer? One that was pressed for it: not typed ahead, not in mid-sentence, not part of a paste."""

import asyncio
import time
from collections.abc import Callable, Mapping

SEEN_S = 0.15  # nobody answers sooner after a question has appeared
TYPING_S = 1.5  # who pressed a key so shortly before it is writing something else …
QUIET_S = 1.0  # … and must have paused that long
BURST_S = 0.05  # keys that follow each other faster are a paste


class Question:
    """One question and its answer. Keys are told to it with the time of the key before."""

    def __init__(
        self,
        text: str,
        keys: Mapping[str, str],
        *,
        done: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.text = f"{text}  " + " · ".join(f"{key} {word}" for key, word in keys.items())
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._keys = keys
        self._clock = clock
        self._done = done
        self._asked = clock()
        self._typing = False
        self._settling: asyncio.TimerHandle | None = None

    def press(self, key: str, *, before: float) -> bool:
        """A key; `before` is when the last one came. False: it is no answer but typing, which goes on."""
        now = self._clock()
        self._typing = self._typing or self._asked - before < TYPING_S
        if self._settling is not None:
            if key in "\r\n":
                return True  # many people press Enter after a letter
            self._settling.cancel()
            self._settling, self._typing = None, True
            return False
        if now - self._asked < SEEN_S or (self._typing and now - before < QUIET_S):
            self._typing = True
            return False
        if key.lower() not in self._keys:
            return key in "\r\n"
        loop = asyncio.get_running_loop()
        self._settling = loop.call_later(BURST_S, self._settle, key.lower())
        return True

    def turn_away(self) -> None:
        self._settle("")

    def _settle(self, key: str) -> None:
        if not self.answer.done():
            self.answer.set_result(key)
            self._done()
