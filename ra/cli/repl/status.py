"""Draws the status line: model, strategy, window, cache, cost, and how long the cache stays warm."""

import time
from collections.abc import Callable, Iterable
from decimal import Decimal

from ra.cli.repl.terminal import Fragments
from ra.cli.table import money
from ra.core.facts import Checkpointed, Spent, TimelineEvent
from ra.core.functions import Price, no_price
from ra.core.model import Usage
from ra.costs.promptcache import CacheRules

BAR = 10


class Status:
    """A fold over the bills of a session."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self.model = ""
        self.strategy = ""
        self.embedded = False  # a tiny model on this machine answers
        self.edits = ""  # the permission to change files
        self.window: int | None = None
        self.rules = CacheRules("none")
        self.lifetime_s = 0.0  # how long the provider keeps the last request
        self.price: Price = no_price
        self._clock = clock
        self._begin()

    def _begin(self) -> None:
        self.usage = Usage()  # of the last call
        self.paid_at = 0.0
        self.session = self.turn = Decimal(0)
        self.priced = True
        self.calls = 0
        self.shortened: int | None = None  # tokens after a compaction, since the last call

    def follow(self, events: Iterable[TimelineEvent]) -> None:
        """Starts over with the bills of a session that is opened."""
        self._begin()
        for event in events:
            if isinstance(event.fact, Checkpointed):
                self.shortened = event.fact.after
            elif isinstance(event.fact, Spent):
                # Another model has a cache of its own, for which nothing was paid yet.
                at = event.time if event.fact.model == self.model else 0.0
                self.pay(event.fact.usage, event.fact.dollars, at=at, main=event.fact.purpose == "turn")
                if event.fact.purpose == "bridge":
                    self.paid_at = at  # it used the prefix, and so renewed it
        self.begin_turn()

    def begin_turn(self) -> None:
        self.turn = Decimal(0)

    def pay(self, usage: Usage, dollars: str, *, at: float | None = None, main: bool = True) -> None:
        self.calls += 1
        self.session += Decimal(dollars or 0)
        self.turn += Decimal(dollars or 0)
        self.priced = self.priced and bool(dollars)
        if main:
            self.usage, self.paid_at = usage, self._clock() if at is None else at
            self.shortened = None

    @property
    def warm_s(self) -> float:
        """Seconds until the provider's cache of this session expires; 0 after that."""
        if not self.paid_at or self.rules.kind == "none":
            return 0.0
        return max(0.0, self.paid_at + self.lifetime_s - self._clock())

    def line(self, width: int) -> Fragments:
        """The parts that fit into the width: the least important are dropped first, the others keep their order."""
        parts = [part for part in self._parts() if part[1]]
        while len(parts) > 1 and _width(parts) > width:
            parts.remove(max(parts, key=lambda part: part[0]))
        fragments: Fragments = []
        for _, part in parts:
            fragments += [*([("class:dim", " · ")] if fragments else []), *part]
        return fragments

    def _parts(self) -> list[tuple[int, Fragments]]:
        """Each part with its rank: higher ones are dropped earlier."""
        priced = self.calls and self.priced and not self.embedded
        spent = f"{money(self.session)} all" if priced else ""
        turn = f"{money(self.turn)} turn" if priced and self.turn else ""
        hit = f"{self.usage.cache_read / self.usage.total_input:.0%} hit" if self.usage.total_input else ""
        return [
            (3, _dim(f"{self.model} (tiny, embedded)" if self.embedded else self.model)),
            (9, _dim(self.strategy)),
            (1 if self.edits in ("auto", "off") else 7, self._edits()),  # an unusual setting must be visible
            (0, self._bar()),
            (4, _dim(hit)),
            (6, _dim(turn)),
            (2, _dim(spent)),
            (5, self._temperature()),
            (8, _dim(self._cold_price())),
        ]

    def _cold_price(self) -> str:
        """The cost of the next call after the cache has expired, without its answer."""
        if not self.calls or self.rules.kind == "none":
            return ""
        total = self.shortened or self.usage.total_input + self.usage.output
        price = self.price(self.model, Usage(cache_write=total))
        return f"{'then' if self.warm_s else 'next call'} {money(price)}" if price else ""

    def _edits(self) -> Fragments:
        style = "class:new" if self.edits == "auto" else "class:dim"
        return [(style, f"edits {self.edits}")] if self.edits else []

    def _bar(self) -> Fragments:
        """The window: read from the cache, new, free."""
        used = self.shortened or self.usage.total_input + self.usage.output
        if not self.window:
            return _dim(f"{used:,} tokens") if used else []
        filled = min(BAR, max(round(used / self.window * BAR), int(used > 0)))
        # The size after a compaction is known when the next call is paid; until then nothing counts as cached.
        cached = round(filled * self.usage.cache_read / used) if used and not self.shortened else 0
        uncached = filled - cached
        share = f" {used / self.window:.0%} of {_short(self.window)}"
        bars = [
            ("class:cached", "█" * cached),
            ("class:new", "▓" * uncached),
            ("class:dim", "░" * (BAR - filled)),
        ]
        return [*bars, ("class:dim", share)]

    def _temperature(self) -> Fragments:
        if not self.calls or self.rules.kind == "none":
            return []
        seconds = int(self.warm_s)
        return [("class:cached", f"warm {seconds // 60}:{seconds % 60:02}")] if seconds else [("class:cold", "cold")]


def _dim(text: str) -> Fragments:
    return [("class:dim", text)] if text else []


def _width(parts: list[tuple[int, Fragments]]) -> int:
    return sum(len(text) for _, part in parts for _, text in part) + 3 * (len(parts) - 1)


def _short(tokens: int) -> str:
    return f"{tokens / 1e6:.3g}M" if tokens >= 999_500 else f"{tokens / 1000:.3g}k" if tokens >= 1000 else str(tokens)
