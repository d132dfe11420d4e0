"""Defines strategies: they decide what the model sees along with the new message."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from ra.context.compose.prompt import Environment
from ra.context.engine import Engine
from ra.context.render import ENTRIES
from ra.context.size import input_budget
from ra.context.tokens import Estimator
from ra.core import text
from ra.core.facts import Configured, Entry, Purpose, TimelineEvent
from ra.core.messages import Message
from ra.core.model import Reply, Request, Section, ToolSpec
from ra.core.ports import Provider, Timeline
from ra.core.value import Value

if TYPE_CHECKING:
    from ra.context.items import Projection, TimestampedMessage

UNKNOWN_WINDOW = 100_000  # tokens that slots share while the window is unknown: every current model has as many


# --- where a message came from: its channel's rules and the verified facts ---

MOST_FACTS = 20
LONGEST = 200  # characters of one fact, name or artifact

RULES = {
    "terminal": "A person reads the answer on a terminal. Markdown is rendered; keep lines short.",
    "pipe": "The answer goes into another program. No greeting, no Markdown decoration, only what was asked for.",
    "api": "A program asked over HTTP. Answer with the content alone; Markdown is fine.",
    "webhook": "An event from another system, and nobody is at a keyboard. Ask no questions; answer once.",
    "telegram": "A chat on Telegram. Short paragraphs, no tables and no headings; at most 4 096 characters.",
    "whatsapp": "A chat on WhatsApp. Plain short text, *bold* with single stars, no Markdown links and no tables.",
    "gitlab": "A comment on GitLab. GitLab Markdown; refer to issues as #1 and merge requests as !1.",
    "discord": "A chat on Discord. Markdown without tables; at most 2 000 characters a message.",
}
OTHER = "Plain text is safe here; nothing more is known about how it is shown."

_ARTIFACTS = ("media", "attachments", "files", "replyTo", "references", "issue", "mergeRequest", "mr", "links")


class TaskOrigin(Value, frozen=True):
    """Who asked, and from where. Only `facts`, which the receiver of the message verified, are stated as facts."""

    agent: str = "ra"
    channel: str = "terminal"
    chat: str = ""
    sender: str = ""
    facts: dict[str, str] = {}
    artifacts: tuple[str, ...] = ()
    local: bool = False  # the user of this machine, whose name and chat tell the model nothing

    @property
    def place(self) -> str:
        """`telegram:42`, for the log."""
        return f"{self.channel}:{self.chat}"


def task(agent: str, context: Mapping[str, Any]) -> TaskOrigin:
    """The origin in the `context` of a posted task. Its texts are untrusted: each becomes one bounded line."""
    named = {"channel", "chatId", "sender"}
    facts = {
        one_line(key, 40): artifact
        for key, value in context.items()
        if key not in named and key not in _ARTIFACTS and (artifact := _shown(value))
    }
    artifacts = [
        f"{key}: {artifact}" for key in _ARTIFACTS for artifact in map(_shown, _each(context.get(key))) if artifact
    ]
    return TaskOrigin(
        agent=one_line(agent, 64) or "ra",
        channel=one_line(context.get("channel", "api"), 64).lower() or "api",
        chat=one_line(context.get("chatId", ""), 64),
        sender=one_line(context.get("sender", ""), 100),
        facts=dict(list(facts.items())[:MOST_FACTS]),
        artifacts=tuple(artifacts[:MOST_FACTS]),
    )


def rules(channel: str) -> str:
    return RULES.get(channel, OTHER)


def one_line(value: object, most: int = LONGEST) -> str:
    """Untrusted text on one line, without invisible characters."""
    line = "" if value is None else str(value)
    return text.one_line("".join(char if char.isprintable() else " " for char in line[: 4 * most]), most)


def _each(value: object) -> list[object]:
    return list(value)[:MOST_FACTS] if isinstance(value, list | tuple) else [value]


def _shown(value: object) -> str:
    match value:
        case None:
            return ""
        case Mapping():
            parts = (f"{one_line(key, 40)}={_shown(item)}" for key, item in list(value.items())[:MOST_FACTS])
            return one_line(" ".join(parts))
        case list() | tuple():
            return one_line(", ".join(_shown(item) for item in value[:MOST_FACTS]))
        case _:
            return one_line(value)


# --- what a strategy reads and returns ---


class LogLine(msgspec.Struct, frozen=True):
    """A line for the operator's log: what happened, in words and as fields."""

    level: str
    event: str
    text: str
    fields: dict[str, object] = {}


class Composed(msgspec.Struct, frozen=True):
    """A strategy's decision. With `base`, these messages replace the conversation so far, the prompt included.

    `name` is the strategy that was really used, if it is another one. `texts` are the texts that were cut, by
    reference; they are stored so that they can be recalled.
    """

    sections: tuple[Section, ...]
    base: tuple[Message, ...] | None = None
    noticed: tuple[Section, ...] = ()
    warnings: tuple[str, ...] = ()
    name: str = ""
    texts: tuple[str, ...] = ()
    log: tuple[LogLine, ...] = ()


class SideCalls(Protocol):
    """Model calls outside the conversation, within the run's budget and recorded in the ledger."""

    async def ask(self, provider: Provider | None, request: Request, *, purpose: Purpose) -> Reply:
        """One answer, not streamed; from the session's provider if None is given.

        Raises what the provider raises, and Stopped.
        """
        ...


class SessionView:
    """A read-only view of the session, for strategies.

    `message` is the new message, already in the timeline. In a `preview` nothing is sent and no model is called.
    """

    def __init__(
        self,
        timeline: Timeline,
        engine: Engine,
        *,
        message: Message,
        sections: Sequence[Section],
        tools: Sequence[ToolSpec],
        task: TaskOrigin,
        side_calls: SideCalls,
        preview: bool = False,
    ) -> None:
        self.message = message
        self.sections = tuple(sections)
        self.tools = tuple(tools)
        self.task = task
        self.preview = preview
        self._timeline = timeline
        self._engine = engine
        self._side_calls = side_calls

    @property
    def id(self) -> str:
        return self._timeline.session

    @property
    def model(self) -> str:
        return self._engine.info.id

    @property
    def estimator(self) -> Estimator:
        return self._engine.estimator

    @property
    def configured(self) -> Configured | None:
        """The configuration of the last request; None before the first."""
        return self._engine.configured

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation as the next request would send it."""
        return self._engine.view.messages

    async def ask_aside(self, provider: Provider | None, request: Request, *, purpose: Purpose) -> Reply:
        """Call a model outside the conversation. Raises what the provider raises, and Stopped."""
        return await self._side_calls.ask(provider, request, purpose=purpose)

    def events(self) -> Iterable[TimelineEvent]:
        return self._timeline.events()

    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._engine.view.entries.values())

    def timeline_messages(
        self, since: int | None = None, projection: "Projection | None" = None
    ) -> "list[TimestampedMessage]":
        """The whole conversation. Its last item is `message` itself, so that it can be recognised when text is cut."""
        from ra.context.items import (  # start-up time: only composed prompts need it
            TimestampedMessage,
            timeline_messages,
        )

        timed = timeline_messages(self.events(), since, projection, estimator=self.estimator)
        # The last one: an older message may have the same text.
        last = next((at for at in range(len(timed) - 1, -1, -1) if timed[at].message.name != ENTRIES), None)
        if last is not None and timed[last].message == self.message:
            timed[last] = TimestampedMessage(self.message, timed[last].at)
        return timed

    def history(self) -> list[Message]:
        """The conversation before the new message."""
        return [timed.message for timed in self.timeline_messages() if timed.message is not self.message]

    def remaining_input_tokens(self) -> int:
        """The input tokens that the tools, the system part and the entries leave."""
        engine, estimator = self._engine, self.estimator
        limit = engine.window.limit or UNKNOWN_WINDOW
        live = [section for section in engine.view.sections if section.name == ENTRIES]
        fixed = sum(map(estimator.section, (*self.sections, *live))) + estimator.tools(self.tools)
        return max(0, input_budget(limit, engine.info.max_output) - estimator.scaled(fixed))


class Strategy(Protocol):
    """Implemented by timeline, layered, planner, sources, strategy files and the slots of an agent file."""

    name: str

    async def compose(self, session: SessionView, message: Message) -> Composed:
        """Decide what the model sees along with the message. Called once per prompt. Raises RaError."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


class TimelineStrategy:
    """`timeline`: the system part, then the conversation as it is. What changes often is appended at the tail."""

    name = "timeline"

    def __init__(self, environment: Environment | None) -> None:
        self._environment = environment

    async def compose(self, session: SessionView, message: Message) -> Composed:
        noticed = (self._environment.section(),) if self._environment else ()
        return Composed(session.sections, noticed=noticed)

    async def close(self) -> None:
        """Nothing is held."""


class StoredStrategy:
    """Continues with the configuration of the last request, whichever strategy made it."""

    def __init__(self, configured: Configured) -> None:
        self.name = configured.strategy
        self._sections = configured.sections

    async def compose(self, session: SessionView, message: Message) -> Composed:
        return Composed(self._sections)

    async def close(self) -> None:
        """Nothing is held."""
