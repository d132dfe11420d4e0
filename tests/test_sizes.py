"""Files stay small, what one reads to understand ra stays readable in fifteen minutes, and every ignore says why."""

import re
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "ra"
READING_ORDER = (
    *("core/messages.py", "core/model.py", "core/facts.py", "core/events.py", "core/ports.py"),
    *("agent/loop.py", "context/engine.py", "app/__init__.py"),
)


def lines(path: Path) -> int:
    return path.read_text().count("\n")


def test_no_file_has_more_than_500_lines() -> None:
    sizes = {str(path.relative_to(PACKAGE)): lines(path) for path in PACKAGE.rglob("*.py")}
    assert {name: size for name, size in sizes.items() if size > 500} == {}


def test_the_loop_has_at_most_250_lines() -> None:
    assert lines(PACKAGE / "agent/loop.py") <= 250


def test_the_files_of_the_reading_order_have_at_most_1000_lines_together() -> None:
    sizes = {name: lines(PACKAGE / name) for name in READING_ORDER}
    assert sum(sizes.values()) <= 1000, sizes


def test_every_ignore_says_why() -> None:
    silent = []
    for path in [*PACKAGE.rglob("*.py"), *PACKAGE.parent.glob("tests/**/*.py"), *PACKAGE.parent.glob("re*/*.py")]:
        above = ""
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.match(r"# ruff: noqa", line):  # for the whole file: the comment above it tells
                silent += [] if above.startswith("# ") else [f"{path}:{number}"]
            elif found := re.search(r"#\ (?:noqa: [A-Z0-9]+(?:, [A-Z0-9]+)*|type: ignore\[[\w, -]+\])(.*)$", line):
                silent += [] if re.match(r"(?: -|  #| \() ?\w", found[1]) else [f"{path}:{number}"]
            above = line
    assert silent == []
