"""Talks to an MCP server that is a program, line by line, under a reaper that outlives ra.

The SDK's own transport does not pass on descriptors, which the reaper needs, and buffers lines of any length.
"""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from ra.system.launch import under_reaper
from ra.system.process import Ends, end_piped, start_piped
from ra.tools.mcp.schemas import readable

MAX_LINE_BYTES = 32 << 20
_ANSWER = re.compile(rb'^\s*\{(?=[^{}\[]*"jsonrpc")(?![^{}\[]*"method")[^{}\[]*"id"\s*:\s*(\d+)')
LEAVE_S = 0.5
"""How long a server may take to exit by itself after its input closes."""


class Program:
    """A server that starts together with its streams. It sets `ended` when it closes its stdout.

    `last_words` is why the server must be given up, or the last line that it wrote to stderr.
    """

    def __init__(self, argv: list[str], *, cwd: str, env: dict[str, str], ended: asyncio.Event) -> None:
        self._argv, self._cwd, self._env = argv, cwd, env
        self._stderr = Ends(0, 4000)
        self._ended = ended
        self._fault = ""

    @property
    def last_words(self) -> str:
        if self._fault:
            return self._fault
        lines = [line.strip() for line in self._stderr.text().splitlines()]
        return next((line for line in reversed(lines) if line and not line.startswith("[…")), "")

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Any, Any]]:
        """The streams that the SDK reads from and writes to. Raises OSError if the program cannot be started."""
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

        assert process.stdout
        try:
            while line := await process.stdout.readline():
                if (message := _message(line)) is None:
                    continue  # a log line on stdout: the protocol forbids it, yet servers write them
                if isinstance(result := getattr(message, "result", None), dict) and "tools" in result:
                    result["tools"] = readable(result["tools"])
                await stream.send(SessionMessage(message))
        except ValueError:
            self._fault = f"a line of more than {MAX_LINE_BYTES >> 20} MiB"
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # the SDK has closed its end
        finally:
            self._ended.set()
            stream.close()

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr
        while data := await process.stderr.read(1 << 16):
            self._stderr.add(data)


def _message(line: bytes) -> Any:
    """The message in a line; None if the line is not a message.

    A line that the SDK rejects is read again without lone surrogates, which servers leave when they cut text. An answer
    that still cannot be read becomes an error of its call, which would otherwise wait for ever.
    """
    import pydantic
    from mcp_types import jsonrpc_message_adapter

    with contextlib.suppress(ValueError):
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    try:
        message = json.loads(line)
        if not isinstance(message, dict) or "jsonrpc" not in message:
            return None
        text = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
        return jsonrpc_message_adapter.validate_json(text, by_name=False)
    except (ValueError, RecursionError) as error:
        if (match := _ANSWER.search(line)) is None:
            return None
        why = (
            "not of the protocol" if isinstance(error, pydantic.ValidationError) else f"{type(error).__name__}: {error}"
        )
        fault = {"code": -32700, "message": f"its answer cannot be read ({why})"}
        answer = {"jsonrpc": "2.0", "id": int(match[1]), "error": fault}
        return jsonrpc_message_adapter.validate_python(answer, by_name=False)


async def _write(process: asyncio.subprocess.Process, stream: Any) -> None:
    assert process.stdin
    with contextlib.suppress(OSError):  # the program has ended, which the reader reports
        async for message in stream:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(text.encode("utf-8", "replace") + b"\n")
            await process.stdin.drain()
