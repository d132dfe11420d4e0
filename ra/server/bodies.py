"""The JSON bodies of the HTTP API, as types: requests are described, responses made, with them."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from ra.core.model import TokenCounts
from ra.core.value import JsonObject

Tools = Literal["all", "read-only", "none"]
StrategyName = Literal["timeline", "layered", "planner"]

Count = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(description="seconds")]
Moment = Annotated[float, Meta(description="seconds since 1970")]
Dollars = Annotated[float | None, Meta(description="dollars; null when no price is known")]


ChannelId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
ChatId = Annotated[
    str,
    Meta(
        pattern=r"^(?!.*\.\.)[\w@+!#=|:,-][\w@+!#=|:,.~-]{0,127}$",
        description="without it, a chat of its own",
    ),
]


class ContextBody(Struct, rename="camel"):
    """Where a message comes from. Other fields (media, replyTo, references …) are handed to the strategy."""

    channel: ChannelId | Annotated[int, Meta(ge=0)] | None = "api"
    chat_id: ChatId | int | None = None
    sender: Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]{0,256}$")] | int | None = ""


class TaskBody(Struct, rename="camel", forbid_unknown_fields=True):
    """A message for an agent. The session of a task is (agent, channel, chatId)."""

    message: Annotated[str, Meta(min_length=1, pattern=r"\S")]
    agent: Annotated[str | None, Meta(description="a named agent; without it, the default one")] = ""
    context_strategy: StrategyName | None = None
    context: ContextBody | UnsetType | None = UNSET
    stream: bool | None = False
    tools: Tools | None = "all"


class AnswerBody(Struct, rename="camel"):
    """The end of a task; what went wrong in the run stands in `error`."""

    content: str
    duration: Seconds
    usage: TokenCounts
    cost: Dollars
    session_id: str
    strategy: str
    error: str | UnsetType = UNSET


class RefusalBody(Struct):
    """Why a request was not taken; `field` names what is wrong in the body."""

    error: str
    field: str | UnsetType = UNSET


class SessionBody(Struct, rename="camel"):
    id: str
    agent: str
    channel: str
    chat_id: str
    title: str
    model: str
    created: Moment
    updated: Moment
    events: Count
    usage: TokenCounts
    cost: Dollars


class CallBody(Struct):
    id: str
    name: str
    args: JsonObject


class MessageBody(Struct, rename="camel"):
    at: Count
    time: Moment
    role: str
    content: str
    tool_calls: list[CallBody] | UnsetType = UNSET


class SessionWithMessages(SessionBody):
    messages: list[MessageBody]


class SessionList(Struct):
    sessions: list[SessionBody]


class HealthBody(Struct):
    status: str
    running: Count | UnsetType = UNSET
    waiting: Count | UnsetType = UNSET
    reason: str | UnsetType = UNSET


RunState = Literal["waiting", "running", "succeeded", "failed", "cancelled", "interrupted"]


class RunBody(Struct, rename="camel"):
    """A task that was taken; `error`, `usage` and `cost` are those of its end."""

    id: str
    state: RunState
    agent: str
    channel: str
    chat_id: str
    created: Moment
    ended: Moment | UnsetType = UNSET
    session_id: str | UnsetType = UNSET
    usage: TokenCounts | UnsetType = UNSET
    cost: Dollars = None
    error: str | UnsetType = UNSET


class RunList(Struct):
    runs: list[RunBody]
