"""Prices the calls in other agents' logs, and computes what sessions would have cost under another strategy."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ra.bench import files, runs
from ra.core.facts import Spent, TimelineEvent
from ra.core.model import Usage
from ra.costs.ledger import priced
from ra.costs.prices import Prices

EVER = 36_500.0  # days


class Logs(NamedTuple):
    """Bills of other agents by session, the projects of these sessions, and the files that were not used."""

    bills: dict[str, list[TimelineEvent]]
    projects: dict[str, str]
    skipped: list[str]


class ReplayedBill(NamedTuple):
    """What sessions cost, and what they would have cost; includes only those that could be replayed."""

    sessions: int
    billed: float
    replayed: float


Bill = tuple[float, str, Usage, str]
"""The parts of a bill that are the same in every file that repeats it."""


def _bill(time: float, spent: Spent) -> Bill:
    return time, spent.model, spent.usage, spent.purpose


def read_logs(paths: Sequence[Path], prices: Prices, *, days: float = EVER) -> Logs:
    """Every bill once: a resumed or forked file repeats those of its predecessor."""
    logs = files.find(paths, days=days)
    bills: dict[str, list[TimelineEvent]] = {}
    projects: dict[str, str] = {}
    seen: set[Bill] = set()
    for file in logs.files:
        for transcript in files.transcripts(file, logs.skipped):
            new = []
            for event in transcript.events:
                if isinstance(event.fact, Spent):
                    bill = _bill(event.time, event.fact)
                    if bill not in seen:
                        seen.add(bill)
                        new.append(event)
            if new:
                name = f"{transcript.name} ({file.parent.name})" if transcript.name in bills else transcript.name
                bills.setdefault(name, []).extend(priced(new, lambda model, at: prices.row(model, at=at)))
                projects[name] = transcript.project or file.parent.name
    return Logs(bills, projects, logs.skipped)


def logged_sessions(paths: Sequence[Path]) -> list[tuple[str, str, Sequence[TimelineEvent]]]:
    """Sessions (name, model, events) of other agents, without those that another file repeats and continues."""
    logs = files.find(paths, days=EVER)
    transcripts = [transcript for file in logs.files for transcript in files.transcripts(file, logs.skipped)]
    sessions: list[tuple[str, str, Sequence[TimelineEvent]]] = []
    seen: set[Bill] = set()
    bills = [
        {_bill(event.time, event.fact) for event in one.events if isinstance(event.fact, Spent)} for one in transcripts
    ]
    for transcript, own in sorted(zip(transcripts, bills, strict=True), key=lambda pair: -len(pair[1])):
        if not own <= seen:
            sessions.append((transcript.name, transcript.model, transcript.events))
        seen |= own
    return sessions


def what_if(
    sessions: Iterable[tuple[str, str, Sequence[TimelineEvent]]], prices: Prices, strategy: str
) -> ReplayedBill:
    """Sessions (name, model, events) under one strategy, with the cache rules that each session's bills show."""
    conditions = runs.Conditions(prices, runs.check([strategy]))
    count, billed, replayed = 0, 0.0, 0.0
    for name, model, events in sessions:
        result = runs.compare(name, name, model, events, conditions)
        if result is None or result.calibration is None or len(result.rows) < 2:
            continue
        count += 1
        billed += result.calibration.billed
        replayed += result.rows[1].cost
    return ReplayedBill(count, billed, replayed)
