"""How much of the code that must not be wrong do the tests reach? At least 95 % of the branches of each group below.

`make coverage` runs the tests with coverage and then this; it joins what all processes have left in `.coverage/`.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import coverage

ROOT = Path(__file__).parents[1]
BAR = 95.0

GROUPS = {
    # What may a call, a command or a project do without being asked for?
    "policy": (
        "ra/tools/policy/permissions.py",
        "ra/tools/policy/rules.py",
        "ra/tools/policy/shell.py",
        "ra/tools/policy/programs.py",
        "ra/tools/policy/explain.py",
        "ra/tools/options.py",
        "ra/system/environment.py",
        "ra/config/guards.py",
        "ra/config/private.py",
        "ra/config/trust.py",
    ),
    # Which file or address does a name lead to, and may it be opened?
    "path": (
        "ra/tools/policy/paths.py",
        "ra/tools/files.py",
        "ra/tools/policy/globs.py",
        "ra/tools/walk.py",
        "ra/tools/undo.py",
        "ra/config/paths.py",
        "ra/resolvers/addresses.py",
        "ra/resolvers/expand.py",
        "ra/resolvers/fetch.py",
        "ra/resolvers/files.py",
        "ra/resolvers/file_search.py",
        "ra/resolvers/file_content.py",
    ),
    # Is what was said on disk, whole, and the same when it is read again?
    "session": (
        "ra/timeline/**/*.py",
        "ra/session/journal.py",
        "ra/session/session.py",
        "ra/server/sessions.py",
        "ra/server/idempotency.py",
    ),
    # Does a command stay in, and does all of it end?
    "sandbox": ("ra/tools/sandbox/*.py", "ra/system/process.py"),
    # What does the model see, does it fit, and what was cut?
    "engine": ("ra/context/**/*.py",),
}

NEEDS: dict[str, Callable[[], bool]] = {
    "ra/tools/sandbox/bubblewrap.py": lambda: shutil.which("bwrap") is not None,
}
"""Files that only a machine with their mechanism can run; elsewhere their tests are skipped and they are not judged."""


class Reach(NamedTuple):
    branches: int
    reached: int

    @property
    def percent(self) -> float:
        return 100.0 * self.reached / self.branches if self.branches else 100.0


def judged(files: dict[str, Any]) -> int:
    """Tell of each group, and of each file below the bar. Returns the exit code."""
    low = []
    for group, patterns in GROUPS.items():
        names = names_of(patterns)
        left_out = [name for name in names if name in NEEDS and not NEEDS[name]()]
        reaches = {name: reach_of(files[name]) for name in names if name not in left_out}
        total = Reach(sum(one.branches for one in reaches.values()), sum(one.reached for one in reaches.values()))
        verdict = "" if total.percent >= BAR else f"   below {BAR:g} %"
        print(f"{group:<8} {total.percent:5.1f} % of {total.branches} branches in {len(reaches)} files{verdict}")
        for name, reach in sorted(reaches.items(), key=lambda item: item[1].percent):
            if reach.percent < BAR:
                print(f"    {name:<40} {reach.percent:5.1f} %   {missing(files[name])}")
        for name in left_out:
            print(f"    {name:<40} not judged: this machine cannot run it")
        if verdict:
            low.append(group)
    if low:
        print(f"Too few branches are reached in: {', '.join(low)}.")
    return 1 if low else 0


def measured() -> dict[str, Any]:
    """What coverage knows of each file, by its path in the repository."""
    cover = coverage.Coverage(config_file=str(ROOT / "pyproject.toml"))
    cover.combine(keep=True)
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder, "told.json")
        cover.json_report(outfile=str(told))
        files = json.loads(told.read_text())["files"]
    assert isinstance(files, dict)
    return files


def names_of(patterns: tuple[str, ...]) -> list[str]:
    """A pattern that fits no file is an error: the file has moved, and would no longer be held."""
    names: set[str] = set()
    for pattern in patterns:
        found = {str(path.relative_to(ROOT)) for path in ROOT.glob(pattern)}
        if not found:
            sys.exit(f"tests/coverage_gate.py: there is no {pattern}")
        names |= found
    return sorted(names)


def reach_of(file: dict[str, Any]) -> Reach:
    return Reach(file["summary"]["num_branches"], file["summary"]["covered_branches"])


def missing(file: dict[str, Any]) -> str:
    """The first branches that nobody took, as line→line; →exit leaves the function."""
    shown = [f"{start}→{end if end > 0 else 'exit'}" for start, end in file["missing_branches"]]
    return ", ".join(shown[:12]) + (", …" if len(shown) > 12 else "")


if __name__ == "__main__":
    sys.exit(judged(measured()))
