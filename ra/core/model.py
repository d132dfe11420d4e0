"""Request and Reply, what goes to a model and what comes back, and their parts."""

import operator
from typing import Literal

import msgspec
from msgspec.structs import astuple

from ra.core.messages import Message, Role
from ra.core.value import JsonObject, Value

Tier = Literal["pinned", "stable", "slow-changing", "volatile"]
TIERS: tuple[Tier, ...] = ("pinned", "stable", "slow-changing", "volatile")

Level = Literal["off", "low", "medium", "high", "adaptive"]

Stop = Literal["end", "tools", "length", "refused", "cut"]


class Usage(Value, frozen=True):
    """Tokens of one call. The four do not overlap: `input` excludes what was read from or written to a cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def total_input(self) -> int:
        return self.input + self.cache_read + self.cache_write

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*map(operator.add, astuple(self), astuple(other)))

    def __sub__(self, other: "Usage") -> "Usage":
        return Usage(*map(operator.sub, astuple(self), astuple(other)))


class TokenCounts(msgspec.Struct, frozen=True, rename="camel"):
    """A Usage in the JSON of the server and the bench: `inputTokens`, `outputTokens` …"""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_create_tokens: int

    @classmethod
    def of(cls, usage: Usage) -> "TokenCounts":
        return cls(usage.input, usage.output, usage.cache_read, usage.cache_write)

    @property
    def usage(self) -> Usage:
        return Usage(self.input_tokens, self.output_tokens, self.cache_read_tokens, self.cache_create_tokens)


class ToolSpec(Value, frozen=True):
    name: str
    description: str
    schema: JsonObject


class Section(Value, frozen=True):
    """Named text in a request. The model sees sections, messages and tools, and nothing else.

    `cut` says what was left out and how to recall it; empty when the content is complete.
    """

    name: str
    tier: Tier
    content: str
    role: Role = "system"
    max: int | None = None
    cut: str = ""


class Effort(Value, frozen=True):
    """How much the model may think in this call: the level, and its budget in tokens."""

    level: Literal["off", "low", "medium", "high"] = "off"
    budget: int = 0


class Marks(Value, frozen=True):
    """Where the cached prefix may end: after the tools, after these sections, after these messages (indexes).

    `long_lived`: cache writes last an hour.
    """

    tools: bool = False
    sections: tuple[int, ...] = ()
    messages: tuple[int, ...] = ()
    long_lived: bool = False


class Request(Value, frozen=True):
    """Exactly what is sent, exactly what is counted, exactly what `ra context` shows."""

    model: str
    sections: tuple[Section, ...]
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    effort: Effort = Effort()
    max_output: int = 8192
    marks: Marks = Marks()
    cache_key: str = ""
    answer_schema: JsonObject = {}  # the answer's JSON schema, where the provider itself enforces it


class Reply(Value, frozen=True):
    message: Message
    usage: Usage
    stop: Stop


class ModelInfo(Value, frozen=True):
    """A row of the catalog. A window of None is unknown until the first overflow reveals it."""

    id: str
    window: int | None = None
    max_output: int = 8192
    thinking: Literal["none", "budget", "effort", "adaptive"] = "none"
    tokens_per_o200k: float = 1.0  # the model's tokens per token of o200k_base
    tools: bool = True
