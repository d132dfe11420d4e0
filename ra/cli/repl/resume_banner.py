"""Shows the end of a resumed conversation, and where it stopped."""

from collections.abc import Iterable

from ra.cli.markdown import MarkdownStream
from ra.cli.output import describe
from ra.cli.render import Paper
from ra.core.facts import Cut, Failed, Interrupted, Rewound, Said, TimelineEvent
from ra.core.text import visible, visible_line
from ra.core.value import Value

SHOWN = 20  # lines of the last answer
EARLIER = 8  # lines of an answer before it
SCREENS = 3  # number of prompts that are shown again

GO_ON = "Go on where you stopped."


class Exchange(Value, frozen=True):
    """A prompt, its tool calls, and its answer."""

    at: int
    prompt: str
    answer: str = ""
    calls: tuple[str, ...] = ()


class Recap(Value, frozen=True):
    """The last exchanges, and how the last one ended."""

    prompts: int = 0
    exchanges: tuple[Exchange, ...] = ()
    unfinished: bool = False
    reason: str = ""

    @property
    def prompt(self) -> str:
        return self.exchanges[-1].prompt if self.exchanges else ""

    @property
    def answer(self) -> str:
        return self.exchanges[-1].answer if self.exchanges else ""


def recap(events: Iterable[TimelineEvent]) -> Recap:
    exchanges: list[Exchange] = []
    unfinished, reason = False, ""
    for event in events:
        match event.fact:
            case Said(message) if message.role == "user" and not message.name:
                exchanges.append(Exchange(event.at, message.text))
                unfinished, reason = True, ""
            case Said(message) | Cut(message) if message.role == "assistant" and exchanges:
                last = exchanges.pop()
                calls = (*last.calls, *(describe(call) for call in message.calls))
                exchanges.append(Exchange(last.at, last.prompt, message.text or last.answer, calls))
                unfinished = bool(message.calls) or isinstance(event.fact, Cut)
            case Rewound(to):
                exchanges = [exchange for exchange in exchanges if exchange.at <= to]
                unfinished, reason = False, ""
            case Failed(text=text) | Interrupted(reason=text):
                unfinished, reason = False, text
            case _:
                pass
    return Recap(len(exchanges), tuple(exchanges[-SCREENS:]), unfinished, reason)


def shown(recap: Recap, paper: Paper, session: str) -> str:
    if not recap.prompts:
        return ""
    parts = [paper.line(f"session {session}, {recap.prompts} prompt{'s' * (recap.prompts != 1)} so far", "dim")]
    for exchange in recap.exchanges:
        parts += _exchange(exchange, paper, most=SHOWN if exchange is recap.exchanges[-1] else EARLIER)
    if recap.unfinished:
        count = len(recap.exchanges[-1].calls)
        calls = f" after {count} tool call{'s' * (count != 1)}" if count else ""
        parts.append(
            paper.line(f"· It stopped here{calls}, before the answer was complete. Press Enter to continue.", "yellow")
        )
    elif recap.reason == "user":
        parts.append(paper.line("· You stopped it here.", "yellow"))
    elif recap.reason:
        parts.append(paper.line(f"· It stopped here: {visible(visible_line(recap.reason, 200))}", "yellow"))
    return "".join(parts)


def _exchange(exchange: Exchange, paper: Paper, *, most: int) -> list[str]:
    parts = ["\n" + paper.line(f"› {visible_line(exchange.prompt, 300)}", "bold cyan")]
    named = exchange.calls[-3:]
    if len(exchange.calls) > len(named):
        parts.append(paper.line(f"· {len(exchange.calls) - len(named)} tool calls before these", "dim"))
    parts += [paper.line(f"• {call}", "dim") for call in named]
    lines = exchange.answer.strip().split("\n")
    if len(lines) > most:
        parts.append(paper.line(f"· {len(lines) - most} lines before this", "dim"))
    if exchange.answer.strip():
        words = MarkdownStream(paper)
        words.feed("\n".join(lines[-most:]))
        parts.append(words.finish())
    return parts
