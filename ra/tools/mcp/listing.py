"""What an MCP server offers, kept by the hash of its configuration, so that no run waits for it twice.

With a kept listing the tools of a request are the same bytes in every run, and the server starts at its first call.
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
"""A listing is learned anew after a week, at every start of its server, and by `ra mcp list`."""

SILENCE_KEPT_S = 600.0
"""A server that did not answer in time is not waited for again so soon."""


class Unreachable(Exception):
    """A server that cannot be used just now; the text says why. `silent`: it did not answer in time."""

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
    """Something to read. `uri` may be a template, and `prompt:NAME?argument=…` for a prompt."""

    uri: str
    words: str = ""


class Listing(Value, frozen=True):
    """`tokens` is what all the tools together would cost in every request. `failed` says why there is none."""

    tools: tuple[Offer, ...] = ()
    resources: tuple[Resource, ...] = ()
    prompts: tuple[Resource, ...] = ()
    instructions: str = ""
    tokens: int = 0
    learned: float = 0.0
    failed: str = ""
    silent: bool = False  # it failed because it did not answer in time


class Shelf:
    """The folder in which listings are kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, server: McpServerSettings, *, now: float) -> Listing | None:
        """The listing of exactly this configuration, unless it is too old. A damaged file counts as none."""
        try:
            listing = msgspec.json.decode(self._file(server).read_bytes(), type=Listing)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None
        age_s = now - listing.learned
        return listing if 0 <= age_s < (SILENCE_KEPT_S if listing.silent else KEPT_S) else None

    def put(self, server: McpServerSettings, listing: Listing) -> None:
        """Raises OSError."""
        write_private(self._file(server), msgspec.json.encode(listing))

    def _file(self, server: McpServerSettings) -> Path:
        # Keys in env and headers are part of who answers, and a hash does not tell them.
        digest = hashlib.sha256(msgspec.json.encode(server, order="sorted")).hexdigest()
        return self.folder / f"{digest[:32]}.json"


def problem(server: McpServerSettings, others: Iterable[str]) -> str:
    """Why a server's settings cannot work, "" when they can. `others` are the names of the servers before it."""
    if not server.name.strip():
        return "it needs a name"
    if server_name(server.name) in map(server_name, others):
        return "another server has this name; give each its own"
    if bool(server.command) == bool(server.url):
        return "it needs either a command or a url"
    if server.url and not server.url.startswith(("http://", "https://")):
        return f"its url {server.url!r} must begin with http:// or https://"
    return ""
