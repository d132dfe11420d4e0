"""The facts of a timeline: what can happen in a session. Everything else is a fold over them."""

from typing import Literal

from ra.core.messages import Message
from ra.core.model import Effort, Section, ToolSpec, Usage
from ra.core.value import JsonObject, Value


class Said(Value, frozen=True):
    """A message of the conversation, word for word."""

    message: Message


class Cut(Value, frozen=True):
    """The part of an answer that arrived before its stream broke off. Recorded and billed, but never sent again."""

    message: Message
    reason: str


Purpose = Literal["turn", "summary", "planner", "agent", "sampling", "bridge"]
"""The purpose of a model call. A `bridge` only keeps the provider's cache alive during a pause."""


class Spent(Value, frozen=True):
    """One model call: its usage, its price (decimal dollars; "" when unknown) and the make-up of its request."""

    model: str
    usage: Usage
    dollars: str = ""
    purpose: Purpose = "turn"
    parts: dict[str, int] = {}  # tokens of the request by source
    seconds: float = 0.0
    estimated: bool = False  # the provider reported no usage: this is our estimate
    long_lived: bool = False  # its cache writes last an hour, which has a price of its own


class Configured(Value, frozen=True):
    """Everything in the following requests apart from the conversation. Recorded when it changes.

    With `base`, these messages replace the conversation up to this position (strategies that do not replay).
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
    base_url: str = ""  # where the requests go: another address may take less


class Noticed(Value, frozen=True):
    """Context that was added at this position: the environment, a subdirectory's AGENTS.md, a volatile source."""

    section: Section


class EntrySet(Value, frozen=True):
    id: str
    content: str
    name: str = ""
    attrs: dict[str, str] = {}


class EntryRemoved(Value, frozen=True):
    id: str


class Clip(Value, frozen=True):
    """Shortens one block to `keep` tokens, taken from both ends.

    The tokens are those of o200k_base, so that a later calibration changes no bytes that were already sent.
    """

    at: int
    block: int
    keep: int


FALLBACK = "ladder"
"""The strategy of a checkpoint that shortened a request to make it fit. Sessions of version 0.1 hold this name."""


class Checkpointed(Value, frozen=True):
    """A compaction: which positions are hidden (inclusive ranges), which blocks are clipped, and what replaces them.

    `marker` fills the gap. `summary` goes below the first prompt and replaces the previous summary. `handover`
    replaces the beginning of the segment when that quotes something that is no longer true.
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
        """The compaction in one line for the user."""
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
    """A hook replaced the conversation: these messages stand for everything before."""

    by: str
    messages: tuple[Message, ...]


class Kept(Value, frozen=True):
    """The user pinned the message or result at this position: every request has it, even if compacted before."""

    at: int


class Rewound(Value, frozen=True):
    """The user went back: the conversation no longer includes what came after position `to`. Recall still reads it."""

    to: int


CacheAction = Literal["short", "long", "bridge", "cut", "let go"]


class CacheDecided(Value, frozen=True):
    """A decision about the provider's cache of this session: its price in dollars, and that of the alternative.

    `short` and `long`: cache writes from here on last the provider's usual time, or an hour. During a pause, `bridge`
    extends the cache by a small call, `cut` compacts while the cache can still be read, `let go` lets it expire.
    """

    action: CacheAction
    dollars: str
    instead: str
    reason: str


class Titled(Value, frozen=True):
    """The user gave the session a title, which is shown instead of its first prompt."""

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
    """A fact with its position: `at` counts from 1 in each session, `time` is in seconds since 1970."""

    at: int
    time: float
    fact: Fact


class Entry(Value, frozen=True):
    """A live entry, folded from the timeline. `inserted_at` is the position of its newest EntrySet."""

    id: str
    name: str
    content: str
    inserted_at: int
    attrs: dict[str, str] = {}
