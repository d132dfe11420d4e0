"""`kill -9` at any moment of a run: what was said is kept, what was done is not done again, and the session goes on."""

import json
import os
import random
import subprocess
import threading
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

from ra.core.facts import Said, TimelineEvent
from ra.core.messages import ToolResult
from ra.core.value import JsonObject
from ra.providers.script import Call, Step
from ra.testing.server import LoopbackServer
from ra.timeline.folds import INTERRUPTED
from ra.timeline.sqlite import SqliteStore
from tests.cli.conftest import RA, Shell

KILLS = int(os.environ.get("RA_KILLS", "12"))
STEPS = 9
DONE = "All done."
UNBOXED = ("--sandbox", "off", "--allow", "Bash")  # what a box does is tested elsewhere


def calls_of(number: int) -> tuple[Call, ...]:
    """Each step leaves a line in a file; every third one has company, so that a kill can fall between two calls."""
    count = Call("Bash", {"command": f"echo {number} >> effects"}, id=f"count-{number}")
    write = Call("Write", {"path": f"file-{number}", "content": f"{number}\n"}, id=f"write-{number}")
    look = Call("LS", {"path": "."}, id=f"look-{number}")
    return (write, count, look) if number % 3 == 0 else (count,)


def answer(body: JsonObject) -> Step:
    """The step after those that the conversation holds already: a run that is resumed goes on where it was."""
    number = sum(message["role"] == "assistant" for message in body["messages"])
    return Step(text=f"Step {number}.", calls=calls_of(number), pace_s=0.002) if number < STEPS else Step(text=DONE)


class Ended:
    """What a process told before it ended, and whether it ended by itself."""

    def __init__(self, shell: Shell, args: list[str], after_s: float) -> None:
        command = [RA, "--output-format", "stream-json", "--write", *UNBOXED, *args]
        began = time.monotonic()
        with subprocess.Popen(
            command, cwd=shell.project, env=shell.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        ) as child:
            assert child.stdout is not None
            timer = threading.Timer(after_s, child.kill)
            timer.start()
            written = child.stdout.read()
            child.wait()
            timer.cancel()
        self.seconds = time.monotonic() - began
        self.code = child.returncode
        whole = written[: written.rfind(b"\n") + 1]
        self.told: list[dict[str, Any]] = [json.loads(line) for line in whole.splitlines()]


def recorded(shell: Shell) -> list[TimelineEvent]:
    """The events of the latest session; none when nothing has been stored."""
    store = SqliteStore(Path(shell.env["RA_HOME"]) / "ra.db")
    latest = store.latest(str(shell.project))
    events = list(store.open(latest, write=False).events()) if latest else []
    store.close()
    return events


def unmarked(value: Any) -> Any:
    """A part of a request without its cache marks, which move on with the conversation."""
    if isinstance(value, list):
        return [unmarked(item) for item in value]
    if isinstance(value, dict):
        return {key: unmarked(item) for key, item in value.items() if key != "cache_control"}
    return value


def spoken(messages: list[Any]) -> list[Any]:
    """The blocks of a request one after the other: what two messages hold may later stand in one."""
    return [(message["role"], block) for message in unmarked(messages) for block in message["content"]]


def check_told(events: list[TimelineEvent], ended: Ended) -> None:
    """Whatever the process had told its reader was on the disk before."""
    messages = [event.fact.message for event in events if isinstance(event.fact, Said)]
    answered = [block.call_id for message in messages for block in message.blocks if isinstance(block, ToolResult)]
    told = [event["call"]["id"] for event in ended.told if event.get("type") == "tool-ended"]
    assert [id for id in told if id not in answered] == []
    if ended.told and "answer" in ended.told[-1]:
        assert messages[-1].text == ended.told[-1]["answer"] == DONE


def check_effects(shell: Shell, events: list[TimelineEvent]) -> None:
    """Nothing was done twice, and what has a result was done once."""
    effects = shell.project / "effects"
    done = Counter(effects.read_text().split()) if effects.exists() else Counter()
    assert [number for number, times in done.items() if times > 1] == []
    for event in events:
        if isinstance(event.fact, Said) and event.fact.message.role == "tool":
            [block] = event.fact.message.blocks
            assert isinstance(block, ToolResult)
            kind, number = block.call_id.split("-")
            if not block.is_error:
                assert done[number] == 1 or kind != "count"
            else:
                assert [part.text for part in block.content if hasattr(part, "text")] == [INTERRUPTED]


def test_kills_at_random_moments_lose_nothing_repeat_nothing_and_brick_nothing(tmp_path: Path) -> None:
    chance = random.Random(11)
    kills = finished = interrupted = 0
    typical_s = 0.0
    while kills < KILLS or not finished:
        folder = tmp_path / str(finished)
        folder.mkdir()
        shell = Shell(folder)
        with LoopbackServer("anthropic", answer) as server:
            shell.serve(server)
            typical_s = typical_s or uninterrupted_s(tmp_path, server)
            server.requests.clear()
            while True:
                events = recorded(shell)
                args = ["-c", "Go on."] if events else ["Count to nine."]
                ended = Ended(shell, args, typical_s * chance.random() if kills < KILLS else 60)
                after = recorded(shell)
                assert after[: len(events)] == events
                check_told(after, ended)
                check_effects(shell, after)
                if ended.code == 0:
                    typical_s = typical_s if events else min(typical_s, ended.seconds)
                    break
                assert ended.code == -9
                kills += 1
            assert ended.told[-1]["answer"] == DONE
            interrupted += sum(INTERRUPTED in str(event.fact) for event in after)
            requests = [spoken(body["messages"]) for body in server.bodies]
            assert all(new[: len(old)] == old for old, new in pairwise(requests))  # nothing that was sent is lost
        finished += 1
    print(f"{kills} kills, {finished} sessions finished, {interrupted} calls were interrupted")


def uninterrupted_s(folder: Path, server: LoopbackServer) -> float:
    (folder / "whole").mkdir()
    shell = Shell(folder / "whole")
    shell.serve(server)
    ended = Ended(shell, ["Count to nine."], 60)
    assert (ended.code, ended.told[-1]["answer"]) == (0, DONE)
    assert (shell.project / "effects").read_text().split() == [str(number) for number in range(STEPS)]
    return ended.seconds
