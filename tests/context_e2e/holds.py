"""What must hold in every request of a hostile session? `python -m tests.context_e2e.holds 0 500` runs seeds."""

import re
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from ra.context import render
from ra.context.report import parts
from ra.context.tokens import Estimator
from ra.context.view import View
from ra.core.events import Compacted, Warned
from ra.core.facts import Checkpointed, Configured, Edited, EntryRemoved, EntrySet, Rotated, Said, TimelineEvent
from ra.core.messages import Message, Text
from ra.core.model import Request
from tests.context.sessions import paired, text_of
from tests.context_e2e.hostile import KEEP, Play, Result, Taken, perform, play_of

COUNT = Estimator()
LEAST = 64  # tokens of o200k_base: two prompts and a marker, all of them as short as they can be
TOO_LARGE = (
    "prompt is too long",
    "maximum context",
    "context window",
    "maximum number of tokens",
    "exceed context limit",
)
JSON = 1.4  # what frames of JSON may add to the server's count
FREE = 0.8  # the lowest factor: a section's max is in the model's tokens


def faults(result: Result) -> list[str]:
    """Everything that broke, in words."""
    ended = [
        f"run {number} ended in {last.outcome}: {last.error[:400]}"
        for number, last in enumerate(result.ended)
        if last.outcome != "answered" and not _too_small(last.error, result.play)
    ]
    odd = [words for words in result.refused if not any(kind in words for kind in TOO_LARGE)]
    found = [*ended, *(f"refused for another reason: {words[:300]}" for words in odd)]
    if len(result.refused) > 3 * len(result.ended) + len(result.taken) // 3:
        found.append(f"{len(result.refused)} refusals")
    compactions = sum(isinstance(event, Compacted) for event in result.heard)
    if compactions > 6 * (len(result.taken) + len(result.refused)):
        found.append(f"{compactions} compactions for {len(result.taken)} requests")
    view, at = View(COUNT), 0
    for number, one in enumerate(result.taken):
        for event in result.events[at : one.at]:
            view.apply(event)
        at = one.at
        found += [f"request {number}: {fault}" for fault in _request(result, view, one)]
    found += [
        f"request {number} does not extend the one before"
        for number, (before, after) in enumerate(pairwise(result.taken), 1)
        if not _rewritten(result.events, before.at, after.at) and not _extends(before.request, after.request)
    ]
    return found


def _too_small(error: str, play: Play) -> bool:
    """Does it say that system part and tools leave nothing, and is that true?"""
    words = r"system part \((\d+) tokens: .*\) and the tool definitions \((\d+)\).*may have (\d+) tokens"
    sizes = re.search(words, error)
    return sizes is not None and int(sizes[3]) - int(sizes[1]) - int(sizes[2]) < LEAST * play.rate * JSON


def _request(result: Result, view: View, one: Taken) -> Iterator[str]:
    request, play = one.request, result.play
    seen, shown = text_of(request), view.request()
    if not paired(request.messages):
        yield "calls and results are torn"
    if (shown.sections, shown.messages, shown.tools) != (request.sections, request.messages, request.tools):
        yield "a replay shows another request"
    if lost := [live.id for live in view.entries.values() if render.entry(live) not in seen]:
        yield f"entries {lost} are lost"
    if over := [section.name for section in request.sections if section.max and _least(section.content) > section.max]:
        yield f"sections {over} are over their max"
    if request.max_output < 1:
        yield f"max_output is {request.max_output}"
    asked = [event.fact.message for event in result.events[: one.at] if isinstance(event.fact, Said)]
    newest = next(message for message in reversed(asked) if message.role == "user" and not message.name)
    if not any(_same_start(newest, message) for message in request.messages):
        yield "the newest prompt is lost"
    if play.session != "timeline" or play.sources:
        return
    yield from _prompts(result, view, seen)
    rules = [section.content.split(" ")[0] for section in view.notices().values() if "RULE-" in section.content]
    yield from (f"{rule} is lost" for rule in rules if rule not in seen)
    said = result.events[: one.at]
    kept = set(re.findall(KEEP, "\n".join(_recorded(said)))) if play.keep else set()
    gone = sorted(keep for keep in kept if keep not in seen)
    warned = any(isinstance(event, Warned) and "mustKeep" in event.text for event in result.heard)
    if gone and not warned and any(isinstance(event.fact, Checkpointed) for event in said):
        yield f"{gone} are lost"


def _prompts(result: Result, view: View, seen: str) -> Iterator[str]:
    play = result.play
    first = next(event.fact.message for event in result.events if isinstance(event.fact, Said))
    texts = [block.text for block in first.blocks if isinstance(block, Text)]
    least = (view.fixed_tokens() + COUNT.message(first) + LEAST) * play.rate * JSON
    if least < play.window * (0.4 if play.shrinks else 0.9) and any(text not in seen for text in texts):
        yield "the first prompt is not there word for word"
    if first not in [group.item.message for group in view.groups] or texts[0][:3] not in seen:
        yield "the first prompt is lost"


def _same_start(prompt: Message, shown: Message) -> bool:
    """Is it that prompt, or what a cut left of it?"""
    typed, left = (next((block.text for block in one.blocks if isinstance(block, Text)), "") for one in (prompt, shown))
    start = left.partition("[…")[0].rstrip()[:8]
    return shown.role == "user" and (typed.startswith(start) if start else "[…" in left)


def _least(text: str) -> float:
    return COUNT.text(text) * FREE


def _recorded(events: Sequence[TimelineEvent]) -> Iterator[str]:
    return (text_of(_only(event.fact.message)) for event in events if isinstance(event.fact, Said))


def _only(message: Message) -> Request:
    return Request("", (), (message,))


def _rewritten(events: Sequence[TimelineEvent], first: int, last: int) -> bool:
    """Does a fact lie between that may change what was sent?"""
    known = {event.fact.id for event in events[:first] if isinstance(event.fact, EntrySet)}
    return any(
        isinstance(event.fact, Checkpointed | Rotated | Configured | Edited | EntryRemoved)
        or (isinstance(event.fact, EntrySet) and event.fact.id in known)
        for event in events[first:last]
    )


def _extends(before: Request, after: Request) -> bool:
    old, new = ([part.body for part in parts(request)] for request in (before, after))
    return new[: len(old)] == old


def told(play: Play) -> str:
    switches = [name for name in ("whole", "shrinks", "resumes", "keep") if getattr(play, name)]
    return (
        f"{play.dialect} {play.session} {play.strategy} window {play.window} ({play.known}) × {play.rate:.2f} "
        f"{' '.join(switches)} tools {len(play.tools)} + {play.schemas}, sources {len(play.sources)}, "
        f"rules {COUNT.text(play.rules)} + {[COUNT.text(one) for one in play.nested]}, blocks {play.blocks}, "
        f"entries {[COUNT.text(one) for one in play.entries]}, prompts {[COUNT.text(one) for one in play.prompts]}, "
        f"turns {[len(one) for one in play.turns]}"
    )


def main(first: int, last: int, low: int, high: int) -> None:
    broken = 0
    for seed in range(first, last):
        play = play_of(seed, windows=(low, high))
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = faults(perform(play, Path(folder)))
            except Exception:
                found = [traceback.format_exc()]
        if found:
            broken += 1
            print(f"{seed}: {told(play)}", *(f"    {one}" for one in found[:6]), sep="\n", flush=True)
    print(f"{broken} of {last - first} broke")


if __name__ == "__main__":
    main(*map(int, [*sys.argv[1:], *("0", "40", "1000", "200000")[len(sys.argv) - 1 :]]))
