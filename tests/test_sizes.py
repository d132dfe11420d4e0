"""Files stay small, and every ignore says why."""

import re
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "ra"


def lines(path: Path) -> int:
    return path.read_text().count("\n")


def test_no_file_has_more_than_500_lines() -> None:
    sizes = {str(path.relative_to(PACKAGE)): lines(path) for path in PACKAGE.rglob("*.py")}
    assert {name: size for name, size in sizes.items() if size > 500} == {}


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
