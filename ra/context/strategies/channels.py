"""Where did a message come from, and what does that ask of an answer? The channel's rules and the verified facts."""

from collections.abc import Mapping
from typing import Any

from ra.core import text
from ra.core.value import Value

MOST_FACTS = 20
LONGEST = 200  # characters of one fact, name or artifact

RULES = {
    "terminal": "A person reads the answer on a terminal. Markdown is rendered; keep lines short.",
    "pipe": "The answer goes into another program. No greeting, no Markdown decoration, only what was asked for.",
    "api": "A program asked over HTTP. Answer with the content alone; Markdown is fine.",
    "webhook": "An event of another system asked, and nobody waits at a keyboard. Do not ask back; answer once.",
    "telegram": "A chat on Telegram. Short paragraphs, no tables and no headings; at most 4 096 characters.",
    "whatsapp": "A chat on WhatsApp. Plain short text, *bold* with single stars, no Markdown links and no tables.",
    "gitlab": "A comment on GitLab. GitLab Markdown; refer to issues as #1 and merge requests as !1.",
    "discord": "A chat on Discord. Markdown without tables; at most 2 000 characters a message.",
}
OTHER = "Plain text is safe here; nothing more is known about how it is shown."

_ARTIFACTS = ("media", "attachments", "files", "replyTo", "references", "issue", "mergeRequest", "mr", "links")


class Task(Value, frozen=True):
    """Who asked, and from where. `facts` were verified by whoever took the message in; nothing else is told as fact."""

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


def task(agent: str, context: Mapping[str, Any]) -> Task:
    """The `context` of a posted task. Every text in it comes from outside: one line each, and bounded."""
    named = {"channel", "chatId", "sender"}
    facts = {
        one_line(key, 40): shown
        for key, value in context.items()
        if key not in named and key not in _ARTIFACTS and (shown := _shown(value))
    }
    artifacts = [f"{key}: {shown}" for key in _ARTIFACTS for shown in map(_shown, _each(context.get(key))) if shown]
    return Task(
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
    """Text from outside on one line, without signs that cannot be seen."""
    told = "" if value is None else str(value)
    return text.one_line("".join(char if char.isprintable() else " " for char in told[: 4 * most]), most)


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
