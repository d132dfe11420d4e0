"""Finds files of the project by a few letters of their path, for `@` in the interactive prompt and in the shell."""

import heapq
import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path

from ra.resolvers import file_search

MOST = 50  # number of files that are offered
FRESH_S = 5.0  # how long a list of the project's files is valid
COST = 10  # a slow list is valid for this many times the time that it took

Score = tuple[int, bool, int, str]


class ProjectFiles:
    """The files that git does not ignore, listed on first use. Thread-safe."""

    def __init__(self, *, root: Path, cwd: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._root = os.path.realpath(root)
        self._cwd = os.path.realpath(cwd)
        self._clock = clock
        self._listing = threading.Lock()
        self._paths: list[str] = []
        self._good_until = float("-inf")

    def matching(self, letters: str) -> list[str]:
        """Paths relative to the working directory that contain these letters in this order; best first."""
        paths, score = self._listed(), scorer(letters)
        scored = (scored for path in paths if (scored := score(path)) is not None)
        return [path for *_, path in heapq.nsmallest(MOST, scored)]

    def _listed(self) -> list[str]:
        with self._listing:
            began = self._clock()
            if began >= self._good_until:
                self._paths = [self._written(file) for file in self._files()]
                now = self._clock()
                self._good_until = now + max(FRESH_S, COST * (now - began))
            return self._paths

    def _files(self) -> tuple[str, ...]:
        return file_search.find_in(self._root, root=Path(self._root)).files

    def _written(self, file: str) -> str:
        below = self._cwd.rstrip("/") + "/"
        return file.removeprefix(below) if file.startswith(below) else os.path.relpath(file, self._cwd)


def insertable(begun: str, words: list[str]) -> list[str]:
    """For a line editor that inserts the common beginning: words that continue what is typed, else the best one."""
    return [word for word in words if word.startswith(begun)] or words[:1]


def scorer(letters: str) -> Callable[[str], Score | None]:
    """Scores a path: lower is better, None is no match. Ignores case."""
    typed = letters.lower()
    in_order = re.compile("[^\n]*?".join(map(re.escape, typed)))

    def score(path: str) -> Score | None:
        lower = path.lower()
        if in_order.search(lower) is None:
            return None
        name = lower.rpartition("/")[2]
        if name.startswith(typed):
            rank = 0
        elif typed in name:
            rank = 1
        elif typed in lower:
            rank = 2
        else:
            rank = 3 if in_order.search(name) else 4
        return rank, path.startswith("../"), len(path), path

    return score
