"""What a glob matches, in rules and in paths."""

import pytest

from ra.tools.globs import glob_regex


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
