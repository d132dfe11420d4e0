"""Finds the names in a text, and chooses those that are worth their tokens in an index."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

import msgspec

from ra.core.messages import Message, Text, ToolCall, ToolResult

# Lengths are bounded so that a megabyte without spaces is read in linear time. ASCII, so that a name ends where Chinese
# or Japanese begins.
_WORDS = re.compile(
    r"(?:https?:/)?(?:[~\w.@-]{0,100}/){1,40}[\w.@%?=&-]{1,100}"  # a path or an address
    r"|[A-Za-z_$][\w$]*(?:-\d{1,9}\b)?"  # a word, a ticket
    r"|\d{1,20}(?:[.:-]\d{1,20}){0,6}",  # a number, a version, a date, an amount
    re.ASCII,
)
_CODE = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]|_|[A-Za-z]-?\d")
# A file in running text: it has a suffix of letters, and no address before it.
_FILES = re.compile(
    r"(?<![\w/.:@-])(?:[~.]{0,2}/)?(?:[\w.@-]{1,80}/){0,20}[\w@-][\w.@-]{0,80}\.[A-Za-z]\w{0,5}\b(?![@/(])", re.ASCII
)
_VERSION = re.compile(r"[A-Za-z]?\d[\w.]*|(?:[a-z]\.)+[a-z]", re.I)  # v1.2.b; e.g
LONGEST = 200
SCANNED = 200_000  # characters of one message that are searched

AGE = 20  # groups after which an unused name counts about half
FADING = 0.8
PLACES = 40  # references in an index of names


class Seen(msgspec.Struct):
    """A name in hidden text: how often it was seen and used, the last group with it, and its position."""

    weight: int
    order: int
    at: int


def identifiers(text: str) -> frozenset[str]:
    """Paths, words written like code (camelCase, snake_case, with digits), and numbers of two or more digits.

    Plain words do not count: they recur by chance.
    """
    return frozenset(map(sys.intern, _each(text)))  # a name that many messages hold is kept once


def file_names(text: str) -> list[str]:
    """Paths and file names in prose, in order."""
    paths = (match[0].rstrip(".") for match in _FILES.finditer(text[:SCANNED]))
    return list(dict.fromkeys(path for path in paths if not _VERSION.fullmatch(path)))


def _each(text: str) -> Iterator[str]:
    for word in set(_WORDS.findall(text)):  # most words occur many times
        if "/" in word:
            path = word.rstrip(".?&=-")
            if len(path) > 2:
                yield path
        elif word[0].isdigit():
            if len(word) > 1:
                yield word
        elif 2 < len(word) < LONGEST and _is_code(word):
            yield word


@lru_cache(20_000)
def _is_code(word: str) -> bool:
    return bool(_CODE.search(word))


def spoken(message: Message) -> frozenset[str]:
    """All identifiers of a message, without its thinking, which providers drop from later turns."""
    return identifiers("\n".join(texts(message)))


def texts(message: Message) -> Iterator[str]:
    for block in message.blocks:
        match block:
            case Text(text):
                yield text
            case ToolCall():
                yield block.name
                yield from strings(block.args)
                yield block.broken
            case ToolResult(content=content):
                yield from (part.text for part in content if isinstance(part, Text))
            case _:
                pass


def strings(value: object) -> Iterator[str]:
    """Every string and number in a JSON value, without punctuation and escapes."""
    match value:
        case str():
            yield value
        case bool() | None:
            pass
        case int() | float():
            yield str(value)
        case dict():
            for item in value.values():
                yield from strings(item)
        case list() | tuple():
            for item in value:
                yield from strings(item)


def fold(groups: Iterable[tuple[int, Iterable[str]]]) -> dict[str, Seen]:
    """The statistics of each name, from the names of the groups (position, and each name with its weight), in order."""
    sightings: dict[str, Seen] = {}
    for order, (at, names) in enumerate(groups):
        for name in names:
            sighting = sightings.get(name)
            if sighting is None:
                sightings[name] = Seen(1, order, at)
            else:
                sighting.weight, sighting.order, sighting.at = sighting.weight + 1, order, at
    return sightings


def choose(sightings: Mapping[str, Seen], room: int, tokens: Callable[[str], int]) -> list[str]:
    """The names most likely to be used again per token they cost: often used, recently seen, short."""
    newest = max((sighting.order for sighting in sightings.values()), default=0)

    def worth(name: str) -> float:
        sighting = sightings[name]
        return float(sighting.weight / (newest - sighting.order + AGE) ** FADING / tokens(name) ** 0.5)

    picked: list[str] = []
    for name in sorted(sightings, key=lambda name: (-worth(name), name)):
        room -= tokens(name)
        if room < 0:
            break
        picked.append(name)
    return picked


def written(picked: Iterable[str], sightings: Mapping[str, Seen]) -> str:
    """The names, grouped by the stretch where they occurred last, each stretch with its reference: a reference for
    each name would cost as much as the names."""
    places = {sightings[name].at for name in picked}
    if not places:
        return ""
    first, last = min(places), max(places)
    width = max(1, -(-(last - first + 1) // PLACES))
    stretches: dict[int, list[str]] = {}
    for name in picked:
        stretches.setdefault((sightings[name].at - first) // width, []).append(name)
    return "\n".join(
        f"{_reference(first + number * width, min(last, first + (number + 1) * width - 1))}: {' '.join(sorted(names))}"
        for number, names in sorted(stretches.items())
    )


def _reference(start: int, end: int) -> str:
    return f"#{start}" if start == end else f"#{start}-{end}"
