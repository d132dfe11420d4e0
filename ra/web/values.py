"""The JSON types that the page's server sends, with camelCase names for scripts."""

from typing import Literal

import msgspec


class Shown(msgspec.Struct, frozen=True, rename="camel"):
    """Base of all values that are sent to the page."""


class Card(Shown, frozen=True):
    """A session in the list. `windows` are the sizes of its requests, reduced for a small chart."""

    id: str
    title: str
    agent: str  # the program that wrote the transcript: ra, Claude Code, Codex, pi …
    project: str
    model: str
    started: float
    updated: float
    calls: int
    dollars: float | None  # None: no price is known
    windows: list[int] = []
    file: str = ""
    chat: str = ""  # agent and channel of a served chat


class Day(Shown, frozen=True):
    day: str
    calls: int
    dollars: float


class SessionOverview(Shown, frozen=True):
    """The list view. `pending` transcripts are still being read."""

    cards: list[Card]
    days: list[Day]
    pending: int
    skipped: list[str]
    single: str = ""  # the session that the user named, if only one


class RequestPiece(Shown, frozen=True):
    """A section, a tool or a message in one form: a shortened form is another piece with the same `at`.

    `first` and `last` are numbers of calls, -1 when no request had the piece. `dollars` is its share of the bills.
    """

    at: int  # position in the timeline; 0: not part of the conversation
    role: str
    source: int  # index in `sources`
    tokens: int
    label: str
    first: int
    last: int
    requests: int
    dollars: float


class CallColumns(Shown, frozen=True):
    """The model calls, with a list for each column.

    Request N is the first `keep[N]` pieces of request N − 1, then `added[N]` (indexes of pieces). `spent` is the total
    price up to this call, including summaries, planner and sub-agents.
    """

    at: list[int]  # position of the answer
    time: list[float]
    seconds: list[float]
    model: list[int]
    input: list[int]
    output: list[int]
    read: list[int]
    write: list[int]
    dollars: list[float]
    spent: list[float]
    rate: list[int]
    keep: list[int]
    added: list[list[int]]
    reply: list[int]
    stack: list[list[int]]  # tokens of the request by source
    fresh: list[list[int]]  # the part of `stack` that was not read from the cache


class Mark(Shown, frozen=True):
    """A description of something that happened before a call."""

    call: int
    kind: Literal["cut", "rotation", "edit", "failure", "model", "pause", "lost", "aside", "cache"]
    text: str


class SpendLine(Shown, frozen=True):
    """A row of `ra cost`."""

    key: str
    calls: int
    input: int
    output: int
    dollars: float


class Rate(Shown, frozen=True):
    """Dollars per million tokens."""

    input: float
    output: float
    read: float
    write: float


class NextRequest(Shown, frozen=True):
    """The next request of a stored session, as `ra context` shows it."""

    total: int
    cached: int
    cost: float | None
    window: int | None


class Overview(Shown, frozen=True):
    """A session without its texts and without what takes longer to compute."""

    id: str
    title: str
    agent: str
    project: str
    model: str
    file: str
    stored: bool  # in ra's own store: `ra context --session ID` works
    window: int | None
    billed: bool  # the provider's own figures; otherwise all figures are estimates
    total: float
    unpriced: int  # calls whose price is unknown
    sources: list[str]
    models: list[str]
    rates: list[Rate]
    calls: CallColumns
    pieces: list[RequestPiece]
    marks: list[Mark]
    notes: list[str] = []


class Avoidable(Shown, frozen=True):
    """An avoidable cost, with its description."""

    kind: Literal["lost", "pause", "model", "reread"]
    text: str
    dollars: float
    call: int
    piece: int = -1  # the piece that was read again


class Spender(Shown, frozen=True):
    text: str
    dollars: float
    piece: int


class CostFindings(Shown, frozen=True):
    """The findings that need a replay or the ledger.

    `divided`: the bills lack the sizes of their requests' parts, so the page divided them by the requests themselves;
    `ra cost` counts these calls as other input.
    """

    avoidable: list[Avoidable]
    spenders: list[Spender]
    by_source: list[SpendLine]
    by_tool: list[SpendLine]
    by_model: list[SpendLine]
    divided: bool = False


class TextPart(Shown, frozen=True):
    """A block of a message. `more` is where the next page begins, 0 at the end."""

    kind: Literal["text", "thinking", "call", "result", "error", "attachment"]
    name: str
    text: str
    more: int = 0
    size: int = 0


class PieceText(Shown, frozen=True):
    parts: list[TextPart]


class SearchHit(Shown, frozen=True):
    piece: int
    before: str
    match: str
    after: str


class SearchHits(Shown, frozen=True):
    hits: list[SearchHit]
    more: bool


class Curve(Shown, frozen=True):
    """A replay of the session with one strategy: a row of `ra bench context`, and its values call by call.

    `names`, `lines` and `user_words` are the shares of later needed content that was still visible, each also without
    the content that only an index shows.
    """

    strategy: str
    cost: float
    with_rereads: float
    rereads: int
    hit_rate: float
    peak: int
    rewrites: int
    names: float
    lines: float
    user_words: float
    names_without_index: float
    lines_without_index: float
    user_words_without_index: float
    window: list[int]
    cached: list[int]
    spent: list[float]
    cuts: list[int]


class WhatIf(Shown, frozen=True):
    window: int
    priced_as: str
    lifetime_s: float
    recorded: Curve
    rows: list[Curve]
    billed: float | None  # the recorded bill, to compare with the replay
    skipped: list[str]


class Choices(Shown, frozen=True):
    strategies: list[str]
    models: list[str]


class Exported(Shown, frozen=True):
    """The data inside an exported page. `texts` has an entry for each piece, or is empty without text."""

    session: Overview
    findings: CostFindings
    texts: list[PieceText]
    what_if: WhatIf | None
