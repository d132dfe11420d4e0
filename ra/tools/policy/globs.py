"""Translates globs to regular expressions, for rules and for files.

Models and projects write globs, and `*a*a*a*b` as `.*a.*a.*a.*b` takes for ever on a long text without b. The text
between two wildcards may as well match at its first occurrence, so the expression never backtracks into it.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import product

MAX_CHOICES = 1000  # of the braces in one glob


@lru_cache(maxsize=512)
def glob_regex(pattern: str, *, paths: bool = False, word_end: bool = False) -> re.Pattern[str]:
    """A glob with `*` and `?`; a backslash escapes the next character.

    In paths, `*` stays inside a name, `**` crosses folders, and `[a-z]` and `{a,b}` mean what they mean in a shell.
    With `word_end`, ` *` at the end also matches nothing: `npm run *` covers `npm run`, too.
    """
    tail = ""
    if word_end and pattern.endswith(" *"):
        pattern, tail = pattern[:-2], r"(?:\s.*)?"
    choices = _choices(pattern) if paths else [pattern]
    expressions = [_expression(list(_tokens(choice, paths=paths))) for choice in choices]
    return re.compile(f"(?:{'|'.join(expressions)})" + tail, re.DOTALL)


_WITHIN, _ACROSS, _FOLDERS = "[^/]*?", ".*?", "(?:.*?/)??"
"""The wildcards `*` in a path, `**`, and `**/`."""


def _tokens(pattern: str, *, paths: bool) -> Iterator[str]:
    """The wildcards, and an expression for each single character."""
    place, last = 0, "/"
    while place < len(pattern):
        sign, length = pattern[place], 1
        if sign == "\\" and place + 1 < len(pattern):
            piece, length = re.escape(pattern[place + 1]), 2
        elif paths and pattern.startswith("**/", place) and last == _ACROSS:
            piece, length = "", 3  # `****/`: the previous wildcard crosses folders already
        elif paths and pattern.startswith("**/", place) and last in ("/", _FOLDERS):
            piece, length = _FOLDERS, 3
        elif paths and pattern.startswith("**", place):
            piece, length = _ACROSS, 2
        elif paths and sign == "[" and (match := re.match(r"\[([!^]?)(\]?[^\]/]*)\]", pattern[place:])):
            piece, length = _one_of(match), len(match[0])
        elif sign == "*":
            piece = _WITHIN if paths else _ACROSS
        elif sign == "?":
            piece = "[^/]" if paths else "."
        else:
            piece = re.escape(sign)
        if piece:
            yield piece
            last = piece
        place += length


def _one_of(match: re.Match[str]) -> str:
    body = re.sub(r"([\\\[&~|])", r"\\\1", match[2])
    expression = f"[{'^/' if match[1] else ''}{body}]"
    try:
        re.compile(expression)
    except re.error:  # [z-a] has no members: the characters are literal
        return re.escape(match[0])
    return expression


def _expression(tokens: list[str]) -> str:
    """Matches a piece at its first occurrence for good if a wildcard of the same reach follows it.

    A piece after `*` must be followed by a `*` in the same folder; one after `**` by any `**`.
    """
    pieces: list[list[str]] = [[]]  # each but the first begins with its `**` or `**/`
    for token in tokens:
        if token in (_ACROSS, _FOLDERS):
            pieces.append([])
        pieces[-1].append(token)
    texts = ["".join(_within(piece)) for piece in pieces]
    final = [f"(?>{text})" for text in texts[1:-1]]
    return "".join((texts[0], *final, *texts[1:][-1:]))


def _within(piece: list[str]) -> Iterator[str]:
    """The same for each `*` between two slashes."""
    place = 0
    while place < len(piece):
        end = place + 1
        if piece[place] == _WITHIN:
            while end < len(piece) and piece[end] not in (_WITHIN, "/"):
                end += 1
            if end < len(piece) and piece[end] == _WITHIN:
                yield f"(?>{''.join(piece[place:end])})"
                place = end
                continue
        yield piece[place]
        place += 1


# Braces


def _choices(pattern: str) -> list[str]:
    """`a{b,c}` becomes `ab` and `ac`. With too many choices, the braces are literal."""
    choices = _expanded(pattern)
    return choices if choices is not None else [re.sub(r"([{},])", r"\\\1", pattern)]


def _expanded(pattern: str) -> list[str] | None:
    """None if there are too many."""
    parts: list[list[str]] = []
    place, count = 0, 1
    while place < len(pattern):
        if pattern[place] == "\\":
            parts.append([pattern[place : place + 2]])
            place += 2
        elif pattern[place] == "{" and (group := _group(pattern, place)):
            options, place = group
            inner = [_expanded(option) for option in options]
            if any(choice is None for choice in inner):
                return None
            parts.append([text for choice in inner for text in choice or ()])
            count *= len(parts[-1])
            if count > MAX_CHOICES:
                return None
        else:
            parts.append([pattern[place]])
            place += 1
    return ["".join(choice) for choice in product(*parts)]


def _group(pattern: str, place: int) -> tuple[list[str], int] | None:
    """The choices of the brace here, and its end; None if it is never closed or contains no comma."""
    depth, start, options = 0, place + 1, []
    position = place
    while position < len(pattern):
        sign = pattern[position]
        if sign == "\\":
            position += 1
        elif sign == "{":
            depth += 1
        elif sign == "}" or (sign == "," and depth == 1):
            depth -= sign == "}"
            if depth == 0 or sign == ",":
                options.append(pattern[start:position])
                start = position + 1
            if depth == 0:
                return (options, position + 1) if len(options) > 1 else None
        position += 1
    return None
