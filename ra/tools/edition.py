"""Computes the result of an edit: exact text is replaced, several pieces in order, all or nothing."""

import codecs
import os
import re
from typing import Annotated

import msgspec
from msgspec import Meta

from ra.core.value import Value
from ra.tools.files import MAX_EDIT_BYTES, read_whole
from ra.tools.policy.paths import shown
from ra.tools.tool import Mistake

SHOWN_LINES = 20
COMPARED_CHARACTERS = 500_000  # of a file, compared to guess the intended text: more takes seconds
COMPARED_LINES = 3000
COMPARED_LINE = 300


class Replacement(msgspec.Struct):
    old_string: str
    new_string: str
    replace_all: bool = False


class EditArgs(msgspec.Struct):
    path: str
    old_string: Annotated[str, Meta(description="Exact text, unique in the file")] = ""
    new_string: str = ""
    replace_all: bool = False
    edits: Annotated[list[Replacement], Meta(description="Instead: several, in order, all or none")] = []


class Edition(Value, frozen=True):
    """A file before (None: it does not exist) and after an edit, and the line numbers of the first changes."""

    before: bytes | None
    after: bytes
    lines: tuple[int, ...]
    replacements: int


def edition(path: str, args: EditArgs) -> Edition:
    """Computes the edit and writes nothing. Raises Mistake if the edit does not fit the file."""
    # Models that fill in every argument add an empty edit.
    edits = [edit for edit in args.edits if edit.old_string or edit.new_string or not args.old_string]
    if args.old_string or args.new_string or not edits:
        edits.insert(0, Replacement(args.old_string, args.new_string, args.replace_all))
    if not os.path.lexists(path) and edits[0].old_string == "" and edits[0].new_string:
        before, text, encoding = None, "", "utf-8"
    else:
        before = read_whole(path)
        text, encoding = _decode(before, path)
    lines: list[int] = []
    total = 0
    for number, edit in enumerate(edits, 1):
        label = f"edit {number}: " if len(edits) > 1 else ""
        text, where, count = _replace(text, edit, label)
        lines += where
        total += count
    after = _encode(text, encoding)
    if after == before:
        raise Mistake("The file already is as the edit would make it; nothing was changed.")
    return Edition(before, after, tuple(lines), total)


def _decode(data: bytes, path: str) -> tuple[str, str]:
    """The text, and the encoding that restores it byte for byte: a BOM and invalid bytes survive."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16-le" if data.startswith(codecs.BOM_UTF16_LE) else "utf-16-be"
        return data.decode(encoding, "surrogatepass"), encoding
    if b"\0" in data[:8192]:
        raise Mistake(f"{shown(path)} is a binary file; Edit changes text.")
    return data.decode("utf-8", "surrogateescape"), "utf-8"


def _encode(text: str, encoding: str) -> bytes:
    if encoding != "utf-8":
        return text.encode(encoding, "surrogatepass")
    # Surrogates that represent invalid bytes turn back into them; others came from the model and are replaced.
    return re.sub("[\ud800-\udc7f\udd00-\udfff]", "\ufffd", text).encode("utf-8", "surrogateescape")


def _replace(text: str, edit: Replacement, label: str) -> tuple[str, list[int], int]:
    """The text after one replacement, the line numbers of the first occurrences, and their total."""
    if edit.old_string == edit.new_string:
        raise Mistake(f"{label}old_string and new_string are the same.")
    if not edit.old_string:
        if text.removeprefix("\ufeff"):
            raise Mistake(f"{label}old_string is empty. Give the text to replace, or use Write for the whole file.")
        return text + edit.new_string, [1], 1
    old, new = _with_line_ends_of(text, edit)
    count = text.count(old)
    if count == 0:
        raise Mistake(f"{label}old_string is not in the file.{_nearest(text, edit.old_string)} Nothing was changed.")
    if count > 1 and not edit.replace_all:
        where = ", ".join(map(str, _lines_of(text, old, most=10)))
        raise Mistake(f"{label}old_string is there {count} times (lines {where}); give more of it, or replace_all.")
    if len(text) + count * (len(new) - len(old)) > MAX_EDIT_BYTES:
        raise Mistake(f"{label}the file would have more than {MAX_EDIT_BYTES} characters. Nothing was changed.")
    return text.replace(old, new), _lines_of(text, old, most=SHOWN_LINES), count


def _with_line_ends_of(text: str, edit: Replacement) -> tuple[str, str]:
    """The old and new text with the file's line ends: models write \\n even for \\r\\n. Mixed files are left alone."""
    old, new = edit.old_string, edit.new_string
    windows = text.count("\r\n")
    if windows * 2 > text.count("\n"):
        as_file = [re.sub(r"\r?\n", "\r\n", part) for part in (old, new)]
        if as_file[0] in text:
            return as_file[0], as_file[1]
    if old not in text:
        plain = [part.replace("\r\n", "\n") for part in (old, new)]
        if plain[0] in text:
            return plain[0], plain[1]
    return old, new


def _lines_of(text: str, old: str, *, most: int) -> list[int]:
    lines: list[int] = []
    line, place = 1, 0
    while len(lines) < most and (start := text.find(old, place)) >= 0:
        line += text.count("\n", place, start)
        lines.append(line)
        line += old.count("\n")
        place = start + len(old)
    return lines


def _nearest(text: str, old: str) -> str:
    """A hint at the intended text: the same words with other white space, or the most similar line."""
    words = old.split()
    if not words or len(text) > COMPARED_CHARACTERS:
        return ""
    loose = re.search(r"\s+".join(map(re.escape, words[:200])), text)
    if loose:
        line = text.count("\n", 0, loose.start()) + 1
        start = text.rfind("\n", 0, loose.start()) + 1
        end = text.find("\n", loose.end())
        return f" White space differs; line {line} is:\n{text[start : end if end >= 0 else None][:2000]}\n"
    from difflib import get_close_matches  # start-up time: only for a failed edit

    first = next(line.strip() for line in old.splitlines() if line.strip())
    lines = {line.strip(): number for number, line in reversed(list(enumerate(text.splitlines()[:20_000], 1)))}
    if len(first) > COMPARED_LINE:
        return ""
    candidates = [line for line in lines if abs(len(line) - len(first)) <= len(first) // 2][:COMPARED_LINES]
    close = get_close_matches(first, candidates, n=1, cutoff=0.6)
    return f" The most similar line is {lines[close[0]]}: {close[0][:500]}\n" if close else ""
