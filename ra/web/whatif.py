"""Replays a session under other conditions with the code of `ra bench context`, and returns its course by call."""

import threading
from collections.abc import Callable
from concurrent.futures import Future

from ra.bench import runs
from ra.bench.comparisons import Recorded
from ra.bench.measures import TraceNames
from ra.bench.replay import Market, StrategyResult, replay
from ra.bench.trace import Trace
from ra.core.errors import UserError
from ra.core.value import Value
from ra.web.model import Recording
from ra.web.values import Curve, WhatIf


class WhatIfQuery(Value, frozen=True):
    """A what-if of the page. Without a model, a window or a lifetime, those of the recording apply."""

    strategies: tuple[str, ...]
    model: str = ""
    window: int | None = None
    long_lived: bool | None = None


class Replays:
    """The replays of a recording. Each is computed once: later requests wait for one that is running."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._lock = threading.Lock()
        self._answers: dict[WhatIfQuery, Future[WhatIf]] = {}
        self._recorded: dict[tuple[str, bool | None], StrategyResult] = {}

    def what_if(self, query: WhatIfQuery) -> WhatIf:
        """The answer to a query, computed or waited for. Raises UserError."""
        with self._lock:
            answer = self._answers.get(query)
            first = answer is None
            if answer is None:
                answer = self._answers[query] = Future()
        if first:
            try:
                answer.set_result(self._replayed(query))
            except BaseException as error:  # also reported to the threads that wait
                answer.set_exception(error)
                raise
        return answer.result()

    def recorded(
        self, trace: Trace, names: TraceNames, query: WhatIfQuery, market: Callable[[str], Market]
    ) -> StrategyResult:
        """The recorded requests against the simulated cache; independent of the window."""
        key = (query.model, query.long_lived)
        if key not in self._recorded:
            self._recorded[key] = replay(trace, names, Recorded(trace), market, as_billed=True)
        return self._recorded[key]

    def _replayed(self, query: WhatIfQuery) -> WhatIf:
        recording, prices = self._recording, self._recording.prices
        strategies = runs.check(query.strategies)
        if query.model and prices.row(query.model) is None:
            raise UserError(f"No price is known for {query.model!r}. Add it under app.prices in ra.yaml.")
        trace, names = recording.trace, recording.names
        if query.model and query.model != trace.model:
            trace = Trace(trace.name, query.model, recording.source.events, trace.estimator)
            names = TraceNames(trace)
        if not trace.calls:
            raise UserError("This session has no model call to replay.")
        conditions = runs.Conditions(prices, strategies, query.model, query.window, long_lived=query.long_lived)
        market = runs.market_of(trace, conditions)
        window = query.window or runs.catalog_window(trace.model, market(trace.model).row)
        recorded = self.recorded(trace, names, query, market)
        rows, skipped = [], []
        for name in strategies:
            try:
                rows.append(replay(trace, names, runs.strategy_of(name, trace, window, market, conditions), market))
            except UserError as error:  # the recorded system part alone is larger than the window
                skipped.append(f"{name}: {error}")
        calibration = runs.calibration_of(trace, recorded, market)
        return WhatIf(
            window=window,
            priced_as=market(trace.model).row.model,
            lifetime_s=market(trace.model).rules.lifetime_s,
            recorded=_curve(recorded),
            rows=[_curve(row) for row in rows],
            billed=calibration.billed if calibration else None,
            skipped=skipped,
        )


def _curve(row: StrategyResult) -> Curve:
    return Curve(
        strategy=row.strategy,
        cost=row.cost,
        with_rereads=row.with_rereads,
        rereads=row.rereads,
        hit_rate=row.hit_rate,
        peak=row.peak,
        rewrites=row.rewrites,
        names=row.recall,
        lines=row.lines,
        user_words=row.words,
        names_without_index=row.recall_without_index,
        lines_without_index=row.lines_without_index,
        user_words_without_index=row.words_without_index,
        window=[point.window for point in row.points],
        cached=[point.cached for point in row.points],
        spent=[point.cost for point in row.points],
        cuts=[number for number, point in enumerate(row.points) if point.rewritten],
    )


def conditions_of(query: dict[str, str]) -> WhatIfQuery:
    """The query from the parameters of an address. Raises UserError."""
    names = tuple(name.strip() for name in query.get("strategies", "").split(",") if name.strip())
    window = query.get("window", "")
    if window and not (window.isascii() and window.isdigit() and 1000 <= int(window[:9]) <= 10_000_000):
        raise UserError("window must be a number of tokens from 1000 to 10000000.")
    lifetimes = {"": None, "5m": False, "1h": True}
    lifetime = query.get("lifetime", "")
    if lifetime not in lifetimes:
        raise UserError("lifetime must be 5m or 1h.")
    return WhatIfQuery(names, query.get("model", ""), int(window) if window else None, lifetimes[lifetime])
