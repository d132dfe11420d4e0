"""Calls a model on a server: a dialect over a transport, with retries."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from ra.core.errors import BadStream, Overflowed, Unavailable
from ra.core.events import Sent, Streamed
from ra.core.model import ModelInfo, Reply, Request, Usage
from ra.core.value import JsonObject, encode
from ra.providers import retry
from ra.providers.errors import UnexplainedRefusal
from ra.providers.overflow import Unexplained
from ra.providers.wire import SENT, Dialect, Reader, Transport

ANSWER = 3
"""Time limit of an answer, as a multiple of the longest silence: an answer that drips would never end otherwise."""


class WireProvider:
    """A Provider that speaks a dialect over a transport. `info` returns the catalog row of a model.

    `timeout_s` is the longest time without an event, whatever other bytes the server sends.
    """

    def __init__(
        self,
        dialect: Dialect,
        transport: Transport,
        info: Callable[[str], ModelInfo],
        retries: retry.Retries | None = None,
        *,
        timeout_s: float = 600,
    ) -> None:
        self.name: str = dialect.name
        self._dialect = dialect
        self._transport = transport
        self._info = info
        self._retries = retries or retry.Retries()
        self._timeout_s = timeout_s
        self._unexplained = Unexplained()

    def stream(self, request: Request) -> AsyncGenerator[Streamed, None]:
        return retry.stream(lambda: self._attempt(request), self._retries)

    async def close(self) -> None:
        await self._transport.close()

    async def _attempt(self, request: Request) -> AsyncGenerator[Streamed, None]:
        body = self._dialect.body(request, self._info(request.model))
        size_bytes = len(encode(body))
        begun = False
        try:
            async with aclosing(self._answer(request, body, size_bytes)) as answer:
                async for item in answer:
                    begun = begun or not isinstance(item, Sent)
                    yield item
            return
        except UnexplainedRefusal as error:
            first = self._unexplained.is_first(str(error))
            if begun or not self._unexplained.may_be_overflow(size_bytes, str(error)):
                raise
            if not first:
                raise Overflowed(str(error), status=error.status, suspected=True) from error
        # A faulty proxy refuses one request and accepts the next: only a repeated refusal suggests an overflow.
        try:
            async with aclosing(self._answer(request, body, size_bytes)) as answer:
                async for item in answer:
                    yield item
        except UnexplainedRefusal as error:
            raise Overflowed(str(error), status=error.status, suspected=True) from error

    async def _answer(self, request: Request, body: JsonObject, size_bytes: int) -> AsyncGenerator[Streamed, None]:
        reader = self._dialect.reader(request.model)
        broken: Unavailable | BadStream | None = None
        usage = reader.usage
        try:
            async with aclosing(self._transport.events(self._dialect, request, body)) as events:
                async for event in _paced(events, self._timeout_s):
                    if event is SENT:
                        yield Sent()
                        continue
                    for delta in reader.feed(event):
                        yield delta
                    if reader.usage != usage:
                        yield (usage := reader.usage)
        except (Unavailable, BadStream) as error:
            broken = error
        reply = _end(reader, broken)
        self._unexplained.take(size_bytes)  # before the reply, after which a caller may close the stream
        yield reply


async def _paced(events: AsyncGenerator[JsonObject, None], silence_s: float) -> AsyncGenerator[JsonObject, None]:
    """Passes on the events. Raises BadStream if the next event, or the whole answer, takes too long."""
    loop = asyncio.get_running_loop()
    end = loop.time() + silence_s * ANSWER
    while True:
        left_s = end - loop.time()
        try:
            # The transport has its own time-out with a better message: it fires first if no bytes arrive at all.
            async with asyncio.timeout(min(silence_s + 0.5, left_s)):
                event = await anext(events)
        except StopAsyncIteration:
            return
        except TimeoutError as error:
            what = (
                f"no event for {silence_s:g} s"
                if left_s > silence_s + 0.5
                else f"no complete answer within {silence_s * ANSWER:g} s"
            )
            raise BadStream(f"The answer had {what}; app.providers.NAME.timeout allows more.") from error
        yield event


def _end(reader: Reader, broken: Unavailable | BadStream | None) -> Reply:
    """The answer, if complete: a failure after its end is harmless. Otherwise raises it, with the partial answer."""
    try:
        return reader.finish()
    except BadStream as cut:
        if broken is None:
            raise
        if cut.usage == Usage() and not (cut.partial and cut.partial.blocks):
            raise broken from broken.__cause__
        error = BadStream(str(broken), partial=cut.partial, usage=cut.usage)
        error.status = broken.status
        raise error from broken
