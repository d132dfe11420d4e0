"""Typing a prompt in a project and seeing what comes of it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from ra.resolvers.expand import Expansion, builtin, expand

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"


def run(
    text: str, root: Path, cwd: Path | None = None, ask: Callable[[Path], Awaitable[bool]] | None = None
) -> Expansion:
    return asyncio.run(expand(text, root=root, cwd=cwd or root, resolvers=builtin(), ask_outside=ask))


def names(text: str, root: Path) -> list[str]:
    expansion = run(text, root)
    assert expansion.warnings == ()
    return [name for reference in expansion.references for name in reference.names]


def refused(text: str, root: Path) -> str:
    expansion = run(text, root)
    assert expansion.blocks == ()
    assert expansion.references == ()
    assert expansion.text == text
    (warning,) = expansion.warnings
    return warning


def nothing(text: str, root: Path) -> bool:
    return run(text, root) == Expansion(text)
