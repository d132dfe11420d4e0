"""Names a server's tools: `mcp__SERVER__TOOL`, unique, and in characters that every provider accepts."""

import hashlib
import re
from collections.abc import Collection, Sequence

MAX = 64
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")


def server_name(server: str) -> str:
    """`mcp__SERVER`: the name of the lazy tool, and the prefix of the server's rules and tool names."""
    name = f"mcp__{_ILLEGAL.sub('_', server)}"
    return name if len(name) <= MAX // 2 else _hashed(name, server, MAX // 2)


def tool_names(server: str, tools: Sequence[str], taken: Collection[str] = ()) -> list[str]:
    """One legal name per tool, in order. A name that is too long or taken ends in a hash of the original."""
    names: list[str] = []
    for tool in tools:
        plain = f"{server_name(server)}__{_ILLEGAL.sub('_', tool)}"
        name = plain if len(plain) <= MAX else _hashed(plain, tool, MAX)
        while name in names or name in taken:
            tool += "'"
            name = _hashed(plain, tool, MAX)
        names.append(name)
    return names


def _hashed(name: str, meant: str, room: int) -> str:
    digest = hashlib.sha256(meant.encode("utf-8", "replace")).hexdigest()[:6]
    return f"{name[: room - 7]}_{digest}"
