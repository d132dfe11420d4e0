"""Exchanges JSON-RPC messages with an editor, one per line. An invalid line is answered and ends nothing."""

import asyncio
import json
from typing import Any

from ra.core.value import JsonObject

PARSE_ERROR, INVALID_REQUEST = -32700, -32600


class EditorLines:
    """The transport for the protocol's library, whose own one stops at the first message that is not an object."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, message: dict[str, Any]) -> None:
        self._writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        await self._writer.drain()

    async def receive(self) -> JsonObject | None:
        """The next message; None at the end of input."""
        while line := await self._line():
            if not line.strip():
                continue
            try:
                message = json.loads(line)  # not msgspec: editors may split text inside a surrogate pair
            except (ValueError, RecursionError) as error:
                await self._refuse(PARSE_ERROR, f"This line is not valid JSON: {error}")
                continue
            if isinstance(message, dict) and isinstance(message.get("method", ""), str):
                return message
            await self._refuse(INVALID_REQUEST, "A message is one JSON object with a method; batches are not read.")
        return None

    async def close(self) -> None:
        self._writer.close()

    async def _refuse(self, code: int, words: str) -> None:
        await self.send({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": words}})

    async def _line(self) -> bytes:
        """One line of any length; at the end of input, the remainder."""
        pieces: list[bytes] = []
        while True:
            try:
                pieces.append(await self._reader.readuntil(b"\n"))
            except asyncio.LimitOverrunError as error:
                pieces.append(await self._reader.readexactly(error.consumed))
                continue
            except asyncio.IncompleteReadError as error:
                pieces.append(error.partial)
            return b"".join(pieces)
