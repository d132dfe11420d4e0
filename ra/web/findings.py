"""Finds the avoidable costs of a session: lost caches, pauses, changed models, and text that was read again."""

from collections.abc import Iterator

from ra.core.facts import Said
from ra.core.messages import ToolCall, ToolResult
from ra.core.text import clean, one_line
from ra.core.value import encode
from ra.web.marks import span
from ra.web.model import Recording, list_price
from ra.web.values import Avoidable, CostFindings, RequestPiece, Spender

MOST = 30
SPENDERS = 12
SMALLEST = 0.0005  # dollars; smaller costs are not listed


def findings(recording: Recording) -> CostFindings:
    session = recording.session()
    if not recording.trace.calls:
        return CostFindings([], [], [], [], [])
    avoidable = [*_caches(recording), *_rereads(recording)]
    avoidable.sort(key=_by_cost)
    by_share = sorted(range(len(session.pieces)), key=lambda number: -session.pieces[number].dollars)[:SPENDERS]
    lines = recording.lines()
    return CostFindings(
        [finding for finding in avoidable if finding.dollars >= SMALLEST][:MOST],
        [
            Spender(_piece_name(session.sources, session.pieces[number]), session.pieces[number].dollars, number)
            for number in by_share
            if session.pieces[number].dollars >= SMALLEST
        ],
        lines["source"],
        lines["tool"],
        lines["model"],
        divided=recording.divided,
    )


def _by_cost(finding: Avoidable) -> float:
    return -finding.dollars


def _piece_name(sources: list[str], piece: RequestPiece) -> str:
    return f"{sources[piece.source]}: {piece.label}"


def _caches(recording: Recording) -> Iterator[Avoidable]:
    """Calls that paid full price for tokens which the previous request had already cached."""
    session, calls = recording.session(), recording.trace.calls
    for number, missing in recording.uncached.items():
        usage, rate = recording.usages[number], recording.rates[number]
        listed = list_price(usage, rate)
        factor = session.calls.dollars[number] / listed if listed else 1.0
        dollars = missing * ((rate.write if usage.cache_write else rate.input) - rate.read) / 1e6 * factor
        resent = f"{missing:,} tokens were sent again at full price"
        match recording.reason(number):
            case "model":
                yield Avoidable("model", f"The model changed to {calls[number].model}: {resent}.", dollars, number)
            case "pause":
                idle = span(recording.idle_s(number))
                yield Avoidable("pause", f"After a pause of {idle} the cache was cold: {resent}.", dollars, number)
            case "lost":
                yield Avoidable("lost", f"The cache was lost although nothing had changed: {resent}.", dollars, number)


def _rereads(recording: Recording) -> Iterator[Avoidable]:
    """Equal calls with equal results. Each later copy is paid for with every request that carries it."""
    session = recording.session()
    numbers = {id(content): number for number, content in enumerate(recording.requests.contents)}
    calls: dict[str, ToolCall] = {}
    copies: dict[tuple[str, bytes, bytes], list[int]] = {}
    for event in recording.trace.events:
        if not isinstance(event.fact, Said):
            continue
        message = event.fact.message
        calls.update((call.id, call) for call in message.calls)
        for block in message.blocks:
            if isinstance(block, ToolResult) and block.call_id in calls and id(message) in numbers:
                call = calls[block.call_id]
                key = (call.name, encode(call.args), encode(block.content))
                copies.setdefault(key, []).append(numbers[id(message)])
    for (name, _, _), pieces in copies.items():
        later = [session.pieces[number] for number in pieces[1:]]
        if not later:
            continue
        after_cut = sum(piece.first > session.pieces[pieces[0]].last >= 0 for piece in later)
        why = "after it had been cut" if after_cut == len(later) else "while it was still in the window"
        times = "twice" if len(pieces) == 2 else f"{len(pieces)} times"
        first = session.pieces[pieces[0]]
        yield Avoidable(
            "reread",
            f"{one_line(clean(name), 40)} returned the same {first.tokens:,} tokens {times}, {why}: {first.label}",
            sum(piece.dollars for piece in later),
            max(0, later[0].first),
            pieces[0],
        )
