"""Reports what a request consists of and what it costs: `ra context`, `--dry-run` and any past request."""

import re
from collections.abc import Iterator

import msgspec

from ra.context.render import COMPACTED, text_of
from ra.context.tokens import Estimator, scaled, source_of
from ra.core.functions import Price, no_price
from ra.core.messages import Message, Role
from ra.core.model import Request, Section, Tier, ToolSpec, Usage
from ra.core.value import Value, encode

# --- a request in pieces, and where one stopped being an extension of the one before ---


class RequestPart(msgspec.Struct, frozen=True):
    """A piece of a request, in the order in which providers read them."""

    source: str
    piece: str | ToolSpec | Section | Message

    @property
    def body(self) -> bytes:
        """The piece, serialised. Made on demand, since a long request is large."""
        return self.piece.encode() if isinstance(self.piece, str) else encode(self.piece)

    def equals(self, other: "RequestPart") -> bool:
        return self.piece is other.piece or self.body == other.body

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


def parts(request: Request) -> Iterator[RequestPart]:
    """The parts of a request: the model (caches are not shared between models), tools, sections, messages."""
    yield RequestPart("model", request.model)
    yield from (RequestPart("tools", spec) for spec in request.tools)
    yield from (RequestPart(section.name, section) for section in request.sections)
    yield from (RequestPart(source_of(message), message) for message in request.messages)


class Difference(Value, frozen=True):
    """Where a request stops extending the previous one.

    `byte` is the offset in the serialised request. `rebilled` are the tokens of the old request after it, which could
    have been read from the cache; `anew` are the tokens of the new request that were written instead (fewer after a
    cut). `old` and `new` show the text at that place.
    """

    byte: int
    source: str
    rebilled: int
    anew: int
    old: str
    new: str


def first_difference(old: Request, new: Request, estimator: Estimator) -> Difference | None:
    """The first difference; None if the new request extends the old one byte for byte."""
    before, after = list(parts(old)), list(parts(new))
    offset = 0
    for index, part in enumerate(before):
        if index < len(after) and part.equals(after[index]):
            offset += len(part.body)
            continue
        old_body, body = part.body, after[index].body if index < len(after) else b""
        equal_bytes = _same(old_body, body)
        around = slice(max(0, equal_bytes - 40), equal_bytes + 40)
        lost, sent = (estimator.scaled(sum(one.tokens(estimator) for one in rest[index:])) for rest in (before, after))
        excerpts = (old_body[around].decode(errors="replace"), body[around].decode(errors="replace"))
        return Difference(offset + equal_bytes, part.source, lost, min(lost, sent), *excerpts)
    return None


def _same(one: bytes, other: bytes) -> int:
    """The length of the common beginning, in bytes."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


# The references in markers of compactions, and in those of cut sources and slots.
_RECALLED = re.compile(r'recall\("([#~][^"]+)"\)|(?<=[:] )recall (~[0-9a-f]{12}) reads')


class Row(Value, frozen=True):
    """One source of the request. `cached` are the tokens that the previous request had at the same place."""

    name: str
    tier: Tier
    role: Role
    tokens: int = 0
    max: int | None = None
    cut: str = ""
    cached: int = 0


class Report(Value, frozen=True):
    """A request by source, in its order. `cost` is the price of the input in dollars, "" if unknown."""

    model: str
    window: int | None
    total: int
    cached: int
    cost: str
    rows: tuple[Row, ...]


def report(
    request: Request,
    *,
    estimator: Estimator,
    window: int | None,
    rate: float | None = None,
    previous: Request | None = None,
    price: Price = no_price,
) -> Report:
    """`previous` is the request whose prefix the provider may still have cached, if the model is the same. New tokens
    are priced as cache writes. `rate` comes from the session's own bills; None means the estimator's factor."""
    cached_parts = parts(previous) if previous and previous.model == request.model else iter(())
    rate = estimator.factor if rate is None else rate
    rows: dict[tuple[str, Role], Row] = {}
    total = cached = plain = 0
    extends = True
    for part in parts(request):
        cached_part = next(cached_parts, None)
        extends = extends and cached_part is not None and cached_part.equals(part)
        if isinstance(part.piece, str):
            continue
        before, plain = scaled(plain, rate), plain + part.tokens(estimator)
        tokens = scaled(plain, rate) - before  # so that the rows add up to the size of the request
        total += tokens
        cached += tokens if extends else 0
        row = _row(part)
        rows[row.name, row.role] = _add(rows.get((row.name, row.role), row), row, tokens, cached=tokens * extends)
    dollars = price(request.model, Usage(cache_read=cached, cache_write=total - cached))
    return Report(request.model, window, total, cached, "" if dollars is None else str(dollars), tuple(rows.values()))


def _row(part: RequestPart) -> Row:
    match part.piece:
        case Section(name=name, tier=tier, role=role, max=most, cut=cut):
            return Row(name, tier, role, max=most, cut=cut)
        case Message(role=role) as message:
            shown: Role = "tool" if message.name.startswith("tool:") else role  # labelled output of a tool
            return Row(part.source, "volatile", shown, cut=_cut(message))
        case _:
            return Row(part.source, "pinned", "system")


def _add(known: Row, row: Row, tokens: int, *, cached: int) -> Row:
    cut = "; ".join(dict.fromkeys(part for part in (known.cut, row.cut) if part))
    return Row(known.name, known.tier, known.role, known.tokens + tokens, known.max, cut, known.cached + cached)


def _cut(message: Message) -> str:
    """The reference that a marker in the message gives for reading back what was cut."""
    text = text_of(message)
    if "recall" not in text:  # faster than the regular expression, and true of most messages
        return ""
    references = dict.fromkeys(called or read for called, read in _RECALLED.findall(text))
    if not references or (message.role in ("user", "assistant") and not message.name and "[…" not in text):
        return ""
    what = "hidden" if message.name == COMPACTED else "shortened"
    return f"{what}: recall " + ", ".join(reference for reference in references if reference != "#N")


# --- what a user is shown of a compaction, and of what they said ---


class CompactionPreview(Value, frozen=True):
    """Tokens are the model's; dollars are for the input of one call with a warm cache, "" if the price is unknown.

    `rewrite` is the price of the first call after the compaction. From call number `break_even` on, all calls since
    the compaction together cost less than without it; None if never. The compaction happens only if it is `worth` it.
    """

    strategy: str
    before: int
    after: int
    hidden: str = ""
    messages: int = 0
    text: str = ""
    worth: bool = False
    dollars_before: str = ""
    dollars_after: str = ""
    rewrite: str = ""
    break_even: int | None = None


class Statement(msgspec.Struct, frozen=True):
    """A rule or decision of the user: where stated, where replaced (0: not), and whether the next request has it."""

    at: int
    text: str
    replaced_at: int
    visible: bool
