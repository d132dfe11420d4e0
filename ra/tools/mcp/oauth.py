"""Signs in to remote MCP servers: the SDK's OAuth flow, with tokens in a private file and the browser's answer here."""

import asyncio
import contextlib
import hashlib
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from ra.system.files import open_regular, write_private

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import (
        AuthorizationCodeResult,
        OAuthClientInformationFull,
        OAuthClientMetadata,
        OAuthToken,
    )

LOGIN_S = 300.0  # for a person to sign in
PORT = 18821  # where the browser comes back to; a server may insist on the address that was registered

_PAGE = "<!doctype html><title>ra</title><p>You are signed in. You can close this page and go back to the terminal."


class Tokens:
    """The tokens of one server in a file of its own, which only the user can read."""

    def __init__(self, folder: Path, url: str) -> None:
        self._file = folder / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.json"

    @property
    def exist(self) -> bool:
        return bool(self._read().get("tokens"))

    def forget(self) -> bool:
        """False when there were none."""
        existed = self._file.exists()
        self._file.unlink(missing_ok=True)
        return existed

    async def get_tokens(self) -> "OAuthToken | None":
        from mcp.shared.auth import OAuthToken

        tokens = self._read().get("tokens")
        return OAuthToken.model_validate(tokens) if tokens else None

    async def set_tokens(self, tokens: "OAuthToken") -> None:
        expires = time.time() + tokens.expires_in if tokens.expires_in else None
        self._write(tokens=tokens.model_dump(mode="json", exclude_none=True), expires=expires)

    async def get_client_info(self) -> "OAuthClientInformationFull | None":
        from mcp.shared.auth import OAuthClientInformationFull

        client = self._read().get("client")
        return OAuthClientInformationFull.model_validate(client) if client else None

    async def set_client_info(self, client_info: "OAuthClientInformationFull") -> None:
        self._write(client=client_info.model_dump(mode="json", exclude_none=True))

    def forget_client(self, redirect: str) -> None:
        """Register anew where the browser comes back to another address than the one that was registered."""
        client = self._read().get("client")
        if isinstance(client, dict) and redirect not in client.get("redirect_uris", ()):
            self._write(client=None)

    def keep_issuer(self, provider: "OAuthClientProvider") -> None:
        """Keep where tokens are renewed: a later process must not have to find that out by being sent away."""
        if (metadata := provider.context.oauth_metadata) is not None:
            self._write(issuer=metadata.model_dump(mode="json", exclude_none=True))

    def remind(self, provider: "OAuthClientProvider") -> None:
        """Tell the SDK what it keeps in memory only: when the token ends, and where it is renewed."""
        from mcp.shared.auth import OAuthMetadata
        from pydantic import ValidationError

        content = self._read()
        expires, issuer = content.get("expires"), content.get("issuer")
        provider.context.token_expiry_time = expires if isinstance(expires, int | float) else None
        with contextlib.suppress(ValidationError):  # a damaged file: the server is asked again
            provider.context.oauth_metadata = OAuthMetadata.model_validate(issuer) if issuer else None

    def _read(self) -> dict[str, Any]:
        try:
            with open_regular(self._file) as file:
                content = msgspec.json.decode(file.read())
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return {}
        return content if isinstance(content, dict) else {}

    def _write(self, **parts: Any) -> None:
        write_private(self._file, msgspec.json.encode(self._read() | parts))


def signed_in(url: str, tokens: Tokens) -> "OAuthClientProvider":
    """What adds the token to requests, and renews it; where a person would be needed, it fails."""
    from mcp.client.auth import OAuthClientProvider

    provider = OAuthClientProvider(url, _metadata(PORT), tokens)
    tokens.remind(provider)
    return provider


class Browser:
    """Shows the user where to sign in, and waits on the loopback for the browser to come back."""

    def __init__(self) -> None:
        self._came_back: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()
        self._socket = _listening(PORT)
        self._server: asyncio.Server | None = None
        self._provider: OAuthClientProvider | None = None

    def provider(self, url: str, tokens: Tokens) -> "OAuthClientProvider":
        from mcp.client.auth import OAuthClientProvider

        port = self._socket.getsockname()[1]
        tokens.forget_client(_redirect(port))
        self._provider = OAuthClientProvider(url, _metadata(port), tokens, self.show, self.wait)
        return self._provider

    def close(self, tokens: Tokens | None) -> None:
        """Keep what the sign-in has shown, and let go of the port."""
        self._socket.close()
        if tokens is not None and self._provider is not None:
            tokens.keep_issuer(self._provider)

    async def show(self, address: str) -> None:
        self._server = await asyncio.start_server(self._answer, sock=self._socket)
        sys.stderr.write(f"Sign in here:\n{address}\n")
        sys.stderr.flush()

    async def wait(self) -> "AuthorizationCodeResult":
        try:
            return await asyncio.wait_for(self._came_back, LOGIN_S)
        finally:
            if self._server is not None:
                self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from mcp.shared.auth import AuthorizationCodeResult

        line = (await reader.readline()).decode("latin-1").split(" ")
        parts = urlsplit(line[1] if len(line) > 1 else "")
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/callback" and not self._came_back.done():
            if "code" in query:
                code, state, issuer = query["code"], query.get("state"), query.get("iss")
                self._came_back.set_result(AuthorizationCodeResult(code=code, state=state, iss=issuer))
            else:
                why = query.get("error_description") or query.get("error") or "no code came back"
                self._came_back.set_exception(PermissionError(why))
        body = _PAGE.encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()


def _redirect(port: int) -> str:
    return f"http://127.0.0.1:{port}/callback"


def _metadata(port: int) -> "OAuthClientMetadata":
    from mcp.shared.auth import OAuthClientMetadata
    from pydantic import AnyUrl

    return OAuthClientMetadata(
        client_name="ra",
        redirect_uris=[AnyUrl(_redirect(port))],
        token_endpoint_auth_method="none",  # noqa: S106 - a program on the user's machine keeps no secret
    )


def _listening(port: int) -> socket.socket:
    """The port that is registered, or any other when somebody has it."""
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError:
        return socket.create_server(("127.0.0.1", 0))
