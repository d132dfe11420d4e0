"""Any event ever recorded can be recalled word for word, in a later process and from another machine."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from ra.context.recall import written
from ra.core.facts import Checkpointed, Said, TimelineEvent
from ra.core.messages import say
from ra.core.value import encode
from ra.providers.script import Call, Step
from ra.testing.server import LoopbackServer
from ra.timeline.opening import copy_session, open_store
from ra.timeline.store import Store
from tests.cli.conftest import Shell
from tests.postgres import PostgresServer
from tests.strategies import timelines

READER = """
import json, re, sys
from pathlib import Path
from ra.context.recall import recall
from ra.timeline.opening import open_store

MORE = re.compile(r'\\n\\[\\d+ of \\d+ characters; recall\\("([^"]+)"\\) goes on\\]\\Z')

def whole(ref, timeline):
    text = ""
    while ref:
        page = recall(ref, timeline)
        more = MORE.search(page)
        text, ref = text + (page[:more.start()] if more else page), more and more[1]
    return text

store = open_store(Path(), sys.argv[1])
timeline = store.open(sys.argv[2], write=False)
refs = [f"#{event.at}" for event in timeline.events()] + sys.argv[3:]
json.dump({ref: whole(ref, timeline) for ref in refs}, sys.stdout)
"""


def recalled(address: str, session: str, *refs: str) -> dict[str, str]:
    """What a process of its own reads back of each event, page by page, and behind `refs`."""
    done = subprocess.run([sys.executable, "-c", READER, address, session, *refs], capture_output=True, check=True)
    texts: dict[str, str] = json.loads(done.stdout)
    return texts


def expected(events: list[TimelineEvent]) -> dict[str, str]:
    return {f"#{event.at}": f"#{event.at} {written(event.fact)}" for event in events}


@pytest.fixture
def machines(tmp_path: Path, postgres: PostgresServer) -> Iterator[tuple[Store, str]]:
    """A store of another machine, and its address."""
    store = open_store(tmp_path, address := postgres.fresh())
    yield store, address
    store.close()


@settings(deadline=None, max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(timelines(max_size=30))
def test_a_later_process_recalls_every_event(events: list[TimelineEvent]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        address = f"{folder}/ra.db"
        store = open_store(Path(folder))
        timeline = store.create("/p")
        timeline.append(Said(say("user", "long " * 20_000)), *(event.fact for event in events))
        ref = timeline.keep(f"outside the log {'é' * 30_000}")
        recorded = list(timeline.events())
        timeline.close()
        store.close()
        texts = recalled(address, timeline.session, ref)
    assert texts.pop(ref) == f"outside the log {'é' * 30_000}"
    assert texts == expected(recorded)


def test_another_machine_recalls_every_event_through_a_database(tmp_path: Path, machines: tuple[Store, str]) -> None:
    database, address = machines
    store = open_store(tmp_path)
    timeline = store.create("/p")
    timeline.append(*(Said(say("user", f"Number {number}: " + "语" * 9000)) for number in range(5)))
    timeline.append(Checkpointed("truncate", "manual", hidden=((2, 4),), marker="[gap]"))
    ref = timeline.keep("outside the log")
    recorded = list(timeline.events())
    timeline.close()
    copy_session(store, timeline.session, database)
    texts = recalled(address, timeline.session, ref)
    assert texts.pop(ref) == "outside the log"
    assert texts == expected(recorded)


def test_another_machine_recalls_what_was_hidden_after_an_export(tmp_path: Path) -> None:
    here, there = (tmp_path / "here", tmp_path / "there")
    here.mkdir()
    there.mkdir()
    old, new = Shell(here), Shell(there)
    for name in "abcdef":
        (old.project / name).write_text("".join(f"line {number}: {name}-{number * 7919}\n" for number in range(300)))
    steps = [*(Step(calls=(Call("Read", {"path": name}),)) for name in "abcdef"), Step(text="Done.")]
    with LoopbackServer("anthropic", steps) as server:
        old.serve(server)
        small = ("--set", "agent.compaction.contextWindow=16000", "--set", "agent.compaction.strategy=digest")
        assert old.ra(*small, "Read all of it. The port is 8080.").returncode == 0
    store = open_store(here / "data")
    timeline = store.open(store.sessions()[0].id, write=True)
    ref = timeline.keep("outside the log")
    recorded = list(timeline.events())
    timeline.close()
    assert any(isinstance(event.fact, Checkpointed) for event in recorded)
    assert old.ra("sessions", "export", timeline.session, "--to", str(tmp_path / "s.jsonl")).returncode == 0
    session = new.ra("sessions", "import", str(tmp_path / "s.jsonl")).stdout.decode().split("\t")[0]
    texts = recalled(str(there / "data/ra.db"), session, ref)
    assert texts.pop(ref) == "outside the log"
    assert texts == expected(recorded)
    assert encode(new.ra("recall", "--session", session, "#2").stdout.decode()) == encode(
        old.ra("recall", "#2").stdout.decode()
    )
