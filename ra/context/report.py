"""What is a request made of, and what will it cost? One function for `ra context`, `--dry-run` and any past request."""

import re

from ra.context.cacheplan import Part, parts
from ra.context.projection import COMPACTED, text_of
from ra.context.tokens import Estimator, scaled
from ra.core.functions import Price
from ra.core.messages import Message, Role
from ra.core.model import Request, Section, Tier, Usage
from ra.core.value import Value

# As compactions write it, and as cuts of sources and slots do.
_RECALLED = re.compile(r'recall\("([#~][^"]+)"\)|(?<=[:] )recall (~[0-9a-f]{12}) reads')


class Row(Value, frozen=True):
    """One source of the request. `cached` are its tokens that the request before already held, at the same place."""

    name: str
    tier: Tier
    role: Role
    tokens: int = 0
    max: int | None = None
    cut: str = ""
    cached: int = 0


class Report(Value, frozen=True):
    """`cost` is what the input will cost in dollars, "" without a price; rows stand in the order of the request."""

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
    price: Price = lambda model, usage: None,
) -> Report:
    """`previous` is the request whose prefix the provider may still hold, if it is the same model that is asked. What
    is new is priced as cache write. `rate` is what the session's own bill says; None: the estimator's factor."""
    known = [part.body for part in parts(previous)] if previous and previous.model == request.model else []
    rate = estimator.factor if rate is None else rate
    rows: dict[tuple[str, Role], Row] = {}
    total = cached = plain = 0
    extends = True
    for index, part in enumerate(parts(request)):
        extends = extends and index < len(known) and known[index] == part.body
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


def _row(part: Part) -> Row:
    match part.piece:
        case Section(name=name, tier=tier, role=role, max=most, cut=cut):
            return Row(name, tier, role, max=most, cut=cut)
        case Message(role=role) as message:
            return Row(part.source, "volatile", role, cut=_cut(message))
        case _:
            return Row(part.source, "pinned", "system")


def _add(known: Row, row: Row, tokens: int, *, cached: int) -> Row:
    cut = "; ".join(dict.fromkeys(part for part in (known.cut, row.cut) if part))
    return Row(known.name, known.tier, known.role, known.tokens + tokens, known.max, cut, known.cached + cached)


def _cut(message: Message) -> str:
    """What a marker in the message says of the way back."""
    references = dict.fromkeys(called or read for called, read in _RECALLED.findall(text_of(message)))
    if not references or (message.role in ("user", "assistant") and not message.name and "[…" not in text_of(message)):
        return ""
    what = "hidden" if message.name == COMPACTED else "shortened"
    return f"{what}: recall " + ", ".join(reference for reference in references if reference != "#N")
