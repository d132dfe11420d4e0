"""The counters of this server, in the text format of Prometheus."""

from collections import Counter
from decimal import Decimal

import msgspec

from ra.core.events import RunEnded

MEDIA = "text/plain; version=0.0.4; charset=utf-8"


class Load(msgspec.Struct, frozen=True):
    """The running and waiting tasks of this process; if the queue is shared, the waiting tasks of all workers."""

    running: int
    waiting: int


class Metrics:
    """The usage of this process's runs since it started."""

    def __init__(self) -> None:
        self._outcomes: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()
        self._dollars = Decimal(0)
        self._seconds = 0.0

    def count(self, end: RunEnded) -> None:
        self._outcomes[end.outcome] += 1
        self._tokens["input"] += end.usage.input
        self._tokens["output"] += end.usage.output
        self._tokens["cache_read"] += end.usage.cache_read
        self._tokens["cache_write"] += end.usage.cache_write
        self._dollars += Decimal(end.dollars or 0)
        self._seconds += end.seconds

    def text(self, load: Load) -> str:
        runs = sum(self._outcomes.values())
        lines = [
            *_head("ra_runs_total", "counter", "Runs that ended, by outcome."),
            *(f'ra_runs_total{{outcome="{outcome}"}} {number}' for outcome, number in sorted(self._outcomes.items())),
            *_head("ra_tokens_total", "counter", "Tokens of all model calls, by kind; the kinds are disjoint."),
            *(f'ra_tokens_total{{kind="{kind}"}} {number}' for kind, number in sorted(self._tokens.items())),
            *_head("ra_dollars_total", "counter", "Dollars of all runs with a known price."),
            f"ra_dollars_total {self._dollars}",
            *_head("ra_run_seconds", "summary", "How long runs took."),
            f"ra_run_seconds_sum {self._seconds:.3f}",
            f"ra_run_seconds_count {runs}",
            *_head("ra_tasks_running", "gauge", "Tasks that run now."),
            f"ra_tasks_running {load.running}",
            *_head("ra_tasks_waiting", "gauge", "Tasks that wait in line."),
            f"ra_tasks_waiting {load.waiting}",
        ]
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, help_text: str) -> tuple[str, str]:
    return f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"
