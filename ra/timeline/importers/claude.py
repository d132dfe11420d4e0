"""Read transcripts of Claude Code.

A file of lines. One answer of the model is spread over several lines with the same `message.id`, one per block, each
with the usage so far; results of its tools may stand between them. Sub-agents are conversations of their own.
"""

from pathlib import Path
from typing import Any

from ra.core.facts import Edited, Failed, Rotated, Said, Spent
from ra.core.messages import Block, Message, Text, Thinking, ToolCall, ToolResult
from ra.core.model import Usage
from ra.timeline.importers.blocks import blocks_of
from ra.timeline.importers.lines import Skips, objects
from ra.timeline.importers.transcript import Transcript, TranscriptDraft, count, members, modified, moment, price, text

FORMAT = "claude-code"
_CONVERSATION = ("user", "assistant")
_MARKS = ("uuid", "parentUuid", "sessionId", "session_id", "leafUuid", "requestId")


def recognises(entry: dict[str, Any]) -> bool:
    marked = any(mark in entry for mark in _MARKS)
    if entry.get("type") in _CONVERSATION:
        return "message" in entry and (marked or members(entry["message"]).get("role") == entry["type"])
    return marked and isinstance(entry.get("type"), str) and "payload" not in entry


def read(path: Path) -> list[Transcript]:
    skips = Skips()
    talks: dict[str, _Talk] = {"": _Talk(TranscriptDraft(path.stem, FORMAT, time=modified(path)))}
    threads: dict[str, str] = {}  # uuid → its sub-agent, for lines that do not name it
    for number, entry in objects(path, skips):
        agent = ""
        if entry.get("isSidechain") is True:
            parent = text(entry.get("parentUuid"))
            agent = text(entry.get("agentId")) or threads.get(parent) or text(entry.get("uuid")) or "?"
            threads[text(entry.get("uuid"))] = agent
        if agent not in talks:
            talks[agent] = _Talk(TranscriptDraft(f"{path.stem} ({agent[:8]})", FORMAT, time=modified(path)))
        if problem := talks[agent].take(entry):
            skips.add(number, problem)
    drafts = [talk.draft for talk in talks.values() if talk.draft.events] or [talks[""].draft]
    return [draft.finished(skips if place == 0 else Skips()) for place, draft in enumerate(drafts)]


class _Talk:
    """One conversation: the main one, or that of a sub-agent."""

    def __init__(self, draft: TranscriptDraft) -> None:
        self.draft = draft
        self._places: dict[str, int] = {}  # uuid → position after it
        self._answers: dict[str, int] = {}  # message id → position of the answer
        self._answered = 0  # position of the last answer or prompt
        self._compaction = ""

    def take(self, entry: dict[str, Any]) -> str:
        """Read one line. Returns what is wrong with it, if anything."""
        uuid = text(entry.get("uuid"))
        if uuid and uuid in self._places:
            return ""  # a resumed session repeats the lines of the one before
        self.draft.project = self.draft.project or text(entry.get("cwd"))
        time, message = moment(entry.get("timestamp")), members(entry.get("message"))
        problem = ""
        match entry.get("type"):
            case "assistant":
                self._answer(time, entry, message)
            case "user" if entry.get("isCompactSummary") is True:
                summary = "\n".join(
                    block.text for block in blocks_of(message.get("content")) if isinstance(block, Text)
                )
                self.draft.add(time, Rotated(self._compaction or "compaction", summary, self.draft.next_at))
            case "user":
                self._input(time, entry, blocks_of(message.get("content")))
            case "system" if entry.get("subtype") == "compact_boundary":
                about = members(entry.get("compactMetadata"))
                self._compaction = f"{text(about.get('trigger'))} compaction at {count(about.get('preTokens'))} tokens"
            case str():
                pass  # summaries for the list of sessions, snapshots, hooks, queues: not part of the conversation
            case _:
                problem = "no entry of a transcript"
        if uuid:
            self._places[uuid] = self.draft.next_at
        return problem

    def _input(self, time: float | None, entry: dict[str, Any], blocks: list[Block]) -> None:
        results = [block for block in blocks if isinstance(block, ToolResult)]
        spoken = tuple(block for block in blocks if not isinstance(block, ToolResult))
        for result in results:
            self.draft.answer(time, result)
        if spoken:
            meta = entry.get("isMeta") is True
            if not meta and not results:
                self._set_back(text(entry.get("parentUuid")))
                self._answered = self.draft.next_at
            self.draft.add(time, Said(Message("user", spoken, name="meta" if meta else "")))

    def _set_back(self, parent: str) -> None:
        """A prompt that goes on from before the last answer was typed after going back there."""
        place = self._places.get(parent)
        if place is None or place > self._answered:
            return
        self.draft.add(None, Edited("rewind", tuple(self.draft.seen(before=place))))

    def _answer(self, time: float | None, entry: dict[str, Any], raw: dict[str, Any]) -> None:
        model, blocks = text(raw.get("model")), blocks_of(raw.get("content"))
        if model == "<synthetic>" or entry.get("isApiErrorMessage") is True:
            error_text = "\n".join(block.text for block in blocks if isinstance(block, Text))
            self.draft.add(time, Failed("provider", error_text))
            return
        usage = members(raw.get("usage"))
        spent = Spent(
            model,
            Usage(
                count(usage.get("input_tokens")),
                count(usage.get("output_tokens")),
                count(usage.get("cache_read_input_tokens")),
                count(usage.get("cache_creation_input_tokens")),
            ),
            price(entry.get("costUSD")),
            long_lived=_long_lived(members(usage.get("cache_creation"))),
        )
        id = text(raw.get("id"))
        at = self._answers.get(id, 0) if id else 0
        if not at:
            self._answered = self._answers[id] = self.draft.speak(
                time, Message("assistant", tuple(blocks), model=model)
            )
            self.draft.add(time, spent)
            return
        before, billed = self.draft.events[at - 1].fact, self.draft.events[at].fact
        assert isinstance(before, Said)
        assert isinstance(billed, Spent)
        self.draft.amend(at, Said(Message("assistant", _merged(before.message.blocks, blocks), model=model)))
        # Each line repeats the usage of the whole answer as it was known then: the last one has all the output.
        if spent.usage.output >= billed.usage.output:
            dollars = spent.dollars or billed.dollars
            self.draft.amend(at + 1, Spent(model, spent.usage, dollars, long_lived=spent.long_lived))


def _long_lived(written: dict[str, Any]) -> bool:
    """Was most of what was written to the cache written for an hour?"""
    return count(written.get("ephemeral_1h_input_tokens")) > count(written.get("ephemeral_5m_input_tokens"))


def _merged(before: tuple[Block, ...], new: list[Block]) -> tuple[Block, ...]:
    """What the lines of one answer say together; a line may add a block, repeat one, or repeat it longer."""
    blocks = list(before)
    for block in new:
        place = next((place for place, earlier in enumerate(blocks) if _grown(earlier, block)), None)
        if place is None:
            blocks.append(block)
        else:
            blocks[place] = block
    return tuple(blocks)


def _grown(earlier: Block, new: Block) -> bool:
    match earlier, new:
        case (Text(text=short), Text(text=long)) | (Thinking(text=short), Thinking(text=long)):
            return long.startswith(short)
        case ToolCall(), ToolCall():
            return earlier.id == new.id
        case _:
            return earlier == new
