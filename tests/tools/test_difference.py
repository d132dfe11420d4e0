"""The difference of a file: applied to the file before it gives the file after."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ra.core.events import ChangedLine
from ra.tools import difference as module
from ra.tools.difference import as_text, difference

LINES = st.lists(st.sampled_from(["a", "b", "c", "d", ""]), max_size=40)


def applied(before: list[str], hunks: tuple[tuple[ChangedLine, ...], ...]) -> list[str]:
    """The file after, rebuilt from the file before and what the difference tells."""
    after, taken = [], 0
    for hunk in hunks:
        for line in hunk:
            while line.sign != "-" and len(after) < line.number - 1:
                after.append(before[taken])
                taken += 1
            match line.sign:
                case "-":
                    after += before[taken : line.number - 1]
                    taken = line.number
                case "+":
                    after.append(line.text)
                case " ":
                    assert before[taken] == line.text
                    after.append(line.text)
                    taken += 1
    return after + before[taken:]


@given(LINES, LINES)
def test_a_difference_rebuilds_the_file_after(before: list[str], after: list[str]) -> None:
    change = difference("f", "\n".join(before).encode(), "\n".join(after).encode())
    old, new = "\n".join(before).splitlines(), "\n".join(after).splitlines()
    assert applied(old, change.hunks) == new
    assert len(new) - len(old) == change.added - change.removed


def test_context_is_three_lines_and_far_changes_are_hunks_of_their_own() -> None:
    before = [str(number) for number in range(1, 31)]
    after = ["one" if line == "1" else "thirty" if line == "30" else line for line in before]
    change = difference("f", "\n".join(before).encode(), "\n".join(after).encode())
    assert [[(line.sign, line.number) for line in hunk] for hunk in change.hunks] == [
        [("-", 1), ("+", 1), (" ", 2), (" ", 3), (" ", 4)],
        [(" ", 27), (" ", 28), (" ", 29), ("-", 30), ("+", 30)],
    ]
    assert as_text(change).splitlines()[:3] == ["f", " 1 -1", " 1 +one"]


def test_a_long_difference_says_how_much_it_leaves_out() -> None:
    change = difference("f", None, b"x\n" * (module.MAX_LINES + 5))
    assert (change.created, change.added, change.left_out) == (True, module.MAX_LINES + 5, 5)


def test_what_is_no_text_has_no_lines() -> None:
    assert difference("f", b"\0\1", b"\0\2").hunks == ()


def test_a_replacement_of_many_lines_tells_both_sides() -> None:
    change = difference("f", b"old\n" * 3000, b"new\n" * 2000)
    signs = [line.sign for hunk in change.hunks for line in hunk]
    assert (signs.count("-"), signs.count("+"), change.left_out) == (
        module.MAX_LINES // 2,
        module.MAX_LINES // 2,
        5000 - module.MAX_LINES,
    )
    few = change.at_most(40)
    assert [line.sign for hunk in few.hunks for line in hunk] == ["-"] * 20 + ["+"] * 20
    assert few.left_out == 5000 - 40


@pytest.mark.parametrize(
    ("before", "after", "note"),
    [
        (None, b"", "an empty file"),
        (None, b"x\n", ""),
        (b"x\n", b"x\n", "nothing changes"),
        (b"x\n", b"", "the file becomes empty"),
        (b"x", b"x\n", "a newline at the end"),
        (b"x\ny\n", b"x\nz", "no newline at the end any more"),
        (b"x\r\ny\r\n", b"x\ny\n", "line ends: CRLF → LF"),
        (b"x\ny\n", b"x\r\nz\r\n", "line ends: LF → CRLF"),
        (b"x\ny\n", b"x\nz\n", ""),
        (b"\0\1", b"\0\1\2", "a binary file: 2 bytes → 3 bytes"),
        (None, b"\0", "a binary file: 1 byte"),
    ],
)
def test_what_lines_cannot_tell_is_said(before: bytes | None, after: bytes, note: str) -> None:
    change = difference("f", before, after)
    assert change.note == note
    assert as_text(change).endswith(f"[{note}]" if note else as_text(change))
