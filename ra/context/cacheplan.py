"""Which part of a request may the provider read from its cache? Where the marks stand, and what broke the prefix."""

from collections.abc import Iterator

import msgspec

from ra.context.projection import COMPACTED
from ra.context.tokens import Estimator, source_of
from ra.core.messages import Message
from ra.core.model import Marks, Request, Section, ToolSpec
from ra.core.value import Value, encode

MOST = 4  # marks in one request, at Anthropic


def marks(request: Request, *, cut: bool = False, gap: int | None = None) -> Marks:
    """At most four: the last message, the end of the request before, the system part, the tools; then tier edges.

    A cache is looked up at a mark and at most 20 blocks before it. One turn may add more than that, so the second mark
    of the rolling pair stands exactly where the request before ended: right before the newest answer. In the first
    request after a `cut` that place is behind the gap, whose marker is message number `gap`. What can still be read
    from the cache ends right before that; if nothing was kept near there, then at the oldest marker. Marks on both find
    it, and keep the markers themselves for a cut that leaves them alone.
    """
    rolling = _rolling(request.messages, cut=cut, gap=gap)
    edges, left = _tier_edges(request), MOST - len(rolling)
    tools = bool(request.tools) and left > bool(edges)
    return Marks(tools, tuple(edges[max(0, len(edges) - left + tools) :]), rolling)


def _rolling(messages: tuple[Message, ...], *, cut: bool, gap: int | None) -> tuple[int, ...]:
    last = len(messages) - 1
    if not cut:
        before = next((index for index in range(last, 0, -1) if messages[index].role == "assistant"), 0) - 1
        return tuple(index for index in (before, last) if index >= 0)
    oldest = next((index for index, message in enumerate(messages) if message.name == COMPACTED), None)
    return tuple(sorted({index for index in (oldest, gap, last) if index is not None and index >= 0}))


def _tier_edges(request: Request) -> list[int]:
    """Indexes of the last section of each tier but the volatile one; the last of them ends the system part."""
    ends = {section.tier: index for index, section in enumerate(request.sections) if section.tier != "volatile"}
    return sorted(ends.values())


class Part(msgspec.Struct, frozen=True):
    """A piece of a request as it is serialised, in the order in which providers read them."""

    source: str
    piece: str | ToolSpec | Section | Message
    body: bytes

    def tokens(self, estimator: Estimator) -> int:
        """In o200k_base."""
        match self.piece:
            case ToolSpec():
                return estimator.tools((self.piece,))
            case Section():
                return estimator.section(self.piece)
            case Message():
                return estimator.message(self.piece)
            case _:
                return 0


def parts(request: Request) -> Iterator[Part]:
    """The model, since caches are not shared between models; then tools, sections and messages."""
    yield Part("model", request.model, request.model.encode())
    yield from (Part("tools", spec, encode(spec)) for spec in request.tools)
    yield from (Part(section.name, section, encode(section)) for section in request.sections)
    yield from (Part(source_of(message), message, encode(message)) for message in request.messages)


class Difference(Value, frozen=True):
    """Where a request stopped being an extension of the one before it.

    `byte` counts in the serialised request; `rebilled` are the tokens of the old request from there on, which could
    have been read from a cache; `anew` as many of those of the new one, which were written instead: fewer, if it was
    cut. `old` and `new` show the place.
    """

    byte: int
    source: str
    rebilled: int
    anew: int
    old: str
    new: str


def first_difference(old: Request, new: Request, estimator: Estimator) -> Difference | None:
    """None when the new request extends the old one byte for byte."""
    before, after = list(parts(old)), list(parts(new))
    offset = 0
    for index, part in enumerate(before):
        body = after[index].body if index < len(after) else b""
        if body != part.body:
            same = _same(part.body, body)
            around = slice(max(0, same - 40), same + 40)
            lost, sent = (
                estimator.scaled(sum(one.tokens(estimator) for one in rest[index:])) for rest in (before, after)
            )
            shown = (part.body[around].decode(errors="replace"), body[around].decode(errors="replace"))
            return Difference(offset + same, part.source, lost, min(lost, sent), *shown)
        offset += len(part.body)
    return None


def _same(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
