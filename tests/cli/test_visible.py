"""Nothing that steers a terminal or hides in it gets through, and what people write does."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ra.core.text import visible, visible_line

HIDDEN = "\xad\u034f\u115f\u180e\u200b\u202e\u2066\u206a\u3164\ufe01\ufeff\uffa0\U0001d173\U000e0041\U000e0101"
KEPT = ("line\n\ttab", "naïve ☕ 日本語", "👩‍👩‍👧 ❤️ ✔︎", "नमस्ते क्‍ष", "می‌خواهم", "𝄞")


@pytest.mark.parametrize("text", KEPT)
def test_what_people_write_stays(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize("character", HIDDEN)
def test_what_nobody_sees_is_left_out(character: str) -> None:
    assert visible(f"a{character}b") == "ab"


@settings(max_examples=100, deadline=None)
@given(st.text())
def test_no_control_or_format_character_reaches_a_terminal(text: str) -> None:
    joiners = "\u200c\u200d"
    left = [c for c in visible(text) if unicodedata.category(c) in ("Cc", "Cs") and c not in "\t\n"]
    marks = [c for c in visible(text) if 0x2000 <= ord(c) < 0x2070 and unicodedata.category(c) == "Cf"]
    assert (left, [c for c in marks if c not in joiners]) == ([], [])


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab \n", max_size=300), st.integers(2, 20))
def test_a_line_holds_all_words_or_says_that_it_does_not(text: str, width: int) -> None:
    line, words = visible_line(text, width), " ".join(text.split())
    assert len(line) <= width
    assert line == words if len(words) <= width else words.startswith(line[:-1]) and line.endswith("…")
