"""Finds the files that a glob or a folder names, without those that git ignores, within limits of time and number."""

# Strings instead of Path objects, for speed: there may be 100 000 of them.
# ruff: noqa: PTH113, PTH118, PTH120

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ra.core.value import Value
from ra.resolvers.file_content import Unreadable, open_plain

MAX_ENTRIES = 300_000
MAX_SECONDS = 1.5
MAX_ALTERNATIVES = 64

Matcher = Callable[[str], object]
_DEEP = "**"


class SearchResult(Value, frozen=True):
    """The matching regular files, sorted. `links_out` counts links that lead out of the project.

    `ignored` counts files that git ignores. `complete` is False when the search stopped at one of its limits.
    """

    files: tuple[str, ...]
    links_out: int = 0
    ignored: int = 0
    complete: bool = True


_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_BRACES = re.compile(r"(?<!\\)\{([^{}]*,[^{}]*)(?<!\\)\}")
_WILD = re.compile(r"[*?]|\[[!^]?[^/]+?\]")


def unescape(text: str) -> str:
    """Removes the backslashes of escapes: `a\\[1\\]` → `a[1]`."""
    return _ESCAPE.sub(r"\1", text)


def is_glob(text: str) -> bool:
    """Whether a text has a wildcard, and more than question marks and brackets: `@?` is only punctuation."""
    bare = _ESCAPE.sub("a", text)
    return bool(_BRACES.search(text)) or "*" in bare or bool(_WILD.search(bare) and re.search(r"\w", text))


def find(pattern: str, *, cwd: Path, root: Path, max_seconds: float = MAX_SECONDS) -> SearchResult:
    """The files that match a pattern of `*`, `**`, `?`, `[ab]`, `{a,b}` and `\\`.

    Hidden files match only a pattern with the leading dot.
    """
    search = _Search(root, time.monotonic() + max_seconds)
    for alternative in braces(pattern):
        base, segments = split(alternative, cwd)
        search.walk(base, segments)
    return search.result()


def find_in(folder: str, *, root: Path, max_seconds: float = MAX_SECONDS) -> SearchResult:
    """The files of a directory and its subdirectories."""
    search = _Search(root, time.monotonic() + max_seconds)
    search.walk(folder, [_DEEP, "*"])
    return search.result()


def split(pattern: str, cwd: Path) -> tuple[str, list[str]]:
    """The directory before the first wildcard, and the remaining segments."""
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    fixed = next((i for i, part in enumerate(parts) if _is_wild(part)), len(parts) - 1)
    start = "/" if pattern.startswith("/") else str(cwd)
    patterns = [*parts[fixed:], _DEEP] if pattern.endswith("/") else parts[fixed:]
    deduped = [part for i, part in enumerate(patterns) if part != _DEEP or patterns[i - 1 : i] != [_DEEP]]
    if deduped and deduped[-1] == _DEEP:
        deduped.append("*")
    return os.path.realpath(os.path.join(start, *map(unescape, parts[:fixed]))), deduped


def braces(pattern: str) -> list[str]:
    """Expands braces, also nested ones: `a.{b,c}` → `a.b`, `a.c`. Stops at MAX_ALTERNATIVES."""
    expanded: list[str] = []
    waiting = [pattern]
    while waiting and len(expanded) + len(waiting) <= MAX_ALTERNATIVES:
        current = waiting.pop(0)
        match = _BRACES.search(current)
        if match is None:
            expanded.append(current)
            continue
        head, tail = current[: match.start()], current[match.end() :]
        waiting = [f"{head}{choice}{tail}" for choice in match[1].split(",")] + waiting
    return expanded


class _Search:
    def __init__(self, root: Path, deadline: float) -> None:
        self.root = os.path.realpath(root)
        self.deadline = deadline
        self.entries = 0
        self.matches: set[str] = set()
        self.links_out = self.ignored = 0
        self.complete = True
        self.seen: set[tuple[str, tuple[str, ...]]] = set()
        self.rules = _Rules(self.root)

    def result(self) -> SearchResult:
        return SearchResult(tuple(sorted(self.matches)), self.links_out, self.ignored, self.complete)

    def walk(self, folder: str, segments: list[str]) -> None:
        """Walks depth first without recursion: a tree may be deeper than Python's stack."""
        waiting = [(folder, tuple(segments))]
        while waiting and self.complete:
            folder, rest = waiting.pop()
            if rest and (folder, rest) not in self.seen:
                self.seen.add((folder, rest))
                waiting.extend(self._step(folder, rest))

    def _step(self, folder: str, segments: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
        deep = segments[0] == _DEEP
        if deep:
            yield folder, segments[1:]
        accepts = _hides_dots if deep else self._matcher(folder, segments[0])
        last = len(segments) == 1
        try:
            scan = os.scandir(folder)
        except OSError:  # deleted or unreadable: contributes no files
            return
        with scan:
            for entry in scan:
                self.entries += 1
                if self.entries > MAX_ENTRIES or (self.entries % 256 == 0 and time.monotonic() > self.deadline):
                    self.complete = False
                    return
                if not accepts(entry.name) or entry.name == ".git":
                    continue
                is_folder = entry.is_dir(follow_symlinks=False)
                if is_folder and (deep or not last):
                    if not self.rules.ignored(folder, entry.name, is_folder=True):
                        yield entry.path, segments if deep else segments[1:]
                elif last and not deep and not is_folder:
                    self._take(folder, entry)

    def _matcher(self, folder: str, segment: str) -> Matcher:
        """Prefers an existing file with exactly this name: some web frameworks call a folder `[id]`."""
        if "*" not in segment and os.path.lexists(os.path.join(folder, segment)):
            return segment.__eq__
        return matcher(segment)

    def _take(self, folder: str, entry: os.DirEntry[str]) -> None:
        if self.rules.ignored(folder, entry.name, is_folder=False):
            self.ignored += 1
        elif not entry.is_symlink():
            if entry.is_file(follow_symlinks=False):
                self.matches.add(entry.path)
        else:
            real = os.path.realpath(entry.path)
            if not inside(real, self.root):
                self.links_out += 1
            elif os.path.isfile(real):
                self.matches.add(entry.path)


class _Rules:
    """The ignore rules of git from the root down to a directory; of two rules that match, the deeper one wins."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._rules_by_folder: dict[str, list[tuple[str, Callable[[str], bool | None]]]] = {}

    def ignored(self, folder: str, name: str, *, is_folder: bool) -> bool:
        path = f"{folder}/{name}{'/' if is_folder else ''}"
        for base, check in self._for(folder):
            verdict = check(path[len(base) + 1 :])
            if verdict is not None:
                return verdict
        return False

    def _for(self, folder: str) -> list[tuple[str, Callable[[str], bool | None]]]:
        """The rules that apply in a folder, the deepest first."""
        if folder not in self._rules_by_folder:
            above = []
            if folder != self.root and inside(folder, self.root):
                above = self._for(os.path.dirname(folder))
            ignore_files = [] if not inside(folder, self.root) else [f"{folder}/.gitignore"]
            ignore_files += [f"{folder}/.git/info/exclude"] if folder == self.root else []
            checks = [(folder, check) for file in ignore_files if (check := _read_rules(file))]
            self._rules_by_folder[folder] = checks + above
        return self._rules_by_folder[folder]


def _read_rules(file: str) -> Callable[[str], bool | None] | None:
    try:
        with open_plain(file) as lines:
            text = lines.read(1_000_000).decode("utf-8", "replace")
    except Unreadable:  # most directories have none
        return None
    from pathspec import GitIgnoreSpec  # 37 ms, and only globs need it

    spec = GitIgnoreSpec.from_lines(text.splitlines())
    return lambda path: spec.check_file(path).include


def inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def matcher(segment: str) -> Matcher:
    """A matcher for `*`, `?`, `[ab]`, `[a-z]`, `[!ab]` and escapes. A leading dot matches only a literal dot."""
    match = re.compile(_expression(segment), re.DOTALL).fullmatch
    if unescape(segment).startswith("."):
        return match
    return lambda name: not name.startswith(".") and match(name)


def _expression(segment: str) -> str:
    parts: list[str] = []
    position = 0
    while position < len(segment):
        char = segment[position]
        position += 1
        if char == "\\" and position < len(segment):
            parts.append(re.escape(segment[position]))
            position += 1
        elif char == "*":
            parts.append("" if parts[-1:] == [".*"] else ".*")
        elif char == "?":
            parts.append(".")
        elif char == "[" and (end := segment.find("]", position + 1 + (segment[position : position + 1] in "!^"))) > 0:
            inner = segment[position:end]
            negated = inner[:1] in ("!", "^")
            parts.append(_one_of(inner[negated:], negated=negated))
            position = end + 1
        else:
            parts.append(re.escape(char))
    return "".join(parts)


def _one_of(characters: str, *, negated: bool) -> str:
    """The class for the characters between brackets: `ab`, `a-z`. A reversed range counts as three characters."""
    inner = ""
    position = 0
    while position < len(characters):
        first, last = characters[position], characters[position + 2 : position + 3]
        if last and characters[position + 1] == "-" and first <= last:
            inner += f"{re.escape(first)}-{re.escape(last)}"
            position += 3
        else:
            inner += re.escape(first)
            position += 1
    return f"[{'^' if negated else ''}{inner}]"


def _is_wild(segment: str) -> bool:
    return bool(_WILD.search(_ESCAPE.sub("a", segment)))


def _hides_dots(name: str) -> bool:
    return not name.startswith(".")
