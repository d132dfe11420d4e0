"""Follows the `@path` lines of instruction files to the files that they name."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from ra.core.text import shown
from ra.system.secret_names import is_secret

MAX_DEPTH = 5
MAX_IMPORTS = 50  # of one instruction file, with all that they import

_FENCE = re.compile(r"^[ \t]*(```+|~~~+)[^\n]*\n.*?(?:^[ \t]*\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"(`+)(?!`)[^\n]*?(?<!`)\1(?!`)")
_IMPORT = re.compile(r"(?<![\w@/.:`-])@((?:~/|\.{0,2}/|[\w.])(?:\\ |[^\s\\])*)")

# An import that leads nowhere is told if it looks like one; `@someone` and `@types/node` do not.
_DOCUMENTS = (".md", ".mdc", ".txt", ".rst", ".adoc")


def named_in(text: str) -> Iterator[str]:
    """What a file names to be read as well; not what stands in code."""
    for match in _IMPORT.finditer(_INLINE.sub("", _FENCE.sub("", text))):
        name = match[1].replace("\\ ", " ").rstrip(".,;:!?)]}'\"*_")
        if name and name not in (".", "..", "~"):
            yield name


def target(name: str, importer: Path, home: Path | None) -> Path | None:
    """The path that an import means, counted from the importing file; None for a text that can be none."""
    if name.startswith("~/"):
        return home / name[2:] if home else None
    if "\0" in name or len(name) > 1000:
        return None
    path = importer.parent / name
    return path if os.path.lexists(path) else importer.parent / without_heading(name)


def without_heading(name: str) -> str:
    """`docs/style.md` of `docs/style.md#tables`: the whole file is read."""
    return name.partition("#")[0] or name


def refusal(path: Path, boundary: Path) -> str:
    """Why a file must not be imported, "" if it may be. `boundary` is the project, or the user's home."""
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(boundary):
        return f"leads out of {shown(str(boundary))}"
    inner = str(real.relative_to(boundary))
    return "may hold a secret" if is_secret(inner) or ".git" in real.parts else ""


def is_missed(name: str) -> bool:
    """Whether a name that leads nowhere was surely meant as a file."""
    return without_heading(name).casefold().endswith(_DOCUMENTS)
