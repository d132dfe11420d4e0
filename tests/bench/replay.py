"""How long does a replay through all strategies take? Of the transcript in RA_TRACE, or of a made-up session."""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ra.context.tokens import Estimator
from ra.core.facts import Said
from ra.core.messages import Message
from ra.timeline.importers import read
from tests.bench_context.shapes import SHAPES, session

RA = str(Path(sys.executable).parent / "ra")
LONG = SHAPES[-1]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(os.environ.get("RA_TRACE", "")) if os.environ.get("RA_TRACE") else made_up(Path(folder))
        counted = counting(file)
        began = time.monotonic()
        done = subprocess.run([RA, "bench", "context", "--trace", file, "--json"], capture_output=True, check=True)
        took = time.monotonic() - began
    trace = max(json.loads(done.stdout)["traces"], key=lambda one: one["calls"])
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(
        f"replay, {len(trace['rows'])} strategies      {took:7.1f} s    {took / counted:4.1f} × counting its text "
        f"once, {trace['calls']} calls, at most {peak:.0f} MB   (aim ≤ 20 s, 500 MB)"
    )


def made_up(folder: Path) -> Path:
    """A session of 490 calls, as a list of messages."""
    model = "claude-opus-4-5"
    said = [event.fact.message for event in session(LONG, model=model) if isinstance(event.fact, Said)]
    file = folder / "made-up.json"
    file.write_text(json.dumps([openai(message) for message in said]))
    return file


def openai(message: Message) -> dict[str, object]:
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.args)}}
        for call in message.calls
    ]
    if message.role == "tool":
        (result,) = message.blocks
        return {"role": "tool", "tool_call_id": result.call_id, "content": result.content[0].text}
    return {"role": message.role, "content": message.text} | ({"tool_calls": calls} if calls else {})


def counting(file: Path) -> float:
    estimator = Estimator()
    estimator.text("loaded")
    messages = [event.fact.message for one in read(file) for event in one.events if isinstance(event.fact, Said)]
    began = time.monotonic()
    estimator.messages(messages)
    return time.monotonic() - began


if __name__ == "__main__":
    main()
