"""What does a glob match? One translation to a regular expression, for rules and for files."""

import re
from functools import lru_cache


@lru_cache(maxsize=512)
def glob_regex(pattern: str, *, paths: bool = False, word_end: bool = False) -> re.Pattern[str]:
    """A glob with `*` and `?`; a backslash takes the next sign as it is.

    In paths `*` stays inside a name, `**` crosses folders, and `[a-z]` and `{a,b}` mean what they mean in a shell.
    With `word_end`, ` *` at the end also covers nothing at all: `npm run *` speaks of `npm run` too.
    """
    tail = ""
    if word_end and pattern.endswith(" *"):
        pattern, tail = pattern[:-2], r"(?:\s.*)?"
    return re.compile(_translate(pattern, paths=paths) + tail, re.DOTALL)


def _translate(pattern: str, *, paths: bool) -> str:
    out, place, depth = [], 0, 0
    while place < len(pattern):
        sign = pattern[place]
        taken = 1
        if sign == "\\" and place + 1 < len(pattern):
            piece, taken = re.escape(pattern[place + 1]), 2
        elif paths and pattern.startswith("**/", place):
            piece, taken = "(?:.*/)?", 3
        elif paths and pattern.startswith("**", place):
            piece, taken = ".*", 2
        elif paths and sign == "[" and (found := re.match(r"\[([!^]?)(\]?[^\]/]*)\]", pattern[place:])):
            body = re.sub(r"([\\\[&~|])", r"\\\1", found[2])
            piece, taken = f"[{'^/' if found[1] else ''}{body}]", len(found[0])
        elif paths and sign == "{" and _closes(pattern, place):
            piece, depth = "(?:", depth + 1
        elif depth and sign == "}":
            piece, depth = ")", depth - 1
        elif depth and sign == ",":
            piece = "|"
        else:
            piece = {"*": "[^/]*" if paths else ".*", "?": "[^/]" if paths else "."}.get(sign, re.escape(sign))
        out.append(piece)
        place += taken
    return "".join(out)


def _closes(pattern: str, place: int) -> bool:
    """Whether the brace here is closed by one of its own, with a comma between."""
    depth, comma = 0, False
    for sign in pattern[place:]:
        depth += (sign == "{") - (sign == "}")
        comma |= sign == "," and depth == 1
        if depth == 0:
            return comma
    return False
