"""Lists the files below a folder that git would not ignore, by our own walk or by ripgrep's."""

import os
import re
import time
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from ra.tools.policy.paths import program

SKIPPED = (".git", ".ra")
MAX_IGNORE_BYTES = 1_000_000


class _Ignore(msgspec.Struct, frozen=True):
    """The ignore rules of one folder. `any` matches every path that at least one rule matches: few do."""

    base: str
    any: re.Pattern[str]
    each: tuple[tuple[re.Pattern[str], bool], ...]


@lru_cache(maxsize=8)
def ripgrep(root: str) -> str | None:
    return program("rg", root)


RIPGREP_RULES = (
    *("--no-config", "--hidden", "--no-ignore-dot", "--no-ignore-global", "--no-require-git", "--no-messages"),
    *(flag for name in SKIPPED for flag in ("--glob", f"!{name}")),
)
"""Makes ripgrep look at exactly the files that `walk` yields."""


def walk(start: str, *, deadline: float = float("inf")) -> Iterator[str]:
    """Paths of files below `start`, relative to it. Symlinks are not followed. Stops silently at the deadline."""
    stack = [("", _from_parents(start))]
    while stack and time.monotonic() < deadline:
        relative, ignores = stack.pop()
        folder = os.path.join(start, relative)
        try:
            with os.scandir(folder) as unsorted:
                entries = sorted(unsorted, key=lambda entry: entry.name, reverse=True)
        except OSError:
            continue  # unreadable folders are skipped, as ripgrep does
        if any(entry.name == ".gitignore" for entry in entries):
            ignores = (*_read(os.path.join(folder, ".gitignore"), folder), *ignores)
        for entry in reversed(entries):
            if entry.name not in SKIPPED and entry.is_file(follow_symlinks=False) and not _ignored(entry.path, ignores):
                yield os.path.join(relative, entry.name)
        for entry in entries:
            if entry.name in SKIPPED or not entry.is_dir(follow_symlinks=False) or _ignored(entry.path + "/", ignores):
                continue
            stack.append((os.path.join(relative, entry.name), ignores))


def _from_parents(start: str) -> tuple[_Ignore, ...]:
    """The rules of the parent folders up to the top of the repository, nearest first."""
    ignores: list[_Ignore] = []
    folder = start
    while True:
        if folder != start:
            ignores += _read(os.path.join(folder, ".gitignore"), folder)
        if os.path.exists(os.path.join(folder, ".git")):
            ignores += _read(os.path.join(folder, ".git", "info", "exclude"), folder)
            break
        if (parent := os.path.dirname(folder)) == folder:
            break
        folder = parent
    return tuple(ignores)


def _read(path: str, base: str) -> tuple[_Ignore, ...]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read(MAX_IGNORE_BYTES).splitlines()
    except OSError:
        return ()
    return _compile(tuple(lines), base)


@lru_cache(maxsize=256)
def _compile(lines: tuple[str, ...], base: str) -> tuple[_Ignore, ...]:
    if not any(line.strip() and not line.startswith("#") for line in lines):
        return ()
    import pathspec  # start-up time: 40 ms, and only a folder with ignore rules needs it

    each = tuple(
        (re.compile(pattern.regex.pattern), bool(pattern.include))
        for pattern in pathspec.GitIgnoreSpec.from_lines(lines).patterns
        if pattern.regex is not None and pattern.include is not None
    )
    if not each:
        return ()
    # Patterns reuse group names, which a single expression must not.
    joined = "|".join(f"(?:{re.sub(r'[(][?]P<[^>]+>', '(?:', regex.pattern)})" for regex, _ in each)
    return (_Ignore(base.rstrip("/") + "/", re.compile(joined), each),)


def _ignored(path: str, ignores: tuple[_Ignore, ...]) -> bool:
    for ignore in ignores:
        relative = path[len(ignore.base) :]
        if not ignore.any.match(relative):
            continue
        return next(include for regex, include in reversed(ignore.each) if regex.match(relative))
    return False
