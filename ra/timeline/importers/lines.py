"""Read a file that may be huge, cut off, damaged or hostile, piece by piece; what is skipped is reported."""

import json
import math
import mmap
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from ra.core.text import clean
from ra.core.value import too_deep
from ra.system.files import open_resolved

LONGEST = 64 * 1024 * 1024  # bytes of one line; an image or a tool's output can be large, but not that large
DEEPEST = 500  # levels of lists and objects: far more than any transcript has
TOLD = 20  # notes on what was skipped; the rest is counted


class Skips:
    """What was left out of a file and why, with neighbouring lines told together."""

    def __init__(self) -> None:
        self._notes: list[tuple[str, int, int, str]] = []
        self._untold = 0

    def add(self, place: int, reason: str, *, unit: str = "line") -> None:
        if self._notes:
            kind, first, last, why = self._notes[-1]
            if (kind, why) == (unit, reason) and place == last + 1:
                self._notes[-1] = (kind, first, place, why)
                return
        if len(self._notes) < TOLD:
            self._notes.append((unit, place, place, reason))
        else:
            self._untold += 1

    @property
    def notes(self) -> list[str]:
        notes = [
            f"{unit} {first}: {reason}" if first == last else f"{unit}s {first}-{last}: {reason}"
            for unit, first, last, reason in self._notes
        ]
        return [*notes, f"and {self._untold} more"] if self._untold else notes


class BadJson(ValueError):
    """A piece of JSON that cannot be used; the text says why."""


def objects(path: Path, skips: Skips, *, lines: int | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a file of lines, each with its line number; of the first `lines` lines only, if given."""
    for number, line in islice(_lines(path, skips), lines):
        try:
            value = parse(line)
        except BadJson as error:
            skips.add(number, str(error))
            continue
        if isinstance(value, dict):
            yield number, value
        else:
            skips.add(number, "not a JSON object")


def _lines(path: Path, skips: Skips) -> Iterator[tuple[int, bytes]]:
    with open_resolved(path) as file:
        number = 0
        while line := file.readline(LONGEST):
            number += 1
            if len(line) == LONGEST and not line.endswith(b"\n"):
                while (more_of_it := file.readline(LONGEST)) and not more_of_it.endswith(b"\n"):
                    pass
                skips.add(number, f"longer than {LONGEST // 1024 // 1024} MB")
            elif stripped := line.strip(b"\0\r\n\t \xef\xbb\xbf"):  # a crash can leave zeros; a byte-order mark
                yield number, stripped


def elements(path: Path, skips: Skips) -> Iterator[tuple[int, Any]]:
    """The numbered elements of a file that is one JSON array, or the object that it is; as many as can be read."""
    # Mapped and cut into pieces without a copy, so that only one conversation at a time is spread out in memory.
    with open_resolved(path) as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        pieces = msgspec.json.decode(mapped, type=list[msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        # What is not one sound array is spread out as a whole, so only so much of it.
        yield from enumerate(_salvaged(mapped[:LONGEST].decode("utf-8", "replace"), skips), 1)
        return
    for number, piece in enumerate(pieces, 1):
        try:
            yield number, parse(bytes(piece))
        except BadJson as error:
            skips.add(number, str(error), unit="element")


def _salvaged(text: str, skips: Skips) -> list[Any]:
    # Not an array, or a damaged one: what stands before the damage is good.
    try:
        return [parse(text.encode())]
    except BadJson as error:
        start = text.find("[") + 1
        if not start or text[: start - 1].strip("\ufeff \t\r\n"):
            skips.add(1, str(error))
            return []
    decoder = json.JSONDecoder()
    values: list[Any] = []
    while True:
        start += len(text[start : start + 4096]) - len(text[start : start + 4096].lstrip(", \t\r\n"))
        try:
            value, start = decoder.raw_decode(text, start)
            values.append(_clean(value))
        except (ValueError, RecursionError):
            if text[start : start + 1] != "]":
                skips.add(len(values) + 1, "broken; nothing can be read from there on", unit="element")
            return values


def parse(raw: bytes) -> Any:
    """JSON, with everything repaired that can be: lone surrogates, bytes that are not UTF-8, NaN. Raises Unreadable."""
    value = _parsed(raw)
    # How deep a parser reads depends on Python's version and stack: what is too deep is the same for all.
    if raw.count(b"[") + raw.count(b"{") > DEEPEST and too_deep(value, DEEPEST):
        raise BadJson("nested too deep")
    return value


def _parsed(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return _clean(json.loads(raw.decode("utf-8", "replace")))
    except RecursionError as error:
        raise BadJson("nested too deep") from error
    except ValueError as error:
        raise BadJson("not JSON, or cut off") from error


def _clean(value: Any) -> Any:
    match value:
        case str():
            return clean(value)
        case float() if not math.isfinite(value):
            return None
        case dict():
            return {_clean(name): _clean(item) for name, item in value.items()}
        case list():
            return [_clean(item) for item in value]
        case _:
            return value
