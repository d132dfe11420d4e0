"""Name a server's tools: `mcp__SERVER__TOOL`, in letters that every provider takes, and never twice."""

import hashlib
import re
from collections.abc import Collection, Sequence

MAX = 64
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")


def server_name(server: str) -> str:
    """`mcp__SERVER`: what rules, the lazy tool and the names of its tools begin with."""
    name = f"mcp__{_ILLEGAL.sub('_', server)}"
    return name if len(name) <= MAX // 2 else _hashed(name, server, MAX // 2)


def tool_names(server: str, tools: Sequence[str], taken: Collection[str] = ()) -> list[str]:
    """One legal name for each tool, in order; what is too long, or taken, ends in a hash of what it was."""
    made: list[str] = []
    for tool in tools:
        plain = f"{server_name(server)}__{_ILLEGAL.sub('_', tool)}"
        name = plain if len(plain) <= MAX else _hashed(plain, tool, MAX)
        while name in made or name in taken:
            tool += "'"
            name = _hashed(plain, tool, MAX)
        made.append(name)
    return made


def _hashed(name: str, meant: str, room: int) -> str:
    digest = hashlib.sha256(meant.encode("utf-8", "replace")).hexdigest()[:6]
    return f"{name[: room - 7]}_{digest}"
