"""Read rollouts of Codex.

A file of lines `{timestamp, type, payload}`; in the oldest form the payloads stand bare, after a header, without
times. An answer is a run of items (reasoning, text, calls) that ends with something of another kind.
"""

from pathlib import Path
from typing import Any

from ra.core.facts import Edited, Failed, Interrupted, Rotated, Said, Spent
from ra.core.messages import Block, Message, Text, Thinking, ToolResult
from ra.core.model import Section, Usage
from ra.timeline.importers.blocks import blocks_of, call, contents_of
from ra.timeline.importers.lines import Skips, objects
from ra.timeline.importers.transcript import Transcript, TranscriptDraft, count, items, members, modified, moment, text

FORMAT = "codex"
_ENVELOPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call")
_ITEMS = ("message", "reasoning", "function_call_output", "custom_tool_call_output", *_CALLS)
_USAGE = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens")  # the first: all of it


def recognises(entry: dict[str, Any]) -> bool:
    if entry.get("type") in _ENVELOPES:
        return isinstance(entry.get("payload"), dict)
    if "type" not in entry:
        return "record_type" in entry or ("id" in entry and "timestamp" in entry and "role" not in entry)
    return entry["type"] in _ITEMS and ("role" in entry or "call_id" in entry or "summary" in entry)


def read(path: Path) -> list[Transcript]:
    reader, skips = _Reader(path), Skips()
    for number, entry in objects(path, skips):
        if problem := reader.take(entry):
            skips.add(number, problem)
    reader.flush()
    return [reader.draft.finished(skips)]


class _Reader:
    def __init__(self, path: Path) -> None:
        self.draft = TranscriptDraft(path.stem, FORMAT, time=modified(path))
        self._model = ""
        self._blocks: list[Block] = []  # the answer that is being read
        self._time: float | None = None
        self._total: tuple[int, ...] = (0, 0, 0, 0)

    def take(self, entry: dict[str, Any]) -> str:
        """Read one line. Returns what is wrong with it, if anything."""
        time, payload = moment(entry.get("timestamp")), members(entry.get("payload"))
        match entry.get("type"):
            case "session_meta":
                self._header(time, payload)
            case "turn_context":
                self._model = text(payload.get("model")) or self._model
            case "response_item":
                return self._item(time, payload)
            case "event_msg":
                self._event(time, payload)
            case "compacted":
                self.flush()
                history = "\n\n".join(_line(members(item)) for item in items(payload.get("replacement_history")))
                summary = text(payload.get("message")) if not history.strip() else history
                self.draft.add(time, Rotated("compaction", summary, self.draft.next_at))
            case None if "id" in entry or "instructions" in entry:
                self._header(time, entry)
            case None if "record_type" in entry:
                pass
            case str() as kind if kind in _ITEMS:
                return self._item(time, entry)
            case str() as kind:
                return f"unknown entry {kind!r}"
            case _:
                return "no entry of a rollout"
        return ""

    def flush(self) -> None:
        """The answer is complete."""
        if self._blocks:
            self.draft.speak(self._time, Message("assistant", tuple(self._blocks), model=self._model))
            self._blocks = []

    def _header(self, time: float | None, raw: dict[str, Any]) -> None:
        self.draft.project = text(raw.get("cwd"))
        self._model = text(raw.get("model")) or self._model
        instructions = text(raw.get("instructions")) or text(members(raw.get("base_instructions")).get("text"))
        if instructions:
            self.draft.sections = (Section("instructions", "pinned", instructions),)
        self.draft.add(moment(raw.get("timestamp")) or time)

    def _item(self, time: float | None, raw: dict[str, Any]) -> str:
        id = text(raw.get("call_id")) or text(raw.get("id"))
        match raw.get("type"):
            case "message" if raw.get("role") == "assistant":
                self._say(time, *blocks_of(raw.get("content")))
            case "message":
                self._input(time, raw)
            case "reasoning":
                parts = [*blocks_of(raw.get("summary")), *blocks_of(raw.get("content"))]
                thought = "\n".join(block.text for block in parts if isinstance(block, Text))
                sealed = text(raw.get("encrypted_content"))
                if thought or sealed:
                    self._say(time, Thinking(thought, sealed, text(raw.get("id"))))
            case "function_call":
                self._say(time, call(id, text(raw.get("name")), raw.get("arguments")))
            case "custom_tool_call":
                self._say(time, call(id, text(raw.get("name")), {"input": text(raw.get("input"))}))
            case "local_shell_call":
                self._say(time, call(id, "shell", members(raw.get("action"))))
            case "function_call_output" | "custom_tool_call_output":
                self._result(time, id, raw.get("output"))
            case str():
                pass  # searches, snapshots and what else the server did by itself
            case _:
                return "an item without a type"
        return ""

    def _say(self, time: float | None, *blocks: Block) -> None:
        self._time = time
        self._blocks += blocks

    def _input(self, time: float | None, raw: dict[str, Any]) -> None:
        self.flush()
        blocks = tuple(blocks_of(raw.get("content")))
        first = blocks[0].text.lstrip() if blocks and isinstance(blocks[0], Text) else ""
        # Instructions and the environment arrive as messages of the user, in tags.
        injected = raw.get("role") != "user" or first.startswith(
            ("<environment_context", "<user_instructions", "# AGENTS")
        )
        self.draft.add(time, Said(Message("user", blocks, name="context" if injected else "")))

    def _result(self, time: float | None, id: str, output: Any) -> None:
        self.flush()
        inner = members(output)
        content = contents_of(inner.get("content", output) if inner else output)
        self.draft.answer(time, ToolResult(id, "", content, inner.get("success") is False))

    def _event(self, time: float | None, raw: dict[str, Any]) -> None:
        match raw.get("type"):
            case "token_count":
                self._bill(time, members(raw.get("info")))
            case "turn_aborted":
                self.flush()
                self.draft.add(time, Interrupted(text(raw.get("reason")) or "aborted"))
            case "error" | "stream_error":
                self.flush()
                self.draft.add(time, Failed("provider", text(raw.get("message"))))
            case "thread_rolled_back":
                self.flush()
                self._roll_back(time, count(raw.get("num_turns")))
            case _:
                pass  # the same as the items, for display

    def _bill(self, time: float | None, info: dict[str, Any]) -> None:
        self.draft.window = count(info.get("model_context_window")) or self.draft.window
        total = _figures(members(info.get("total_token_usage")))
        if not any(total) or total == self._total:
            return  # only the rate limits have changed
        last = _figures(members(info.get("last_token_usage")))
        if not any(last):
            last = tuple(now - then for now, then in zip(total, self._total, strict=True))
        self._total = total
        total_input, cached, cache_write, output = (max(0, tokens) for tokens in last)
        cached = min(cached, total_input)
        cache_write = min(cache_write, total_input - cached)
        self.flush()
        usage = Usage(total_input - cached - cache_write, output, cached, cache_write)
        self.draft.add(time, Spent(self._model, usage))

    def _roll_back(self, time: float | None, turns: int) -> None:
        messages = self.draft.seen()
        while turns and messages:
            message = messages.pop()
            turns -= message.role == "user" and not message.name
        self.draft.add(time, Edited("roll back", tuple(messages)))


def _figures(usage: dict[str, Any]) -> tuple[int, ...]:
    return tuple(count(usage.get(kind)) for kind in _USAGE)


def _line(item: dict[str, Any]) -> str:
    words = "\n".join(block.text for block in blocks_of(item.get("content")) if isinstance(block, Text))
    return f"{text(item.get('role'))}: {words}" if words else ""
