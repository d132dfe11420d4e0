"""Finds the names in a text, and chooses those that are worth their tokens in an index."""

import re
import sys
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from heapq import merge
from itertools import chain

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
LATE = 100  # groups that a row may lose again: a prompt is hidden later than the calls after it


class Seen(msgspec.Struct, frozen=True, gc=False):
    """A name in hidden text: how often it was seen and used, the last group with it, its position; the name's size."""

    weight: int
    order: int
    at: int
    tokens: int


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


class Sightings:
    """What is known of each name in a row of groups, oldest first. The row grows, for the next index covers it again.

    The names that were seen last in one group are of one age, so their order among each other stays as it is until one
    of them is seen again. Each group's names are sorted once, and choosing the best of all merges these lists.
    """

    def __init__(self, tokens: Callable[[str], int]) -> None:
        self._tokens = tokens
        self._seen: dict[str, Seen] = {}
        self._ranked: list[list[str]] = []  # by group; a name that was seen again later counts there alone
        self._before: deque[dict[str, Seen | None]] = deque(maxlen=LATE)  # what the newest groups replaced

    def __len__(self) -> int:
        """How many groups were read."""
        return len(self._ranked)

    def __getitem__(self, name: str) -> Seen:
        return self._seen[name]

    def add(self, at: int, names: Iterable[str]) -> None:
        """Read the next group: its position, and each of its names as often as it counts."""
        counts, order = Counter(names), len(self._ranked)
        before = {name: self._seen.get(name) for name in counts}
        for name, seen in before.items():
            if seen is None:
                self._seen[name] = Seen(counts[name], order, at, self._tokens(name))
            else:
                self._seen[name] = Seen(seen.weight + counts[name], order, at, seen.tokens)
        self._before.append(before)
        self._ranked.append(sorted(counts, key=self._rank))

    def cut(self, length: int) -> bool:
        """Forget all but the first so many groups, if no more are to be forgotten than are remembered for that."""
        if len(self) - length > len(self._before):
            return False
        while len(self) > length:
            self._ranked.pop()
            for name, seen in self._before.pop().items():
                if seen is None:
                    del self._seen[name]
                else:
                    self._seen[name] = seen
        return True

    def best(self, skipped: Collection[str] = ()) -> Iterator[str]:
        """The names most likely to be used again per token they cost: often used, recently seen, short."""
        return (name for _, name in merge(*self._by_worth(skipped)))

    def within(self, room: int, names: Iterable[str]) -> list[str]:
        """The first of the names, as many as fit."""
        fitting: list[str] = []
        for name in names:
            room -= self._seen[name].tokens
            if room < 0:
                break
            fitting.append(name)
        return fitting

    def _by_worth(self, skipped: Collection[str]) -> Iterator[Iterator[tuple[float, str]]]:
        """For each group the names that were last seen there, the best first."""
        newest = None
        for order in range(len(self._ranked) - 1, -1, -1):
            names = self._last_seen(order, skipped)
            first = next(names, None)
            if first is not None:
                newest = order if newest is None else newest
                yield self._priced(chain((first,), names), (newest - order + AGE) ** FADING)

    def _last_seen(self, order: int, skipped: Collection[str]) -> Iterator[str]:
        return (name for name in self._ranked[order] if self._seen[name].order == order and name not in skipped)

    def _priced(self, names: Iterable[str], fading: float) -> Iterator[tuple[float, str]]:
        return ((self._rank(name)[0] / fading, name) for name in names)

    def _rank(self, name: str) -> tuple[float, str]:
        """By this the names of one age are sorted, and for names of other ages it fades."""
        seen = self._seen[name]
        return -seen.weight / seen.tokens**0.5, name


def written(picked: Iterable[str], sightings: Sightings) -> str:
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
