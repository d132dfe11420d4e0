"""Retries failed calls: the only retry layer."""

import asyncio
import math
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing

from ra.core.errors import BadStream, Unavailable
from ra.core.events import Broken, Retrying, Sent, Streamed, TextDelta, ThinkingDelta
from ra.core.messages import Message
from ra.core.model import Reply, Usage

Attempt = Callable[[], AsyncGenerator[Streamed, None]]

TRIES = 5
PATIENCE_S = 120.0
"""No attempt starts later than this after the first failure. Time in which an answer was streaming does not count, and
a stall counts from its beginning, so that ra does not wait twice for a server that hangs."""

_FIRST_WAIT_S = 0.5
_GROWTH = 3.0  # 0.5, 1.5, 4.5, 13.5 s: a brief failure goes unnoticed, an overload gets 20 s


class Retries:
    """The limits of retrying. Clock, sleep and chance are parameters, so that tests need no real time."""

    def __init__(
        self,
        *,
        tries: int = TRIES,
        patience_s: float = PATIENCE_S,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.tries = tries
        self.patience_s = patience_s
        self.sleep = sleep
        self.clock = clock
        self.chance = chance

    def wait_s(self, failed: int, asked_s: float | None) -> float:
        """The wait after the nth failure, never shorter than the server asked for."""
        if asked_s is not None and asked_s > 0:
            return asked_s * (1 + 0.1 * self.chance())
        return _FIRST_WAIT_S * _GROWTH ** (failed - 1) * (0.75 + 0.5 * self.chance())


async def stream(attempt: Attempt, retries: Retries) -> AsyncGenerator[Streamed, None]:
    """One answer, from as many attempts as it takes. Raises the last attempt's error.

    Text that was shown is not repeated: a new attempt is silent while it equals the old text, and starts over, with a
    Retrying event, as soon as it differs.
    """
    shown = _Shown()
    deadline: float | None = None
    for number in range(1, retries.tries + 1):
        begun = last_heard = retries.clock()
        sent = answered = False
        try:
            async with aclosing(attempt()) as answer:
                async for item in answer:
                    last_heard = retries.clock()
                    sent = sent or isinstance(item, Sent)
                    answered = answered or not isinstance(item, Sent)
                    for visible in shown.show(item):
                        yield visible
            return
        except (Unavailable, BadStream) as failed:
            error = failed
        if isinstance(error, BadStream) or (sent and _stalled(error)):
            yield _broken(error)
        enough = error.tries if isinstance(error, Unavailable) else None
        tries = min(retries.tries, enough or retries.tries)
        if number >= tries:
            raise error
        now = retries.clock()
        failed_at = last_heard if _stalled(error) else now
        if deadline is None:
            deadline = failed_at + retries.patience_s
        elif answered:
            deadline += failed_at - begun
        wait_s = _wait_s(retries, error, number, left_s=deadline - now)
        yield Retrying(str(error), wait_s, retries=tries - 1)
        await retries.sleep(wait_s)
        shown.begin_again(str(error))


def _broken(error: Unavailable | BadStream) -> Broken:
    """The part of an answer that arrived. The server had begun it, or may still be working on it, and bills it."""
    partial, usage = (error.partial, error.usage) if isinstance(error, BadStream) else (None, Usage())
    return Broken(partial or Message("assistant", ()), usage, str(error))


def _stalled(error: BaseException) -> bool:
    """Whether the attempt failed because nothing arrived for too long."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, TimeoutError):
        cause = cause.__cause__
    return cause is not None


def _wait_s(retries: Retries, error: Unavailable | BadStream, number: int, *, left_s: float) -> float:
    """The wait before the next attempt. Raises the error if that would be too long."""
    # An error inside an answer that had begun is wrapped in a BadStream with the partial answer.
    source = error if isinstance(error, Unavailable) else error.__cause__
    asked_s = source.retry_after_s if isinstance(source, Unavailable) else None
    if asked_s is not None and asked_s > left_s:
        text = f"{error} The server asks ra to wait {_span(asked_s)}, which is longer than ra waits. Try again then."
        raise Unavailable(text, status=error.status, retry_after_s=asked_s) from error
    wait_s = retries.wait_s(number, asked_s)
    if asked_s is not None:
        return min(wait_s, max(asked_s, left_s))
    if wait_s > left_s:
        raise error
    return wait_s


def _span(seconds: float) -> str:
    """A duration for the user, rounded up: `45 s`, `12 min`, `3 h`."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{math.ceil(seconds / size)} {unit}"
    return f"{math.ceil(seconds)} s"


class _Shown:
    """The text that the user has seen, and how much of it the current attempt has repeated."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._seen = ""  # by earlier attempts
        self._at = 0  # how much of it this attempt has repeated
        self._reason = ""

    def begin_again(self, reason: str) -> None:
        self._seen = "".join(self._pieces)
        self._pieces = [self._seen]
        self._at = 0
        self._reason = reason

    def show(self, item: Streamed) -> Iterator[Streamed]:
        behind = self._at < len(self._seen)
        if isinstance(item, TextDelta):
            yield from self._follow(item.text) if behind else self._say(item.text)
        elif isinstance(item, Reply):
            if behind:  # the new answer is shorter
                yield from self._restart(self._seen[: self._at])
            yield item
        elif not (behind and isinstance(item, ThinkingDelta)):
            yield item

    def _follow(self, text: str) -> Iterator[Streamed]:
        ahead = self._seen[self._at :]
        if ahead.startswith(text):
            self._at += len(text)
        elif text.startswith(ahead):
            self._at = len(self._seen)
            yield from self._say(text[len(ahead) :])
        else:
            yield from self._restart(self._seen[: self._at] + text)

    def _restart(self, text: str) -> Iterator[Streamed]:
        self._seen, self._at, self._pieces = "", 0, []
        yield Retrying(self._reason, 0.0, restart=True)
        if text:
            yield from self._say(text)

    def _say(self, text: str) -> Iterator[Streamed]:
        self._pieces.append(text)
        yield TextDelta(text)
