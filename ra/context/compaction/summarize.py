"""Has a model summarize what is hidden, and merges the answer with facts that are extracted without a model."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence

import msgspec

from ra.context.compaction.digest import Digest
from ra.context.compaction.findings import line
from ra.context.compaction.names import file_names, identifiers
from ra.context.compaction.sentences import sentences
from ra.context.compaction.summary import (
    Summary,
    fitted,
    lines,
    merged,
    names_frame,
    parse,
    paths,
    tagged,
    with_names,
    without,
)
from ra.context.size import Allowance, input_budget
from ra.context.tokens import Estimator
from ra.context.view import Group, View
from ra.core.errors import ProviderError
from ra.core.facts import Spent
from ra.core.functions import Price
from ra.core.messages import Text, ToolCall, ToolResult, say
from ra.core.model import ModelInfo, Reply, Request, Section, Usage
from ra.core.value import encode

TIMEOUT_S = 120
UNKNOWN_WINDOW = 16_000  # tokens that are sent to a model of unknown window
PIECES = 12  # the most calls for one summary; longer text is shortened first
READ_PRICE = 0.1  # the price of a cached token as a share of an input token, for providers that bill cache reads

ASK = """Sum up the conversation above for the one who has to continue it without seeing it. What an earlier summary \
says counts as part of it: carry on what still holds. Call no tool. Answer with:
<summary>what was asked, what was done and found; keep names, paths, numbers and wordings that matter exactly as they \
are</summary>
<decisions>what was decided and why, one per line</decisions>
<pending_work>what is still open, one item per line</pending_work>
<done_work>items of earlier pending work that are done by now, one per line, in their words</done_work>
<key_files>paths that matter, one per line</key_files>"""

_PENDING = re.compile(
    r"\b(?:todo|next steps?|remaining|pending|still (?:have|need)|fixme)\b|待办|下一步|剩余|未完成|残り", re.I
)

AskModel = Callable[[Request], Awaitable[Reply]]


class SummedUp(msgspec.Struct, frozen=True):
    """A summary, its bills and, if there is none, the reason."""

    text: str
    spent: tuple[Spent, ...] = ()
    warning: str = ""


class Summarizer:
    """Calls the configured model, or else the session's own; `info` describes that model.

    `window` is its window as known by now: an overflow may have taught a better one than the catalog's.
    """

    def __init__(
        self,
        call: AskModel,
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

    async def sum_up(
        self,
        view: View,
        groups: Sequence[Group],
        allowance: Allowance,
        *,
        sent: Request,
        focus: str = "",
        outdated: Collection[str] = (),
    ) -> SummedUp:
        """The summary of these groups; a warning and no text if the model failed.

        `sent` is the request as it would be sent now. `outdated` names are not listed.
        """
        spent: list[Spent] = []
        model = self._model or sent.model
        fault = "the answer was empty"
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self._ask(view, groups, allowance, sent, focus, spent)
        except ProviderError as error:
            answer, fault = "", str(error)
        except TimeoutError:
            answer, fault = "", f"it took longer than {self._timeout_s:g} s"
        if not answer.strip():
            warning = f"The summary by {model} failed ({fault}); an index takes its place."
            return SummedUp("", tuple(spent), warning)
        return SummedUp(self._write(view, groups, answer, allowance.summary, outdated), tuple(spent))

    # --- the model call ---

    async def _ask(
        self, view: View, groups: Sequence[Group], allowance: Allowance, sent: Request, focus: str, spent: list[Spent]
    ) -> str:
        """The model's answer. Each call is appended to `spent`, so that it is billed even if a later one fails."""
        cap, rate = allowance.summary, allowance.rate
        ask = self._prompt or ASK
        if focus:
            ask = f"{ask}\nPay most attention to: {focus}"
        if self._model not in (None, sent.model):
            rate = self._info.tokens_per_o200k  # what bills taught is about the other model
        output = min(self._info.max_output, max(256, int(cap * rate)))
        window = int((self._window() or UNKNOWN_WINDOW) / rate)
        shared = self._shared(view, groups, sent, ask, output, window)
        if shared is not None:
            return await self._answer(shared, spent)
        room = input_budget(window, output) - self._estimator.text(ask) - cap - 200
        answer, before = "", view.summary
        for piece in _pieces([transcript(group) for group in groups], max(200, room), self._estimator):
            answer = await self._answer(self._request(self._model or sent.model, piece, before, ask, output), spent)
            before = answer or before
        return answer

    async def _answer(self, request: Request, spent: list[Spent]) -> str:
        reply = await self._call(request)
        spent.append(self._spent(request.model, reply.usage))
        return reply.message.text

    def _shared(
        self, view: View, groups: Sequence[Group], sent: Request, ask: str, output: int, window: int
    ) -> Request | None:
        """The question, appended to the request that would be sent now, if that is possible and cheaper.

        The session's own model has most of that request in its cache, at a tenth of the price of the bare text.
        """
        total = view.tokens() + self._estimator.text(ask) + 8
        hidden = sum(map(view.group_tokens, groups))
        room = window - total
        if self._model not in (None, sent.model) or room < output // 2 or total * READ_PRICE >= hidden:
            return None
        return msgspec.structs.replace(sent, messages=(*sent.messages, say("user", ask)), max_output=min(output, room))

    def _request(self, model: str, piece: str, before: str, ask: str, output: int) -> Request:
        so_far = f"<so_far>\n{before}\n</so_far>\n\n" if before else ""
        system = Section("system", "pinned", "You sum up conversations exactly and briefly.")
        message = say("user", f"{so_far}<conversation>\n{piece}\n</conversation>\n\n{ask}")
        return Request(model, (system,), (message,), max_output=output)

    def _spent(self, model: str, usage: Usage) -> Spent:
        dollars = self._price(model, usage)
        return Spent(model, usage, "" if dollars is None else str(dollars), purpose="summary")

    # --- writing ---

    def _write(self, view: View, groups: Sequence[Group], answer: str, cap: int, outdated: Collection[str]) -> str:
        """The answer, merged with the facts extracted from the same messages and with the previous summary."""
        before = parse(view.summary)
        if self._prompt:
            return fitted(Summary(answer, previous=before.flat), cap, self._estimator)
        traces = [self._digest.trace(group) for group in groups]
        notes = [note for trace in traces for note in trace.notes]
        touched = [note.text for note in notes if note.kind in ("changed", "read")]
        named = [path for group in groups if group.kind == "said" for path in file_names(group.item.message.text)]
        open_before = without(before.pending, lines(tagged(answer, "done_work")))
        text = tagged(answer, "summary") or re.sub(r"<(\w+)>.*?</\1>", "", answer, flags=re.S).strip() or answer
        summary = Summary(
            text=text,
            files=merged(before.files, named, touched, paths(tagged(answer, "key_files"))),
            commands=merged(before.commands, [f"{note.text} #{note.at}" for note in notes if note.kind == "command"]),
            tools=merged(before.tools, [tool for trace in traces for tool in trace.tools]),
            pending=merged(open_before, _hints(groups), lines(tagged(answer, "pending_work"))),
            decisions=merged(before.decisions, lines(tagged(answer, "decisions"))),
            previous=before.flat,
        )
        body = fitted(summary, cap, self._estimator)
        room = cap - self._estimator.text(body) - self._estimator.text(names_frame())
        hidden = [group for group in view.hidden if group.at not in view.omitted]
        hidden = sorted((*hidden, *groups), key=lambda group: group.place)
        skipped = {name.removeprefix("./") for name in identifiers(body)} | self._digest.unused(hidden, outdated)
        return with_names(body, self._digest.names(hidden, room, skipped=skipped))


def transcript(group: Group) -> str:
    """A group as a readable transcript."""
    paragraphs = []
    for item in group.items:
        for block in item.message.blocks:
            match block:
                case Text(text):
                    paragraphs.append(f"{item.message.role}: {text}")
                case ToolCall(name=name, args=args):
                    paragraphs.append(f"[call {name} {encode(args).decode()}]")
                case ToolResult(name=name, content=content, is_error=failed):
                    text = "\n".join(part.text for part in content if isinstance(part, Text))
                    paragraphs.append(f"[{'error' if failed else 'result'} of {name}]\n{text}")
    return "\n".join(paragraphs)


def _pieces(texts: Sequence[str], room: int, estimator: Estimator) -> Iterator[str]:
    """The texts, in order, in as few pieces of at most `room` tokens as possible, and at most a dozen."""
    share = room if sum(map(estimator.text, texts)) <= room * PIECES else max(64, room * PIECES // (2 * len(texts)))
    piece: list[str] = []
    spare = room
    for text in texts:
        short = estimator.clip(text, min(room, share) - 2, marker="\n[…]\n")
        size = estimator.text(short) + 2
        if piece and size > spare:
            yield "\n\n".join(piece)
            piece, spare = [], room
        piece.append(short)
        spare -= size
    if piece:
        yield "\n\n".join(piece)


def _hints(groups: Iterable[Group]) -> list[str]:
    """Sentences of the conversation about pending work; the last few are most likely still true.

    Only the sentence itself: its neighbours may contain values that were replaced since.
    """
    texts = (group.item.message.text for group in groups if group.kind == "said")
    parts = (text[part.start : part.end] for text in texts for part in sentences(text) if not part.pasted)
    return [line(part.strip()) for part in parts if _PENDING.search(part)][-5:]
