"""Transcripts with bills, in the format of pi: each call reads a file, is cached as providers do, and is priced."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ra.context.tokens import Estimator
from ra.core.model import Usage

MODEL = "claude-opus-4-5"
START = 1_790_000_000.0
BASE = 2500  # tokens of the system prompt and the tools
PAUSE_BEFORE = 12  # an hour after the call before, the user goes on
TOOLS = ("read", "bash", "read", "grep")
LOST_AT = 17  # the cache of this call is lost without a reason


def write(
    path: Path, calls: int = 24, *, words: str = "", result: str = "", start: float = START, files: int = 20
) -> Path:
    """A session of so many calls. `words` is what the user says, `result` what a tool answers."""
    lines: list[dict[str, Any]] = [{"type": "session", "id": path.stem, "cwd": "/home/ada/shop", "modelId": MODEL}]
    now, total, before = start, BASE, 0
    estimator = Estimator()

    def add(message: dict[str, Any]) -> None:
        moment = datetime.fromtimestamp(now, UTC).isoformat().replace("+00:00", "Z")
        lines.append({"type": "message", "timestamp": moment, "message": message | {"timestamp": int(now * 1000)}})

    question = words or "Read the orders and tell me what stands out."
    add({"role": "user", "content": [{"type": "text", "text": question}]})
    total += estimator.text(question)
    for call in range(calls):
        now += 20
        cold = call in (0, PAUSE_BEFORE, LOST_AT)
        usage = Usage(3, 60, 0 if cold else before, total - 3 if cold else total - before - 3)
        cost = (5 * 3 + 25 * 60 + 0.5 * usage.cache_read + 6.25 * usage.cache_write) / 1e6  # its list price
        before = total - 3
        id = f"call_{call}"
        last = call in (calls - 1, PAUSE_BEFORE - 1)
        tool = TOOLS[call % len(TOOLS)]
        arguments = {"path": f"orders/{call % files}.csv"}
        block = (
            {"type": "text", "text": "Order 4711 was refunded."}
            if last
            else {"type": "toolCall", "id": id, "name": tool, "arguments": arguments}
        )
        counts = {"input": 3, "output": 60, "cacheRead": usage.cache_read, "cacheWrite": usage.cache_write}
        add(
            {
                "role": "assistant",
                "content": [block],
                "model": MODEL,
                "provider": "anthropic",
                "stopReason": "stop" if last else "toolUse",
                "usage": counts | {"cost": {"total": cost}},
            }
        )
        if last:
            now += 3700
            add({"role": "user", "content": [{"type": "text", "text": "Go on."}]})
            total += 70
            continue
        now += 2
        rows = 60 + call % 20 * 37 % 420
        text = result or "\n".join(f"{number},{call % files},shipped" for number in range(rows))
        add({"role": "toolResult", "toolCallId": id, "toolName": tool, "content": [{"type": "text", "text": text}]})
        total += 60 + round(1.25 * estimator.text(text))
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    return path
