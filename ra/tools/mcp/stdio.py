"""Talk to an MCP server that is a program: line by line, with a reaper over it that outlives ra.

The SDK's own transport hands no descriptors on, which the reaper needs, and keeps lines of any length in memory.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from ra.system.launch import under_reaper
from ra.system.process import Ends, end_piped, start_piped

MAX_LINE_BYTES = 32 << 20
LEAVE_S = 0.5
"""How long a server may take to end by itself when its input closes."""


class Program:
    """A server that is started with its streams. It sets `ended` when it closes its stdout.

    `last_words` is the end of what it wrote on stderr.
    """

    def __init__(self, argv: list[str], *, cwd: str, env: dict[str, str], ended: asyncio.Event) -> None:
        self._argv, self._cwd, self._env = argv, cwd, env
        self._stderr = Ends(0, 4000)
        self._ended = ended

    @property
    def last_words(self) -> str:
        lines = [line.strip() for line in self._stderr.text().splitlines()]
        return next((line for line in reversed(lines) if line and not line.startswith("[…")), "")

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Any, Any]]:
        """What the SDK reads from and writes to. Raises OSError when the program cannot be started."""
        import anyio

        process = await start_piped(
            under_reaper(self._argv, cwd=str(self._cwd)), cwd=self._cwd, env=self._env, limit=MAX_LINE_BYTES
        )
        from_server, incoming = anyio.create_memory_object_stream[Any](0)
        outgoing, to_server = anyio.create_memory_object_stream[Any](0)
        pumps = [
            asyncio.create_task(self._read(process, from_server)),
            asyncio.create_task(_write(process, to_server)),
            asyncio.create_task(self._listen(process)),
        ]
        try:
            yield incoming, outgoing
        finally:
            await asyncio.shield(asyncio.create_task(end_piped(process, grace_s=LEAVE_S)))
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            for stream in (from_server, incoming, outgoing, to_server):
                stream.close()

    async def _read(self, process: asyncio.subprocess.Process, stream: Any) -> None:
        import anyio
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        assert process.stdout
        try:
            while line := await process.stdout.readline():
                if not line.strip():
                    continue
                try:
                    message = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
                except ValueError:
                    continue  # a line of log on stdout; the protocol forbids it, and servers do it
                await stream.send(message)
        except (ValueError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # a line beyond all bounds, or nobody listens any more
        finally:
            self._ended.set()
            stream.close()

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr
        while data := await process.stderr.read(1 << 16):
            self._stderr.add(data)


async def _write(process: asyncio.subprocess.Process, stream: Any) -> None:
    assert process.stdin
    with contextlib.suppress(OSError):  # it has ended, which the reader says
        async for message in stream:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(text.encode("utf-8", "replace") + b"\n")
            await process.stdin.drain()
