"""Reads the events of OpenHands: a list of actions and observations, each with its source and its number."""

from pathlib import Path
from typing import Any

from ra.core.facts import Said, Spent
from ra.core.messages import Message, Text, ToolResult
from ra.core.model import Section, Usage
from ra.timeline.importers.blocks import call, contents_of
from ra.timeline.importers.lines import Skips, elements
from ra.timeline.importers.transcript import Transcript, TranscriptDraft, count, members, modified, moment, text

FORMAT = "openhands"


def recognises(entry: dict[str, Any]) -> bool:
    return "source" in entry and ("action" in entry or "observation" in entry) and "id" in entry


def read(path: Path) -> list[Transcript]:
    draft, skips = TranscriptDraft(path.stem, FORMAT, time=modified(path)), Skips()
    reader = _Reader(draft)
    for number, element in elements(path, skips):
        event = members(element)
        if recognises(event):
            reader.take(event)
        else:
            skips.add(number, "not an OpenHands event", unit="element")
    return [draft.finished(skips)]


class _Reader:
    def __init__(self, draft: TranscriptDraft) -> None:
        self._draft = draft
        self._total = Usage()

    def take(self, event: dict[str, Any]) -> None:
        time, args = moment(event.get("timestamp")), members(event.get("args"))
        about = members(event.get("tool_call_metadata"))
        id = text(about.get("tool_call_id")) or f"event-{event.get('id')}"
        match event.get("source"), event.get("action"):
            case _, "system":
                content = text(args.get("content")) or text(event.get("message"))
                self._draft.sections = (Section("system", "pinned", content),)
            case "user", "message":
                words = text(args.get("content")) or text(event.get("message"))
                self._draft.add(time, Said(Message("user", (Text(words),))))
            case "agent", "message":
                words = text(args.get("content")) or text(event.get("message"))
                self._speak(time, event, (Text(words),))
            case "agent", str() as action if action not in ("recall", "change_agent_state", "condensation"):
                thought = text(args.get("thought"))
                rest = {key: value for key, value in args.items() if key != "thought"}
                made = call(id, text(about.get("function_name")) or action, rest)
                self._speak(time, event, (*((Text(thought),) if thought else ()), made))
            case _, None:
                self._observe(time, event, id if about else f"event-{event.get('cause')}")
            case _:
                pass  # what the program did by itself

    def _observe(self, time: float | None, event: dict[str, Any], id: str) -> None:
        failed = event.get("observation") == "error"
        self._draft.answer(time, ToolResult(id, "", contents_of(text(event.get("content"))), failed))

    def _speak(self, time: float | None, event: dict[str, Any], blocks: tuple[Any, ...]) -> None:
        reply = members(members(event.get("tool_call_metadata")).get("model_response"))
        model = text(reply.get("model"))
        self._draft.speak(time, Message("assistant", blocks, model=model))
        metrics = members(event.get("llm_metrics"))
        model_total = members(metrics.get("accumulated_token_usage"))
        if model_total:
            prompt, read = count(model_total.get("prompt_tokens")), count(model_total.get("cache_read_tokens"))
            written, output = count(model_total.get("cache_write_tokens")), count(model_total.get("completion_tokens"))
            total = Usage(max(0, prompt - read - written), output, read, written)
            spent = Usage(
                max(0, total.input - self._total.input),
                max(0, total.output - self._total.output),
                max(0, total.cache_read - self._total.cache_read),
                max(0, total.cache_write - self._total.cache_write),
            )
            if spent != Usage():
                self._draft.add(time, Spent(text(model_total.get("model")) or model, spent))
            self._total = total
