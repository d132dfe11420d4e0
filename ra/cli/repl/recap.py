"""Where did we stop? The end of a session that is taken up again."""

from collections.abc import Iterable

from ra.cli.markdown import MarkdownStream
from ra.cli.paper import Paper
from ra.cli.safe import one_line, visible
from ra.core.facts import Cut, Failed, Interrupted, Said, TimelineEvent
from ra.core.value import Value

SHOWN = 20  # lines of the last answer

GO_ON = "Go on where you stopped."


class Recap(Value, frozen=True):
    """The last prompt, what was answered, and how it ended."""

    prompts: int = 0
    prompt: str = ""
    answer: str = ""
    calls: int = 0
    unfinished: bool = False
    reason: str = ""


def recap(events: Iterable[TimelineEvent]) -> Recap:
    prompts, prompt, answer, calls, unfinished, reason = 0, "", "", 0, False, ""
    for event in events:
        match event.fact:
            case Said(message) if message.role == "user" and not message.name:
                prompts, prompt, answer, calls, unfinished, reason = prompts + 1, message.text, "", 0, True, ""
            case Said(message) if message.role == "assistant":
                answer = message.text or answer
                calls += len(message.calls)
                unfinished = bool(message.calls)
            case Cut(message):
                answer = message.text or answer
            case Failed(text=text) | Interrupted(reason=text):
                unfinished, reason = False, text
            case _:
                pass
    return Recap(prompts, prompt, answer, calls, unfinished, reason)


def shown(told: Recap, paper: Paper, session: str) -> str:
    if not told.prompts:
        return ""
    parts = [paper.line(f"session {session}, {told.prompts} prompt{'s' * (told.prompts != 1)} so far", "dim")]
    parts.append("\n" + paper.line(f"› {one_line(told.prompt, 300)}", "bold cyan"))
    lines = told.answer.strip().split("\n")
    if len(lines) > SHOWN:
        parts.append(paper.line(f"· {len(lines) - SHOWN} lines before this", "dim"))
    if told.answer.strip():
        words = MarkdownStream(paper)
        words.feed("\n".join(lines[-SHOWN:]))
        parts.append(words.finish())
    if told.unfinished:
        done = f" after {told.calls} tool call{'s' * (told.calls != 1)}" if told.calls else ""
        parts.append(paper.line(f"· It stopped here{done}, before the answer was complete. Enter goes on.", "yellow"))
    elif told.reason == "user":
        parts.append(paper.line("· You stopped it here.", "yellow"))
    elif told.reason:
        parts.append(paper.line(f"· It stopped here: {visible(one_line(told.reason, 200))}", "yellow"))
    return "".join(parts)
