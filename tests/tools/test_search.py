import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from ra.tools.builtin.grep import search_with_ripgrep
from ra.tools.policy.rules import parse_rule
from ra.tools.search import GrepArgs, search
from ra.tools.tool import Mistake
from ra.tools.walk import RIPGREP_RULES, walk
from tests.tools.kit import Kit

needs_ripgrep = pytest.mark.skipif(not shutil.which("rg"), reason="ripgrep is not installed")


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    root = tmp_path / "project"
    files = {
        "a.py": "import os\nclass Alpha:\n    pass\n",
        "src/b.py": "class Beta:\r\n    x = 'alpha'\r\n",
        "src/deep/c.ts": "class Gamma {}\nlast line without end",
        "src/ignored.log": "class Log\n",
        "build/out.py": "class Built:\n",
        "build/keep.py": "class Kept:\n",
        ".hidden/h.py": "class Hidden:\n",
        ".gitignore": "*.log\nbuild/*\n!build/keep.py\n/top.txt\n",
        "src/.gitignore": "local.*\n!important.log\n",
        "src/local.py": "class Local:\n",
        "src/important.log": "class Important\n",
        "top.txt": "class Top\n",
        "src/top.txt": "class SrcTop\n",
        ".env": "KEY=class\n",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    (root / "binary").write_bytes(b"class\0\1")
    (root / "link").symlink_to(tmp_path)
    subprocess.run(["git", "init", "-q", root], check=True)
    return Kit(root)


FILES = {
    *("a.py", "src/b.py", "src/deep/c.ts", "build/keep.py", ".hidden/h.py", ".gitignore", "src/.gitignore"),
    *("src/important.log", "src/top.txt", ".env", "binary"),
}


def test_the_walk_sees_what_git_does_not_ignore(kit: Kit) -> None:
    assert set(walk(str(kit.root))) == FILES


def test_the_walk_knows_the_rules_above_a_subfolder(kit: Kit) -> None:
    assert set(walk(str(kit.root / "src"))) == {"b.py", "deep/c.ts", ".gitignore", "important.log", "top.txt"}


@needs_ripgrep
def test_ripgrep_sees_the_same_files(kit: Kit) -> None:
    done = subprocess.run(["rg", "--files", "--null", *RIPGREP_RULES], cwd=kit.root, capture_output=True)
    assert {os.fsdecode(name) for name in done.stdout.split(b"\0")[:-1]} == FILES


def test_glob_gives_the_newest_first(kit: Kit) -> None:
    os.utime(kit.root / "src/b.py", (2e9, 2e9))
    os.utime(kit.root / "a.py", (1e9, 1e9))
    found = kit.text("Glob", pattern="**/*.py").splitlines()
    assert found[0] == "src/b.py"
    assert found[-1] == "a.py"
    assert set(found) == {"a.py", "src/b.py", "build/keep.py", ".hidden/h.py"}


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.py", ".", {"a.py"}),
        ("src/**/*.{ts,py}", ".", {"src/b.py", "src/deep/c.ts"}),
        ("**/[bc].*", "src", {"src/b.py", "src/deep/c.ts"}),
        ("./a.p?", ".", {"a.py"}),
        ("**", "src/deep", {"src/deep/c.ts"}),
    ],
)
def test_glob_patterns(kit: Kit, pattern: str, path: str, expected: set[str]) -> None:
    assert set(kit.text("Glob", pattern=pattern, path=path).splitlines()) == expected


def test_glob_says_when_there_is_nothing_or_too_much(kit: Kit) -> None:
    assert kit.text("Glob", pattern="*.ts") == "No files match. To look in subfolders as well: **/*.ts."
    for number in range(510):
        (kit.root / f"src/f{number}.md").touch()
    assert kit.text("Glob", pattern="**/*.md").endswith("[10 more; narrow the pattern]")
    assert "is not a folder" in kit.error("Glob", pattern="*", path="a.py")


def test_grep_gives_path_line_and_text(kit: Kit) -> None:
    assert kit.text("Grep", pattern="class [AB]") == "a.py:2:class Alpha:\nsrc/b.py:1:class Beta:"


def test_grep_narrows_by_path_glob_and_case(kit: Kit) -> None:
    assert kit.text("Grep", pattern="ALPHA", ignore_case=True, glob="*.py", path="src") == "src/b.py:2:    x = 'alpha'"
    assert kit.text("Grep", pattern="class", path="src/b.py") == "src/b.py:1:class Beta:"
    assert kit.text("Grep", pattern="class", glob="*.ts", files_only=True) == "src/deep/c.ts"
    assert kit.text("Grep", pattern="end$") == "src/deep/c.ts:2:last line without end"
    assert kit.text("Grep", pattern="nowhere to be found") == "No matches."


def test_grep_shows_lines_around(kit: Kit) -> None:
    assert (
        kit.text("Grep", pattern="class Alpha", context=1) == "a.py-1-import os\na.py:2:class Alpha:\na.py-3-    pass"
    )


def test_grep_does_not_show_what_may_not_be_read(kit: Kit) -> None:
    assert "KEY" not in kit.text("Grep", pattern="KEY")
    kit = Kit(kit.root, rules=(parse_rule("Read(src/**)", "deny"),))
    found = kit.text("Grep", pattern="class B")
    assert "Beta:" not in found
    assert "src/b.py not shown" in found
    kit.error("Grep", pattern="KEY", path=".env")


def test_grep_tells_the_model_of_a_broken_expression(kit: Kit) -> None:
    assert "not a valid regular expression" in kit.error("Grep", pattern="(")


def test_grep_stops_an_expression_that_would_never_end(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a" * 100 + "b\n")
    search(GrepArgs(pattern="a"), str(tmp_path), "", time.monotonic() + 60)  # what has to be loaded is loaded
    with pytest.raises(Mistake, match="takes too long"):
        search(GrepArgs(pattern="(a|aa)+$"), str(tmp_path), "", time.monotonic() + 0.3)


@needs_ripgrep
@pytest.mark.parametrize(
    "args",
    [
        GrepArgs(pattern="class"),
        GrepArgs(pattern="class", context=1),
        GrepArgs(pattern="ALPHA", ignore_case=True),
        GrepArgs(pattern="^class \\w+:$", glob="*.py"),
        GrepArgs(pattern="a", glob="!*.ts"),
        GrepArgs(pattern="l", glob="src/**/*.ts"),
        GrepArgs(pattern="$"),
    ],
)
def test_both_searches_give_the_same(kit: Kit, args: GrepArgs) -> None:
    ours = search(args, str(kit.root), "", time.monotonic() + 10)
    theirs = search_with_ripgrep(args, str(kit.root), "", time.monotonic() + 10)
    assert theirs is not None
    assert sorted(ours) == sorted(theirs)
