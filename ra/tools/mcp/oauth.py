"""Signs in to remote MCP servers: the SDK's OAuth flow, tokens in a private file, a local port for the browser."""

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
PORT = 18821  # of the redirect address; a server may insist on the address that was registered

_PAGE = "<!doctype html><title>ra</title><p>You are signed in. You can close this page and go back to the terminal."


class Tokens:
    """The tokens of one server, in a separate file that only the user can read."""

    def __init__(self, folder: Path, url: str) -> None:
        self._file = folder / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.json"

    @property
    def exist(self) -> bool:
        return bool(self._read().get("tokens"))

    def forget(self) -> bool:
        """Deletes the tokens. False if there were none."""
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
        """Discards the client registration if it is for another redirect address, so that the SDK registers again."""
        client = self._read().get("client")
        if isinstance(client, dict) and redirect not in client.get("redirect_uris", ()):
            self._write(client=None)

    def keep_issuer(self, provider: "OAuthClientProvider") -> None:
        """Stores where tokens are renewed, so that a later process need not discover it from a refused request."""
        if (metadata := provider.context.oauth_metadata) is not None:
            self._write(issuer=metadata.model_dump(mode="json", exclude_none=True))

    def remind(self, provider: "OAuthClientProvider") -> None:
        """Restores what the SDK keeps only in memory: when the token expires, and where it is renewed."""
        from mcp.shared.auth import OAuthMetadata
        from pydantic import ValidationError

        content = self._read()
        expires, issuer = content.get("expires"), content.get("issuer")
        provider.context.token_expiry_time = expires if isinstance(expires, int | float) else None
        with contextlib.suppress(ValidationError):  # a damaged file: the SDK asks the server again
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
    """The authentication that adds the token to requests and renews it; it fails if the user would have to sign in."""
    from mcp.client.auth import OAuthClientProvider

    provider = OAuthClientProvider(url, _metadata(PORT), tokens)
    tokens.remind(provider)
    return provider


class Browser:
    """Shows the user where to sign in, and waits on the loopback for the browser's redirect."""

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
        """Stores the issuer that the sign-in revealed, and releases the port."""
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
    """A socket on the registered port, or on any free port if that one is taken."""
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError:
        return socket.create_server(("127.0.0.1", 0))
