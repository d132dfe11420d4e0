"""Stores what an MCP server offers, under the hash of its configuration, so that no run waits for it twice.

With a stored listing, every run sends the same bytes for its tools, and the server starts only at its first call.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ra.core.value import JsonObject, Value
from ra.system.files import write_private
from ra.tools.mcp.naming import server_name
from ra.tools.settings import McpServerSettings

KEPT_S = 7 * 86400.0
"""A listing is renewed after a week, at every start of its server, and by `ra mcp list`."""

SILENCE_KEPT_S = 600.0
"""For this long, no start waits again for a server that did not answer in time."""


class Unreachable(Exception):
    """A server cannot be used at present; the text says why. `silent`: it did not answer in time."""

    def __init__(self, text: str, *, silent: bool = False) -> None:
        super().__init__(text)
        self.silent = silent


class Offer(Value, frozen=True):
    """A tool as its server describes it."""

    name: str
    description: str
    schema: JsonObject
    reads_only: bool = False


class Resource(Value, frozen=True):
    """A readable item. `uri` may be a template; for a prompt it is `prompt:NAME?argument=…`."""

    uri: str
    words: str = ""


class Listing(Value, frozen=True):
    """A server's offer. `tokens` is the size of all its tools in a request. `failed` says why there is no offer."""

    tools: tuple[Offer, ...] = ()
    resources: tuple[Resource, ...] = ()
    prompts: tuple[Resource, ...] = ()
    instructions: str = ""
    tokens: int = 0
    learned: float = 0.0
    failed: str = ""
    silent: bool = False  # `failed` because it did not answer in time


class Shelf:
    """The folder that holds the listings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, server: McpServerSettings, *, now: float) -> Listing | None:
        """The listing of exactly this configuration; None if it is missing, damaged or too old."""
        try:
            listing = msgspec.json.decode(self._file(server).read_bytes(), type=Listing)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None
        age_s = now - listing.learned
        return listing if 0 <= age_s < (SILENCE_KEPT_S if listing.silent else KEPT_S) else None

    def put(self, server: McpServerSettings, listing: Listing) -> None:
        """Stores a listing. Raises OSError."""
        write_private(self._file(server), msgspec.json.encode(listing))

    def _file(self, server: McpServerSettings) -> Path:
        # Keys in env and headers affect what the server offers, and a hash does not reveal them.
        digest = hashlib.sha256(msgspec.json.encode(server, order="sorted")).hexdigest()
        return self.folder / f"{digest[:32]}.json"


def problem(server: McpServerSettings, others: Iterable[str]) -> str:
    """Why a server's settings cannot work, "" if they can. `others` are the names of the servers before it."""
    if not server.name.strip():
        return "it needs a name"
    if server_name(server.name) in map(server_name, others):
        return "another server has this name; give each its own"
    if bool(server.command) == bool(server.url):
        return "it needs either a command or a url"
    if server.url and not server.url.startswith(("http://", "https://")):
        return f"its url {server.url!r} must begin with http:// or https://"
    return ""
