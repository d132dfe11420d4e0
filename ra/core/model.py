"""Request and Reply: what goes to a model, what comes back, and what they are made of."""

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
    """Tokens of one call. The four are disjoint: `input` counts neither what was read from nor written to a cache."""

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
    """A Usage as HTTP and the bench write and read it: `inputTokens`, `outputTokens` …"""

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
    """Named text in front of the model. Nothing but sections and messages ever gets there.

    `cut` says what was left out and how to recall it; empty when the content is whole.
    """

    name: str
    tier: Tier
    content: str
    role: Role = "system"
    max: int | None = None
    cut: str = ""


class Effort(Value, frozen=True):
    """How hard the model may think in this call: the level's name and the budget in tokens behind it."""

    level: Literal["off", "low", "medium", "high"] = "off"
    budget: int = 0


class Marks(Value, frozen=True):
    """Where the cached prefix may end: after the tools, after these sections, after these messages (indexes).

    `long_lived`: what is written there shall be kept for an hour.
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
    answer_schema: JsonObject = {}  # what the answer must fit, where the provider itself sees to that


class Reply(Value, frozen=True):
    message: Message
    usage: Usage
    stop: Stop


class ModelInfo(Value, frozen=True):
    """A row of the catalog. A window of None is unknown: the first overflow teaches it."""

    id: str
    window: int | None = None
    max_output: int = 8192
    thinking: Literal["none", "budget", "effort", "adaptive"] = "none"
    tokens_per_o200k: float = 1.0  # how many of its own tokens the model counts for one of o200k_base
    tools: bool = True
