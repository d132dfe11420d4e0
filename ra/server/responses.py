"""Builds the answers about a run: an object at the end, and on request server-sent events before it."""

import msgspec
from msgspec import UNSET

from ra.core.events import Event, Retrying, RunEnded, TextDelta, ThinkingDelta, ToolEnded, ToolStarted, TurnEnded
from ra.core.messages import Text
from ra.core.model import TokenCounts
from ra.core.value import JsonObject, encode
from ra.server.bodies import AnswerBody
from ra.server.queue import TaskAnswer

MAX_RESULT = 2_000  # characters of a tool's result in an event

_ENDS = {
    "empty": "The model gave an empty answer.",
    "refused": "The model refused to answer.",
    "interrupted": "Interrupted: the server was stopped. What was done so far is in the session.",
}
_CANCELLED = "Cancelled. What was done so far is in the session."


def answer(end: RunEnded, *, strategy: str, cancelled: bool = False) -> TaskAnswer:
    """The body of `POST /task`. A failed run reports its `error`; only an interrupted one has a status."""
    ending = _CANCELLED if cancelled and end.outcome == "interrupted" else _ENDS.get(end.outcome)
    body = AnswerBody(
        content=end.answer,
        duration=round(end.seconds, 3),
        usage=TokenCounts.of(end.usage),
        cost=float(end.dollars) if end.dollars else None,
        session_id=end.session,
        strategy=strategy,
        error=ending or end.error or UNSET,
    )
    return TaskAnswer(503 if end.outcome == "interrupted" else 200, msgspec.to_builtins(body))


def frames(event: Event) -> bytes:
    """The event as server-sent events; empty if clients need not see it."""
    match event:
        case TextDelta(text):
            return frame({"type": "text", "delta": text})
        case ThinkingDelta(text):
            return frame({"type": "thinking", "delta": text})
        case Retrying(restart=True):
            # The answer starts over: clients must discard what they have received of it.
            return frame({"type": "text", "delta": "", "restart": True})
        case ToolStarted(call):
            return frame({"type": "tool", "id": call.id, "name": call.name, "status": "started", "args": call.args})
        case ToolEnded(call, result, seconds):
            text = " ".join(block.text for block in result.content if isinstance(block, Text))
            event_body = {
                "type": "tool",
                "id": call.id,
                "name": call.name,
                "status": "ended",
                "isError": result.is_error,
            }
            return frame(event_body | {"result": text[:MAX_RESULT], "duration": round(seconds, 3)})
        case TurnEnded(model=model, usage=spent, dollars=dollars):
            counts = msgspec.to_builtins(TokenCounts.of(spent))
            return frame({"type": "usage", "model": model} | counts | {"cost": float(dollars) if dollars else None})
        case _:
            return b""


def last_frames(ended: TaskAnswer, *, heard: bool = True) -> bytes:
    """The end of a stream. A client that received no part of the answer gets all of it here."""
    text = ended.body.get("content", "")
    text_frame = b"" if heard or not text else frame({"type": "text", "delta": text})
    error = ended.body.get("error")
    return (
        text_frame + (frame({"type": "error", "error": error}) if error else b"") + frame({"type": "done"} | ended.body)
    )


def frame(data: JsonObject) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (str(data["type"]).encode(), encode(data))
