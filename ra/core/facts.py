"""The facts of a timeline: what can happen in a session. Everything else is a fold over them."""

from typing import Literal

from ra.core.messages import Message
from ra.core.model import Effort, Section, ToolSpec, Usage
from ra.core.value import JsonObject, Value


class Said(Value, frozen=True):
    """A message of the conversation, word for word."""

    message: Message


class Cut(Value, frozen=True):
    """What a model had said when its stream broke off. Kept and billed, never sent again."""

    message: Message
    reason: str


Purpose = Literal["turn", "summary", "planner", "agent", "sampling", "bridge"]
"""What a model call was made for. A `bridge` only keeps the provider's cache over a pause."""


class Spent(Value, frozen=True):
    """One model call: its usage, its price (decimal dollars; "" while no price is known) and what the request held."""

    model: str
    usage: Usage
    dollars: str = ""
    purpose: Purpose = "turn"
    parts: dict[str, int] = {}  # tokens of the request by source
    seconds: float = 0.0
    estimated: bool = False  # the provider told no usage: it is ours
    long_lived: bool = False  # what it wrote to the cache was kept for an hour, at its own price


class Configured(Value, frozen=True):
    """What the requests from here on stand on, apart from the conversation. Recorded when it changes.

    With `base`, the conversation up to this position is replaced by these messages (strategies that do not replay).
    """

    provider: str
    model: str
    strategy: str
    sections: tuple[Section, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    effort: Effort = Effort()
    max_output: int = 8192
    base: tuple[Message, ...] | None = None
    answer_schema: JsonObject = {}


class Noticed(Value, frozen=True):
    """Context that entered at this place: the environment, a subdirectory's AGENTS.md, a volatile source."""

    section: Section


class EntrySet(Value, frozen=True):
    id: str
    content: str
    name: str = ""
    attrs: dict[str, str] = {}


class EntryRemoved(Value, frozen=True):
    id: str


class Clip(Value, frozen=True):
    """Show only `keep` tokens of one block, both ends.

    Counted in o200k_base, so that no later calibration changes bytes that were sent.
    """

    at: int
    block: int
    keep: int


FALLBACK = "ladder"
"""What a checkpoint says that shortened a request because it had to fit; sessions of version 0.1 hold this name."""


class Checkpointed(Value, frozen=True):
    """A compaction: which positions are hidden (inclusive ranges), which blocks are clipped, what stands in for them.

    `marker` stands in the gap; `summary` stands under the first prompt and replaces the summary before it; `handover`
    replaces what the segment began with, when that quotes what no longer holds.
    """

    strategy: str  # the compaction's name, or FALLBACK
    reason: str
    hidden: tuple[tuple[int, int], ...] = ()
    clips: tuple[Clip, ...] = ()
    marker: str = ""
    summary: str = ""
    before: int = 0
    after: int = 0
    handover: str = ""

    @property
    def summary_line(self) -> str:
        """What happened, in a line for a person."""
        sizes = f"{self.before:,} → {self.after:,} tokens"
        if self.strategy == FALLBACK:
            return f"Still too large: shortened what was left ({sizes})."
        return f"Compacted ({self.strategy}): {sizes}."


class Rotated(Value, frozen=True):
    """A checkpoint that also starts a new segment: replay begins with `handover` and the messages from `keep_from`."""

    reason: str
    handover: str
    keep_from: int


class Edited(Value, frozen=True):
    """A hook assigned the conversation: these messages replace everything before."""

    by: str
    messages: tuple[Message, ...]


class Kept(Value, frozen=True):
    """The user wants the message or result at this position in every request: back, if it was hidden or shortened."""

    at: int


class Rewound(Value, frozen=True):
    """The user went back: what came after position `to` is not part of the conversation. Recall still reads it."""

    to: int


CacheAction = Literal["short", "long", "bridge", "cut", "let go"]


class CacheDecided(Value, frozen=True):
    """What becomes of the provider's cache of this session, at what price in dollars, and what the alternative costs.

    `short` and `long`: what is written from here on is kept for the provider's usual time, or for an hour. In a pause:
    `bridge` keeps it by a small call, `cut` compacts while it can still be read, `let go` does nothing.
    """

    action: CacheAction
    dollars: str
    instead: str
    reason: str


class Titled(Value, frozen=True):
    """The user gave the session a title, in place of its first prompt."""

    title: str


class Failed(Value, frozen=True):
    kind: str
    text: str


class Interrupted(Value, frozen=True):
    """A run ended before its answer (Ctrl-C, a limit, a crash found on resume)."""

    reason: str


Rewrite = Checkpointed | Rotated | Edited | Kept | Rewound
Note = Titled | CacheDecided | Failed | Interrupted
Fact = Said | Cut | Spent | Configured | Noticed | EntrySet | EntryRemoved | Rewrite | Note


class TimelineEvent(Value, frozen=True):
    """A fact at its place: `at` counts from 1 in each session, `time` is in seconds since 1970."""

    at: int
    time: float
    fact: Fact


class Entry(Value, frozen=True):
    """A live entry, as the fold sees it. `inserted_at` is the position of the EntrySet that holds."""

    id: str
    name: str
    content: str
    inserted_at: int
    attrs: dict[str, str] = {}
