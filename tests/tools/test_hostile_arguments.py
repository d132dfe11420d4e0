"""A tool call never ends a run: every built-in tool, with arguments and files that want to break it."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ra.core.messages import ToolCall
from ra.providers.dialects.fields import arguments, dumped
from ra.tools.policy.rules import parse_rule
from tests.tools.kit import Kit, words
from tests.tools.test_toolbox import Talk

NAMES = ("Agent", "Bash", "Edit", "Entry", "Glob", "Grep", "Job", "LS", "Read", "Recall", "WebFetch", "Write")
ARGUMENTS = (
    *("path", "command", "pattern", "glob", "query", "url", "task", "content", "id", "action", "job", "stop", "limit"),
    *("offset", "old_string", "new_string", "edits", "timeout", "background", "outside", "context", "ignore_case"),
)
STRINGS = (
    *("", ".", "..", "/", "a", "pipe", "folder", "link", "huge", "\0", "\ud800", "a\0b", "\n", "~", "~nobody/x"),
    *("{a,b}", "[z-a]", "(" * 3000, "a{99999999}", "(a|aa)+$", "**/" * 50 + "x", "*a" * 40 + "b", "../" * 3000),
    *("http://", "http://[::1", "https://a b", "time " * 600 + "ls", "(" * 600, "$(" * 600, "#1-99999999999999999999"),
    *("#0", "~zz", '"', "AND OR NOT", "%s%n", "\u202e", "😀", "set", "list", "remove", "-rf", "--help", "x" * 999),
)
VALUES = st.recursive(
    st.sampled_from(STRINGS) | st.sampled_from([0, -1, 1, 2**63, 10**30, 1e308, -0.0, True, False, None]) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(ARGUMENTS), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    """A folder with what cannot be read like a file, and a toolbox that may do everything in it but run a command."""
    root = tmp_path_factory.mktemp("hostile")
    (root / "a").write_text("one\ntwo\n")
    (root / "folder").mkdir()
    (root / "link").symlink_to("link")
    os.mkfifo(root / "pipe")
    with (root / "huge").open("wb") as file:
        file.write(b"text\n")
        file.truncate(1 << 40)  # a terabyte, all of it a hole
    (root / "deep.ipynb").write_text('{"cells":' + "[" * 5000)
    (root / "bad.pdf").write_bytes(b"%PDF-1.4\n" + b"<<" * 5000)
    rules = (parse_rule("Bash", "deny"), parse_rule("WebFetch", "deny"))
    return Kit(root, session=Talk(), rules=rules, timeout_s=2)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(name=st.sampled_from(NAMES), args=st.dictionaries(st.sampled_from(ARGUMENTS), VALUES, max_size=5))
def test_any_arguments_give_a_result(hostile: Kit, name: str, args: dict[str, Any]) -> None:
    done = asyncio.run(hostile.box.run(ToolCall("c", name, args)))
    assert done.result.call_id == "c"
    assert "failed unexpectedly" not in words(done)


@pytest.mark.parametrize("name", ["pipe", "folder", "link", "huge", "deep.ipynb", "bad.pdf"])
@pytest.mark.parametrize(
    ("tool", "more"),
    [("Read", {}), ("Edit", {"old_string": "a", "new_string": "b"}), ("Grep", {"pattern": "x"}), ("LS", {})],
)
def test_odd_files_are_answered_soon(hostile: Kit, name: str, tool: str, more: dict[str, str]) -> None:
    began = time.monotonic()
    done = hostile.done(tool, path=name, **more)
    assert "failed unexpectedly" not in words(done)
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("pattern", ["a{99999999}", "(?=\0)x", "(?<=a)" * 300])
def test_no_expression_takes_the_memory_of_the_machine(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "a").write_text("a" * 300_000)
    kit = Kit(tmp_path, timeout_s=20)
    done = kit.done("Grep", pattern=pattern)
    assert "unexpectedly" not in words(done)


def test_arguments_that_nest_too_deeply_are_no_arguments() -> None:
    for depth in (101, 800, 5000, 200_000):
        assert arguments('{"a":' * depth + "1" + "}" * depth) is None
    deep: dict[str, Any] = {}
    for _ in range(800):
        deep = {"a": deep}
    assert arguments(dumped(deep)) is None
    assert arguments('{"a":' * 100 + "1" + "}" * 100) is not None


def test_a_replacement_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a" * 1_000_000)
    kit = Kit(tmp_path)
    assert "more than" in kit.error("Edit", path="a", old_string="a", new_string="b" * 10_000, replace_all=True)
    assert "1000000 replacements" in kit.text("Edit", path="a", old_string="a", new_string="b", replace_all=True)


def test_a_failed_edit_of_a_large_file_is_answered_soon(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(("word " * 50 + "\n") * 20_000)
    began = time.process_time()
    assert "not in the file" in Kit(tmp_path).error("Edit", path="a", old_string="word " * 190 + "x", new_string="y")
    assert time.process_time() - began < 5
