"""How does a model sum up what is hidden? One call, what a program can see for itself, and a size that never grows."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

import msgspec

from ra.context.compaction.digest import Digest
from ra.context.compaction.findings import line
from ra.context.compaction.summary import Summary, fitted, lines, merged, parse, tagged
from ra.context.compaction.truncate import marker
from ra.context.compaction.zones import Zones, gap
from ra.context.tokens import Estimator
from ra.context.units import Unit
from ra.context.view import View
from ra.context.window import input_budget
from ra.core.errors import BadStream, ProviderError
from ra.core.facts import Checkpointed, Fact, Spent
from ra.core.functions import Price
from ra.core.messages import Text, ToolCall, ToolResult, say
from ra.core.model import ModelInfo, Reply, Request, Section, Usage
from ra.core.value import encode

TIMEOUT_S = 120
UNKNOWN_WINDOW = 16_000  # tokens that a model of unknown window is trusted with
PIECES = 12  # calls for one summary, at most; what would need more is shortened first
READ_PRICE = 0.1  # of an input token, for one that is read from the cache, where caches are sold

ASK = """Sum up the conversation above for the one who has to continue it without seeing it. Call no tool. Answer with:
<summary>what was asked, what was done and found, and what was decided and why; keep names, paths, numbers and \
wordings that matter exactly as they are</summary>
<pending_work>what is still open, one item per line</pending_work>
<key_files>paths that matter, one per line</key_files>"""

_PENDING = re.compile(
    r"\b(?:todo|next steps?|remaining|pending|still (?:have|need)|fixme)\b|待办|下一步|剩余|未完成|残り", re.I
)

Call = Callable[[Request], Awaitable[Reply]]


class Summarizer:
    """Asks the model that is named, or else the one that is at work; `info` describes whichever it is.

    `window` is what is known of its window by now: an overflow may have taught more than the catalog says.
    """

    def __init__(
        self,
        call: Call,
        *,
        model: str | None,
        info: ModelInfo,
        window: Callable[[], int | None],
        estimator: Estimator,
        digest: Digest,
        prompt: str | None,
        price: Price,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._call = call
        self._model = model
        self._info = info
        self._window = window
        self._estimator = estimator
        self._digest = digest
        self._prompt = prompt
        self._price = price
        self._timeout_s = timeout_s

    async def compact(
        self, view: View, zones: Zones, *, sent: Request, cap: int, index: int, rate: float, focus: str = ""
    ) -> tuple[list[Fact], str]:
        """Facts for the compactable zone, and a warning when the model failed: then an index stands in.

        `sent` is the request as it would go out now; `cap` the tokens for all that stands under the first prompt;
        `index` those of the index; `rate` tokens of the model at work are one of ours.
        """
        facts: list[Fact] = []
        model = self._model or sent.model
        fault = "it answered with nothing"
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self._ask(view, zones, sent, cap, rate, focus, facts)
        except ProviderError as error:
            answer, fault = "", str(error)
            if isinstance(error, BadStream) and error.usage != Usage():
                facts.append(self._spent(model, error.usage))
        except TimeoutError:
            answer, fault = "", f"it took longer than {self._timeout_s:g} s"
        if not answer.strip():
            digest = self._digest.compact(view, zones, index)
            warning = f"The summary by {model} failed ({fault}); an index of what happened stands in for it."
            return [*facts, *([digest] if digest else [])], warning
        hole = gap(view, zones.compactable)
        summary = self._write(view, zones.compactable, answer, cap)
        facts.append(
            Checkpointed(
                "summarize", "", hidden=hole.hidden, clips=hole.clips, marker=marker(view, hole), summary=summary
            )
        )
        return facts, ""

    # --- asking ---

    async def _ask(
        self, view: View, zones: Zones, sent: Request, cap: int, rate: float, focus: str, facts: list[Fact]
    ) -> str:
        """The model's answer; every call that was made for it is in `facts`, also when a later one fails."""
        ask = self._prompt or ASK
        if focus:
            ask = f"{ask}\nPay most attention to: {focus}"
        if self._model not in (None, sent.model):
            rate = self._info.tokens_per_o200k  # what bills taught is about the other model
        output = min(self._info.max_output, max(256, int(cap * rate)))
        window = int((self._window() or UNKNOWN_WINDOW) / rate)
        shared = self._shared(view, zones, sent, ask, output, window)
        if shared is not None:
            return await self._answer(shared, facts)
        room = input_budget(window, output) - self._estimator.text(ask) - cap - 200
        answer = ""
        for piece in _pieces([transcript(unit) for unit in zones.compactable], max(200, room), self._estimator):
            answer = await self._answer(self._request(self._model or sent.model, piece, answer, ask, output), facts)
        return answer

    async def _answer(self, request: Request, facts: list[Fact]) -> str:
        reply = await self._call(request)
        facts.append(self._spent(request.model, reply.usage))
        return reply.message.text

    def _shared(self, view: View, zones: Zones, sent: Request, ask: str, output: int, window: int) -> Request | None:
        """The question at the end of the very request that would go out now, where that is possible and cheaper.

        The model that works here has most of it in its cache, at a tenth of the price of the bare text.
        """
        whole = view.tokens() + self._estimator.text(ask) + 8
        hidden = sum(map(view.unit_tokens, zones.compactable))
        left = window - whole
        if self._model not in (None, sent.model) or left < output // 2 or whole * READ_PRICE >= hidden:
            return None
        return msgspec.structs.replace(sent, messages=(*sent.messages, say("user", ask)), max_output=min(output, left))

    def _request(self, model: str, piece: str, before: str, ask: str, output: int) -> Request:
        told = f"<so_far>\n{before}\n</so_far>\n\n" if before else ""
        system = Section("system", "pinned", "You sum up conversations exactly and briefly.")
        message = say("user", f"{told}<conversation>\n{piece}\n</conversation>\n\n{ask}")
        return Request(model, (system,), (message,), max_output=output)

    def _spent(self, model: str, usage: Usage) -> Spent:
        dollars = self._price(model, usage)
        return Spent(model, usage, "" if dollars is None else str(dollars), purpose="summary")

    # --- writing ---

    def _write(self, view: View, units: Sequence[Unit], answer: str, cap: int) -> str:
        """The answer, merged with what a program read off the same messages and with the summary before."""
        before = parse(view.summary)
        if self._prompt:
            return fitted(Summary(answer, previous=before.flat), cap, self._estimator)
        traces = [self._digest.trace(unit) for unit in units]
        notes = [note for one in traces for note in one.notes]
        seen = [note.text for note in notes if note.kind in ("changed", "read")]
        text = tagged(answer, "summary") or re.sub(r"<(\w+)>.*?</\1>", "", answer, flags=re.S).strip() or answer
        summary = Summary(
            text=text,
            files=merged(before.files, seen, lines(tagged(answer, "key_files"))),
            commands=merged(before.commands, [f"{note.text} #{note.at}" for note in notes if note.kind == "command"]),
            tools=merged(before.tools, [tool for one in traces for tool in one.tools]),
            pending=merged(_hints(units), lines(tagged(answer, "pending_work"))),
            previous=before.flat,
        )
        return fitted(summary, cap, self._estimator)


def transcript(unit: Unit) -> str:
    """A group as a reader would write it down."""
    written = []
    for item in unit.items:
        for block in item.message.blocks:
            match block:
                case Text(text):
                    written.append(f"{item.message.role}: {text}")
                case ToolCall(name=name, args=args):
                    written.append(f"[call {name} {encode(args).decode()}]")
                case ToolResult(name=name, content=content, is_error=failed):
                    text = "\n".join(part.text for part in content if isinstance(part, Text))
                    written.append(f"[{'error' if failed else 'result'} of {name}]\n{text}")
    return "\n".join(written)


def _pieces(texts: Sequence[str], room: int, estimator: Estimator) -> Iterator[str]:
    """The texts in as few pieces of at most `room` tokens as their order allows, and in no more than a dozen."""
    share = room if sum(map(estimator.text, texts)) <= room * PIECES else max(64, room * PIECES // (2 * len(texts)))
    piece: list[str] = []
    left = room
    for text in texts:
        short = estimator.clip(text, min(room, share) - 2, marker="\n[…]\n")
        size = estimator.text(short) + 2
        if piece and size > left:
            yield "\n\n".join(piece)
            piece, left = [], room
        piece.append(short)
        left -= size
    if piece:
        yield "\n\n".join(piece)


def _hints(units: Iterable[Unit]) -> list[str]:
    """Lines of the conversation that speak of work to come; the last few are still true most likely."""
    texts = (unit.item.message.text for unit in units if unit.kind == "said")
    return [line(one) for text in texts for one in text.splitlines() if _PENDING.search(one)][-5:]
