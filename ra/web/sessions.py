"""Finds and prepares the sessions that the page shows: those of ra's store, and transcripts in files and folders."""

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from ra.app import App
from ra.bench import files, runs
from ra.bench.trace import calls_of
from ra.context.tokens import Estimator
from ra.core.errors import RaError, UserError
from ra.core.facts import Spent, TimelineEvent
from ra.core.text import clean
from ra.costs import ledger
from ra.costs.prices import PriceRow
from ra.providers import catalog
from ra.timeline import folds
from ra.timeline.importers import Transcript, read
from ra.timeline.store import SessionInfo
from ra.web.findings import findings
from ra.web.model import AGENTS, Recording, SessionSource
from ra.web.values import Card, Choices, CostFindings, Day, NextRequest, SessionOverview, WhatIf
from ra.web.whatif import Replays, WhatIfQuery

MOST_SESSIONS = 500
OPEN_RECORDINGS = 4  # kept in memory; a long session takes a hundred megabytes
OFFERED = ("nothing", "auto")  # the strategies that the page selects by default
AFTER_PICTURE_S = 2.0
REPLAYED_AHEAD = 1000  # calls; more would load the machine without a request
SPARK = 60  # points of the small chart in the list


class _File:
    """One conversation of a transcript file."""

    def __init__(self, path: Path, number: int, card: Card, bills: list[TimelineEvent]) -> None:
        self.path, self.number, self.card, self.bills = path, number, card, bills


class _Prepared:
    """A session kept in memory, as it was at `version`."""

    def __init__(self, version: int, recording: Recording) -> None:
        self.version, self.recording, self.replays = version, recording, Replays(recording)


class ShownSessions:
    """Finds sessions and keeps the newest ones in memory. Files are read in the background, one after the other."""

    def __init__(
        self, app: App, *, paths: Sequence[Path] = (), sessions: Sequence[str] = (), everywhere: bool = False
    ) -> None:
        self._app = app
        self._store = app.store
        self._prices = app.prices
        self._sessions = [self._store.info(session).id for session in sessions]
        self._project = None if everywhere else str(app.resolved.root)
        self._named = bool(paths or sessions)
        self._files: dict[str, _File] = {}
        self._lock = threading.Lock()
        self._building = threading.Lock()
        self._prepared: OrderedDict[str, _Prepared] = OrderedDict()
        self._estimators: dict[str, Estimator] = {}  # by session: when one grows, only its new part is counted
        transcripts = files.find(paths)
        self.skipped = transcripts.skipped
        self._waiting = list(transcripts.files)
        self.pending = len(self._waiting)
        self._only = len(self._waiting) == 1  # keep its transcript: it is opened next
        self._just_read: tuple[int, list[Transcript]] | None = None

    # --- the list ---

    def prepare(self) -> None:
        """Reads all transcripts and prepares the newest session, which most people open first.

        Then computes the replays that the page shows first, a little later, so that the chart has been sent by then.
        """
        self.read_files()
        cards = self.catalog().cards
        if not cards or not cards[0].calls:
            return
        with contextlib.suppress(RaError):  # a request for the session reports the error
            self.recording(cards[0].id)
            if cards[0].calls > REPLAYED_AHEAD:
                return
            time.sleep(AFTER_PICTURE_S)
            for strategy in OFFERED:
                self.what_if(cards[0].id, WhatIfQuery((strategy,)))

    def read_files(self) -> None:
        """Reads every transcript once, for the list. Meant for a separate thread."""
        while self._waiting:
            self._read_file(self._waiting.pop(0))
            self.pending -= 1

    def _read_file(self, path: Path) -> None:
        try:
            version = _version(path)
            transcripts = read(path)
        except (RaError, OSError) as error:
            self.skipped.append(f"{path}: {error}")
            return
        if self._only:
            self._just_read = (version, transcripts)
        for number, transcript in enumerate(transcripts):
            if not transcript.events:
                why = f" ({transcript.skipped[0]})" if transcript.skipped else ""
                self.skipped.append(f"{path}: it holds no conversation{why}")
                continue
            id = "f" + sha256(f"{path.resolve()}\n{number}".encode("utf-8", "replace")).hexdigest()[:12]
            events = ledger.priced(transcript.events, self._row_at)
            bills = [event for event in events if isinstance(event.fact, Spent)]
            card = _file_card(id, path, transcript, bills)
            if not card.calls:
                self.skipped.append(f"{path}: it holds no model call")
                continue
            with self._lock:
                self._files[id] = _File(path, number, card, bills)

    def catalog(self) -> SessionOverview:
        cards, bills = self._stored()
        with self._lock:
            for file in self._files.values():
                cards.append(file.card)
                bills[file.card.id] = file.bills
        cards.sort(key=_by_date)
        days = ledger.fold(bills.items(), by="day", rows=self._prices.row)
        single = cards[0].id if self._named and len(cards) == 1 and not self.pending else ""
        return SessionOverview(
            cards,
            [Day(spend.key, spend.calls, float(spend.dollars)) for spend in days],
            self.pending,
            [clean(line) for line in self.skipped],
            single,
        )

    def _stored(self) -> tuple[list[Card], dict[str, list[TimelineEvent]]]:
        if self._named and not self._sessions:
            return [], {}
        infos = (
            [self._store.info(session) for session in self._sessions]
            if self._named
            else self._store.sessions(self._project, MOST_SESSIONS)
        )
        bills: dict[str, list[TimelineEvent]] = {info.id: [] for info in infos}
        for id, event in self._store.spent(project=None if self._named else self._project):
            if id in bills:
                bills[id].append(event)
        return [_stored_card(info, bills[info.id]) for info in infos], bills

    # --- one session ---

    def version(self, id: str) -> int:
        """A number that changes when the session grows. Raises UserError."""
        if (file := self._file(id)) is not None:
            try:
                return _version(file.path)
            except OSError as error:
                raise UserError(f"{file.path} is gone.") from error
        return self._store.info(id).events

    def recording(self, id: str) -> Recording:
        """The session in its current state. Raises UserError."""
        return self._prepared_session(id).recording

    def findings(self, id: str) -> CostFindings:
        prepared = self._prepared_session(id)
        return findings(prepared.recording)

    def what_if(self, id: str, query: WhatIfQuery) -> WhatIf:
        return self._prepared_session(id).replays.what_if(query)

    def _prepared_session(self, id: str) -> _Prepared:
        version = self.version(id)
        with self._building:  # two at once would only be slower
            prepared = self._prepared.get(id)
            if prepared is None or prepared.version != version:
                estimator = self._estimators.setdefault(id, Estimator())
                source = self._source(id, version)
                self._prepared[id] = prepared = _Prepared(version, Recording(source, self._prices, estimator))
                prepared.recording.session()
            self._prepared.move_to_end(id)
            while len(self._prepared) > OPEN_RECORDINGS:
                closed, _ = self._prepared.popitem(last=False)
                del self._estimators[closed]
        return prepared

    def choices(self) -> Choices:
        """The options of a what-if: strategies, and the models of the catalog that have a price."""
        models = {row.info.id for row in catalog.rows() if self._prices.row(row.info.id, row.provider)}
        return Choices(list(runs.STRATEGIES), sorted(models))

    async def next_request(self, id: str) -> NextRequest | None:
        """The size and price of a stored session's next request: the figures of `ra context`."""
        if self._file(id) is not None:
            return None
        session = self._app.stored(id)
        try:
            report = (await session.context()).report
        except RaError:
            return None
        finally:
            await session.close()
        return NextRequest(report.total, report.cached, float(report.cost) if report.cost else None, report.window)

    def _transcripts(self, path: Path, version: int) -> list[Transcript]:
        """The transcripts in a file; those that the list has just read, if the file is unchanged since."""
        just_read, self._just_read = self._just_read, None
        return just_read[1] if just_read is not None and just_read[0] == version else read(path)

    def _source(self, id: str, version: int) -> SessionSource:
        if (file := self._file(id)) is not None:
            transcript = self._transcripts(file.path, version)[file.number]
            return SessionSource(
                id=id,
                events=transcript.events,
                model=transcript.model,
                source_format=transcript.source_format,
                name=clean(transcript.name),
                project=clean(transcript.project),
                file=clean(str(file.path)),
                notes=[clean(line) for line in transcript.skipped],
            )
        info = self._store.info(id)
        return SessionSource(
            id=info.id,
            events=list(self._store.open(info.id, write=False).events()),
            model=info.model,
            source_format="ra-timeline",
            project=info.project,
            stored=True,
            forked_at=info.forked_at,
        )

    def _file(self, id: str) -> _File | None:
        if not id.startswith("f") or len(id) != 13:
            return None
        with self._lock:
            file = self._files.get(id)
        if file is None:
            raise UserError("This page does not show that session.")
        return file

    def _row_at(self, model: str, at: float) -> PriceRow | None:
        return self._prices.row(model, at=at)


def _version(path: Path) -> int:
    """A number that changes with the file."""
    status = path.stat()
    return status.st_mtime_ns ^ status.st_size


def _by_date(card: Card) -> float:
    return -card.updated


def _stored_card(info: SessionInfo, bills: Iterable[TimelineEvent]) -> Card:
    windows = _windows(bills)
    return Card(
        id=info.id,
        title=clean(info.title) or info.id,
        agent="ra",
        project=clean(info.project),
        model=info.model,
        started=info.created,
        updated=info.updated,
        calls=len(windows),
        dollars=None if info.dollars is None else float(info.dollars),
        windows=_thin(windows),
        chat=clean(" · ".join(part for part in (info.agent, info.channel, info.chat_id) if part)),
    )


def _file_card(id: str, path: Path, transcript: Transcript, bills: list[TimelineEvent]) -> Card:
    calls = calls_of(transcript.events, transcript.model, Estimator())
    spend = folds.spend(bills)
    return Card(
        id=id,
        title=clean(folds.title(transcript.events)) or clean(transcript.name),
        agent=AGENTS.get(transcript.source_format, transcript.source_format),
        project=clean(transcript.project),
        model=transcript.model,
        started=transcript.events[0].time,
        updated=transcript.events[-1].time,
        calls=len(calls),
        dollars=float(spend.dollars) if spend.priced else None,
        windows=_thin([call.usage.total_input for call in calls if call.usage]),
        file=clean(str(path)),
    )


def _windows(bills: Iterable[TimelineEvent]) -> list[int]:
    return [
        event.fact.usage.total_input
        for event in bills
        if isinstance(event.fact, Spent) and event.fact.purpose == "turn" and event.fact.usage.total_input
    ]


def _thin(windows: list[int]) -> list[int]:
    """At most SPARK windows: the largest of each stretch, since the chart shows how full the window was."""
    if len(windows) <= SPARK:
        return windows
    edges = [round(index * len(windows) / SPARK) for index in range(SPARK + 1)]
    return [max(windows[low:high]) for low, high in pairwise(edges)]
