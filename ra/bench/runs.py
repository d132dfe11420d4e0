"""How do all strategies compare on a transcript? `compare(transcript, …)` → one result with a row for each."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import get_args

import msgspec

from ra.bench.compacting import Compacting, Name
from ra.bench.comparisons import BatchPrune, Nothing, Recorded, RollingMask
from ra.bench.layered import Layered, Planner
from ra.bench.optimum import optimum
from ra.bench.replay import Market, Memory, Row, Strategy, replay
from ra.bench.trace import LARGEST, Trace
from ra.context.settings import CompactionSettings
from ra.context.tokens import Estimator
from ra.context.window import trigger
from ra.core.errors import UserError
from ra.core.facts import TimelineEvent
from ra.core.value import Value
from ra.costs.economy import INDEX, Economy
from ra.costs.prices import PriceRow, Prices
from ra.costs.promptcache import LIFETIME_S, LONG_LIFETIME_S, rules_for
from ra.providers import catalog

RECORDED = "recorded"
SIZED = "auto, indexes of "
SIZES = (5_000, 8_000, 12_000, 20_000, 40_000)  # tokens
COMPACTIONS: tuple[Name, ...] = get_args(Name)
STRATEGIES = ("nothing", *COMPACTIONS, "rolling-mask", "batch-prune", "layered", "planner")
UNKNOWN_WINDOW = 200_000
MAX_OUTPUT = 8192
DEFAULT_MODEL = "claude-opus-4-6"


class Calibration(Value, frozen=True):
    """The replay of what was sent against the bill. `outside` counts caches that were lost for no reason in the
    conversation; the other rows do not lose them."""

    billed: float
    simulated: float
    outside: int

    @property
    def difference(self) -> float:
        return self.simulated / self.billed - 1 if self.billed else 0.0


class TraceResult(Value, frozen=True):
    """A transcript under every strategy, `recorded` first. A model whose price nobody knows is `priced_as` another."""

    file: str
    name: str
    model: str
    calls: int
    window: int
    started: float
    ended: float
    rows: tuple[Row, ...]
    priced_as: str = ""
    calibration: Calibration | None = None
    optimum: float | None = None  # of `auto`, had it known how the session goes on
    sizes: tuple[Row, ...] = ()  # of `auto` with indexes of other sizes, from small to large
    skipped: tuple[str, ...] = ()


class Conditions(msgspec.Struct, frozen=True):
    """What a comparison stands on. Without a model or a window, those of the transcript."""

    prices: Prices
    strategies: Sequence[str] = STRATEGIES
    model: str = ""
    window: int | None = None
    settings: CompactionSettings = CompactionSettings()
    sizes: Sequence[int] = ()  # of indexes, with which `auto` is replayed as well


def check(strategies: Sequence[str]) -> tuple[str, ...]:
    """The strategies, or an error that names the legal ones."""
    for name in strategies:
        if name not in STRATEGIES:
            raise UserError(f"Unknown strategy {name!r}; use {', '.join(STRATEGIES)}.")
    return tuple(strategies)


def compare(
    file: str,
    name: str,
    model: str,
    events: Sequence[TimelineEvent],
    conditions: Conditions,
    *,
    skipped: Sequence[str] = (),
    step: Callable[[], None] = lambda: None,
) -> TraceResult | None:
    """Replay one conversation; None when it holds no model call. `step` is called after each strategy."""
    model = conditions.model or model or DEFAULT_MODEL
    trace = Trace(name, model, events, Estimator())
    if not trace.calls:
        return None
    market = _market(trace, conditions)
    window = conditions.window or catalog_window(model, market(model).row)
    memory = Memory(trace)
    rows = [replay(trace, memory, Recorded(trace), market, as_billed=True)]
    step()
    left_out = list(skipped)
    if trace.damaged:
        left_out.append(f"{trace.damaged} bills of more than {LARGEST:,} tokens: estimated instead")
    for chosen in conditions.strategies:
        try:
            rows.append(replay(trace, memory, _strategy(chosen, trace, window, market, conditions), market))
        except UserError as error:  # the recorded system part alone is larger than the window
            left_out.append(f"{chosen}: {error}")
        step()
    sized: list[Row] = []
    for size in conditions.sizes:
        auto = _auto(trace, window, market, conditions, name=f"{SIZED}{size:,}", index=size)
        sized.append(replay(trace, memory, auto, market))
        step()
    return TraceResult(
        file,
        name,
        model,
        len(trace.calls),
        window,
        trace.calls[0].time,
        trace.calls[-1].time,
        tuple(rows),
        "" if conditions.prices.row(model, at=trace.calls[0].time) else DEFAULT_MODEL,
        _calibration(trace, rows[0], market),
        _optimum(trace, memory, rows, market, window),
        tuple(sized),
        tuple(left_out),
    )


def catalog_window(model: str, row: PriceRow) -> int:
    """The window that ra would assume for the model."""
    for provider in ("anthropic", "openai", "google"):
        known = catalog.info(provider, model).window
        if known:
            return known
    return row.window or UNKNOWN_WINDOW


def _strategy(
    name: str, trace: Trace, window: int, market: Callable[[str], Market], conditions: Conditions
) -> Strategy:
    settings = conditions.settings
    limit = trigger(window, threshold=settings.threshold, max_output=MAX_OUTPUT) or window
    match name:
        case "nothing":
            return Nothing(trace)
        case "rolling-mask":
            return RollingMask(trace, limit)
        case "batch-prune":
            return BatchPrune(trace, limit)
        case "layered":
            return Layered(trace, settings, window=window)
        case "planner":
            return Planner(trace, conditions.prices.row(catalog.cheapest_model("anthropic")))
        case "truncate" | "summarize" | "digest":
            return Compacting(trace, msgspec.structs.replace(settings, strategy=name), window=window)
        case "auto":
            return _auto(trace, window, market, conditions)
        case _:
            raise UserError(f"Unknown strategy {name!r}; use {', '.join(STRATEGIES)}.")


def _auto(
    trace: Trace,
    window: int,
    market: Callable[[str], Market],
    conditions: Conditions,
    *,
    name: str = "auto",
    index: int = INDEX,
) -> Strategy:
    settings = msgspec.structs.replace(conditions.settings, strategy="auto")
    economy = Economy(lambda model: market(model).row, lambda model: market(model).rules, index=index)
    return Compacting(trace, settings, window=window, economy=economy, name=name)


def _market(trace: Trace, conditions: Conditions) -> Callable[[str], Market]:
    """Prices of the trace's first day. A model without one is billed as the trace's own, and that as a known one."""
    known: dict[str, Market] = {}
    day = trace.calls[0].time
    long_lived = _lives_long(trace)
    default = conditions.prices.row(trace.model, at=day) or conditions.prices.row(DEFAULT_MODEL, at=day)
    assert default is not None

    def market(model: str) -> Market:
        if conditions.model:
            model = conditions.model
        if model not in known:
            row = conditions.prices.row(model, at=day) or default
            rules = rules_for(model, write_costs_more=row.rates.cache_write > row.rates.input, long_lived=long_lived)
            known[model] = Market(row.long_lived() if long_lived else row, rules)
        return known[model]

    return market


def _lives_long(trace: Trace) -> bool:
    """Was the hour-long cache in use? The bills say so, or caches survived pauses of more than five minutes."""
    written = [call for call in trace.calls if call.usage and call.usage.cache_write]
    if any(call.long_lived for call in written):
        return 2 * sum(call.long_lived for call in written) > len(written)
    kept = lost = 0
    for before, call in pairwise(trace.calls):
        if before.usage and call.usage and LIFETIME_S + 60 < call.time - before.time < LONG_LIFETIME_S:
            warm = call.usage.cache_read > before.usage.total_input // 2
            kept, lost = kept + warm, lost + (not warm)
    return kept > lost


def _optimum(
    trace: Trace, memory: Memory, rows: Sequence[Row], market: Callable[[str], Market], window: int
) -> float | None:
    """At most what `auto` paid: its moments are one choice among all, and the sizes of indexes are estimates."""
    paid = next((row.cost for row in rows if row.strategy == "auto"), None)
    return None if paid is None else min(paid, round(optimum(trace, memory, market, window), 6))


def _calibration(trace: Trace, recorded: Row, market: Callable[[str], Market]) -> Calibration | None:
    if not trace.measured:
        return None
    billed = Decimal(0)
    for call in trace.calls:
        if call.usage is not None:
            billed += call.dollars or market(call.model).row.price(call.usage)
    return Calibration(float(round(billed, 6)), recorded.cost, recorded.lost)
