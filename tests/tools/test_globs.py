"""What a glob matches, in rules and in paths."""

import re
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ra.tools.policy.globs import glob_regex


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/in/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/in/deep/a.py", True),
        ("src/**", "src/in/a", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("[a-c]x", "bx", True),
        ("[!a-c]x", "bx", False),
        ("[!a]x", "/x", False),
        ("[id].tsx", "[id].tsx", False),
        (r"\[id\].tsx", "[id].tsx", True),
        (r"a\*b", "a*b", True),
        (r"a\*b", "axb", False),
        ("*.{ts,tsx}", "a.tsx", True),
        ("{a,b{c,d}}", "bd", True),
        ("{a}", "{a}", True),  # nothing to choose from: the braces are themselves
        ("{a,b", "{a,b", True),  # never closed
        ("a,b}", "a,b}", True),
        ("a\\", "a\\", True),
        ("[z-a]", "[z-a]", True),  # no sign lies between
        ("****/a", "b/a", True),
        ("**a*b**c", "abcb", False),
        ("**a*b**c", "abcbc", True),
        ("**/a*/b", "a/c/a1/b", True),
    ],
)
def test_paths(pattern: str, path: str, *, matches: bool) -> None:
    assert bool(glob_regex(pattern, paths=True).fullmatch(path)) is matches


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [("npm run *", "npm run", True), ("npm run *", "npm running", False), ("*", "a/b c", True), ("{a,b}", "a", False)],
)
def test_words(pattern: str, text: str, *, matches: bool) -> None:
    assert bool(glob_regex(pattern, word_end=True).fullmatch(text)) is matches


@pytest.mark.parametrize(
    ("pattern", "text", "paths"),
    [
        ("*a*a*a*a*a*a*a*a*a*b", "a" * 250, True),
        ("**/a/**/a/**/a/**/a/**/a/**/b", "a/" * 300 + "c", True),
        ("**a**a**a**a**a**a**b", "a" * 3000, True),
        ("*{a,b}*{a,b}*{a,b}*{a,b}*c", "ab" * 120, True),
        ("{" + "a,b}{" * 40 + "a,b}", "a" * 41, True),
        ("* a * a * a * a * a * b", " a" * 10_000, False),
    ],
)
def test_no_glob_takes_long(pattern: str, text: str, *, paths: bool) -> None:
    began = time.process_time()
    assert not glob_regex(pattern, paths=paths).fullmatch(text)
    assert time.process_time() - began < 1


@given(
    st.lists(st.sampled_from(["a", "b", "/", "*", "?", "{a,b}", "{a/,b*}", "[ab]", "[!a]", "/**/"]), max_size=7),
    st.text("ab/", max_size=9),
)
def test_a_glob_matches_what_its_plain_translation_matches(parts: list[str], text: str) -> None:
    assume("**" not in "".join(parts).replace("/**/", "//"))
    plain = {"*": "[^/]*", "?": "[^/]", "{a,b}": "(?:a|b)", "{a/,b*}": "(?:a/|b[^/]*)", "[!a]": "[^/a]"}
    expected = "".join("/(?:.*/)?" if part == "/**/" else plain.get(part, part) for part in parts)
    assert bool(glob_regex("".join(parts), paths=True).fullmatch(text)) == bool(re.fullmatch(expected, text))
