"""How is a model on a server called? A dialect over a transport, tried again where that helps."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from ra.core.errors import BadStream, Unavailable
from ra.core.events import Streamed
from ra.core.model import ModelInfo, Reply, Request, Usage
from ra.providers import retry
from ra.providers.wire import Dialect, Reader, Transport


class WireProvider:
    """A Provider: what the dialect says, carried by the transport. `info` knows the rows of the models it may call."""

    def __init__(
        self,
        dialect: Dialect,
        transport: Transport,
        info: Callable[[str], ModelInfo],
        retries: retry.Retries | None = None,
    ) -> None:
        self.name: str = dialect.name
        self._dialect = dialect
        self._transport = transport
        self._info = info
        self._retries = retries or retry.Retries()

    def stream(self, request: Request) -> AsyncGenerator[Streamed, None]:
        return retry.stream(lambda: self._attempt(request), self._retries)

    async def close(self) -> None:
        await self._transport.close()

    async def _attempt(self, request: Request) -> AsyncGenerator[Streamed, None]:
        reader = self._dialect.reader(request.model)
        body = self._dialect.body(request, self._info(request.model))
        broken: Unavailable | BadStream | None = None
        told = reader.usage
        try:
            async with aclosing(self._transport.events(self._dialect, request, body)) as events:
                async for event in events:
                    for delta in reader.feed(event):
                        yield delta
                    if reader.usage != told:
                        yield (told := reader.usage)
        except (Unavailable, BadStream) as error:
            broken = error
        yield _end(reader, broken)


def _end(reader: Reader, broken: Unavailable | BadStream | None) -> Reply:
    """The answer, if it was complete; what broke after its end does no harm. Raises what broke, with what had come."""
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
