"""Compares all strategies on a transcript: one result with a row for each."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import get_args

import msgspec

from ra.bench.best_moments import best_moments
from ra.bench.bounds import Bounds, bounds
from ra.bench.compacting import Compacting, Name
from ra.bench.comparisons import BatchPrune, Nothing, Recorded, RollingMask
from ra.bench.layered import LayeredReplay, PlannerReplay
from ra.bench.lessons import learn
from ra.bench.measures import TraceNames
from ra.bench.pauses import Policies, Step, policies
from ra.bench.replay import Market, ReplayStrategy, StrategyResult, replay
from ra.bench.trace import LARGEST, Trace
from ra.context.settings import CompactionSettings
from ra.context.size import trigger
from ra.context.tokens import Estimator
from ra.core.errors import UserError
from ra.core.facts import TimelineEvent
from ra.core.value import Value
from ra.costs.economy import INDEX, SessionEconomy
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
    """The replay of the recorded requests against the bill, over the calls that have one.

    `simulated` is fitted: sizes and cache contents are those of the bills. `predicted` is not: it uses text and times
    alone, with the size of the system part and one factor for all tokens from the bills, and the cache by its rules.
    `outside` counts caches that were lost for no reason in the conversation; the other rows do not lose them.
    """

    billed: float
    simulated: float
    outside: int
    predicted: float = 0.0
    unbilled: int = 0  # calls without a bill
    lessons: tuple[str, ...] = ()  # where the bills show other cache rules than the published ones
    lost_caches: float = 0.0  # the cost in dollars of the lost caches, which `predicted` does not include

    @property
    def difference(self) -> float:
        return self.simulated / self.billed - 1 if self.billed else 0.0

    @property
    def sizes(self) -> float:
        """The dollars by which estimated sizes, and cache rules apart from losses, miss the bill."""
        return self.predicted + self.lost_caches - self.billed

    @property
    def predicted_difference(self) -> float:
        return self.predicted / self.billed - 1 if self.billed else 0.0


class TraceResult(Value, frozen=True):
    """A transcript under every strategy, `recorded` first. A model without a known price is `priced_as` another."""

    file: str
    name: str
    model: str
    calls: int
    window: int
    started: float
    ended: float
    rows: tuple[StrategyResult, ...]
    priced_as: str = ""
    calibration: Calibration | None = None
    best_moments: float | None = None  # the approximate cost of `auto`'s cuts at other moments
    bounds: Bounds | None = None  # what no strategy can cost less than
    pauses: Policies | None = None  # the recording under several cache policies; None without long pauses
    sizes: tuple[StrategyResult, ...] = ()  # `auto` with indexes of other sizes, in ascending order
    skipped: tuple[str, ...] = ()


class Conditions(msgspec.Struct, frozen=True):
    """The conditions of a comparison. Without a model or a window, those of the transcript apply."""

    prices: Prices
    strategies: Sequence[str] = STRATEGIES
    model: str = ""
    window: int | None = None
    settings: CompactionSettings = CompactionSettings()
    sizes: Sequence[int] = ()  # of indexes, with which `auto` is also replayed
    long_lived: bool | None = None  # caches live an hour, not five minutes; None: as the transcript shows


def check(strategies: Sequence[str]) -> tuple[str, ...]:
    """Returns the strategies, or raises an error that names the legal ones."""
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
    window: int | None = None,
    skipped: Sequence[str] = (),
    step: Callable[[], None] = lambda: None,
) -> TraceResult | None:
    """Replays one conversation; None if it contains no model call. `step` is called after each strategy.

    `window` is the one that the recording names; with another model's prices goes that model's own.
    """
    model = conditions.model or model or DEFAULT_MODEL
    trace = Trace(name, model, events, Estimator())
    if not trace.calls:
        return None
    market = market_of(trace, conditions)
    recorded_window = None if conditions.model else window
    window = conditions.window or recorded_window or catalog_window(model, market(model).row)
    memory = TraceNames(trace)
    rows = [replay(trace, memory, Recorded(trace), market, as_billed=True)]
    predicted, lost_caches = _predicted(trace, memory, market)
    step()
    left_out = list(skipped)
    if trace.damaged:
        left_out.append(f"{trace.damaged} bills of more than {LARGEST:,} tokens: estimated instead")
    for chosen in conditions.strategies:
        try:
            rows.append(replay(trace, memory, strategy_of(chosen, trace, window, market, conditions), market))
        except UserError as error:  # the recorded system part alone exceeds the window
            left_out.append(f"{chosen}: {error}")
        step()
    sized: list[StrategyResult] = []
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
        calibration_of(trace, rows[0], market, predicted, lost_caches),
        _best_moments(trace, rows, market, window),
        bounds(trace, memory, market),
        _pauses(trace, memory, market),
        tuple(sized),
        tuple(left_out),
    )


def _pauses(trace: Trace, memory: TraceNames, market: Callable[[str], Market]) -> Policies | None:
    """Only for a single model with a choice of lifetimes, and with pauses that the short one does not survive."""
    if len({call.model for call in trace.calls}) > 1:
        return None
    row, learned = market(trace.calls[0].model)
    rules = msgspec.structs.replace(learned, lifetime_s=min(learned.lifetime_s, LIFETIME_S))
    longest = max((after.time - before.time for before, after in pairwise(trace.calls)), default=0.0)
    if rules.kind != "marks" or row.rates.cache_write_1h <= row.rates.cache_write or longest <= rules.lifetime_s:
        return None
    for_ever = Market(row, msgspec.structs.replace(rules, lifetime_s=float("inf")))
    points = replay(trace, memory, Recorded(trace), lambda _: for_ever).points
    steps = [
        Step(point.time, point.window, point.cached, call.output)
        for point, call in zip(points, trace.calls, strict=True)
    ]
    return policies(steps, row, rules)


def catalog_window(model: str, row: PriceRow) -> int:
    """The window that ra would assume for the model."""
    for provider in ("anthropic", "openai", "google"):
        window = catalog.info(provider, model).window
        if window:
            return window
    return row.window or UNKNOWN_WINDOW


def strategy_of(
    name: str, trace: Trace, window: int, market: Callable[[str], Market], conditions: Conditions
) -> ReplayStrategy:
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
            return LayeredReplay(trace, settings, window=window)
        case "planner":
            return PlannerReplay(trace, conditions.prices.row(catalog.cheapest_model("anthropic")))
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
) -> ReplayStrategy:
    settings = msgspec.structs.replace(conditions.settings, strategy="auto")
    economy = SessionEconomy(lambda model: market(model).row, lambda model: market(model).rules, index=index)
    return Compacting(trace, settings, window=window, economy=economy, name=name)


def market_of(trace: Trace, conditions: Conditions) -> Callable[[str], Market]:
    """The prices of the trace's first day. A model without one is billed as the trace's own, or as a known one."""
    markets: dict[str, Market] = {}
    day = trace.calls[0].time
    long_lived = lives_long(trace) if conditions.long_lived is None else conditions.long_lived
    default = conditions.prices.row(trace.model, at=day) or conditions.prices.row(DEFAULT_MODEL, at=day)
    assert default is not None

    def market(model: str) -> Market:
        billed, model = model, conditions.model or model
        if model not in markets:
            row = conditions.prices.row(model, at=day) or default
            rules = rules_for(model, write_costs_more=row.rates.cache_write > row.rates.input, long_lived=long_lived)
            if model == billed and conditions.long_lived is None:
                rules = learn(trace, model, rules).rules
            markets[model] = Market(row.long_lived() if long_lived else row, rules)
        return markets[model]

    return market


def _lessons(trace: Trace) -> tuple[str, ...]:
    """What the bills reveal about the caches of the models in use."""
    models = dict.fromkeys(call.model for call in trace.calls)
    long_lived = lives_long(trace)
    notes = (learn(trace, model, rules_for(model, long_lived=long_lived)).notes for model in models)
    return tuple(note for lines in notes for note in lines)


def lives_long(trace: Trace) -> bool:
    """Whether the hour-long cache was in use: the bills say so, or caches survived pauses of more than five minutes."""
    writing_calls = [call for call in trace.calls if call.usage and call.usage.cache_write]
    if any(call.long_lived for call in writing_calls):
        return 2 * sum(call.long_lived for call in writing_calls) > len(writing_calls)
    if rules_for(trace.model).kind != "marks":
        return False  # automatic caching has no second price: a longer lifetime is learned as such
    survived = lost = 0
    for before, call in pairwise(trace.calls):
        if before.usage and call.usage and LIFETIME_S + 60 < call.time - before.time < LONG_LIFETIME_S:
            warm = call.usage.cache_read > before.usage.total_input // 2
            survived, lost = survived + warm, lost + (not warm)
    return survived > lost


def _best_moments(
    trace: Trace, rows: Sequence[StrategyResult], market: Callable[[str], Market], window: int
) -> float | None:
    """Only if `auto` was replayed. May exceed the cost of `auto`, because the sizes of indexes are estimates."""
    if not any(row.strategy == "auto" for row in rows):
        return None
    return round(best_moments(trace, market, window), 6)


def _predicted(trace: Trace, memory: TraceNames, market: Callable[[str], Market]) -> tuple[float, float]:
    """The cost of the billed calls from text and times alone, and the additional cost of the lost caches."""
    if not trace.measured:
        return 0.0, 0.0
    estimated = Trace(trace.name, trace.model, trace.events, trace.estimator, fitted=False)
    sizes = memory.resized()
    predicted = _billed_part(replay(estimated, sizes, Recorded(estimated), market))
    with_losses = _billed_part(replay(estimated, sizes, Recorded(estimated), market, as_billed=True))
    return predicted, round(with_losses - predicted, 6)


def _billed_part(row: StrategyResult) -> float:
    """The cost of the calls that have a bill."""
    before, cost = 0.0, 0.0
    for point in row.points:
        cost += point.cost - before if point.billed else 0.0
        before = point.cost
    return round(cost, 6)


def calibration_of(
    trace: Trace,
    recorded: StrategyResult,
    market: Callable[[str], Market],
    predicted: float = 0.0,
    lost_caches: float = 0.0,
) -> Calibration | None:
    if not trace.measured:
        return None
    billed = Decimal(0)
    for call, sent in zip(trace.calls, trace.sent, strict=True):
        if call.usage is not None:
            billed += sent.paid + (call.dollars or market(call.model).row.price(call.usage))
    unbilled = sum(call.usage is None for call in trace.calls)
    simulated = _billed_part(recorded)
    lessons = _lessons(trace)
    return Calibration(float(round(billed, 6)), simulated, recorded.lost, predicted, unbilled, lessons, lost_caches)
