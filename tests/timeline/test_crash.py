"""Does everything that was acknowledged survive a kill at any moment?"""

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ra.core.errors import SessionInUse
from ra.core.facts import Said
from ra.core.messages import say
from ra.timeline.sqlite import SqliteStore

CHILD = """
import sys
from pathlib import Path
from ra.core.facts import Said, Spent
from ra.core.messages import say
from ra.core.model import Usage
from ra.timeline.sqlite import SqliteStore

store = SqliteStore(Path(sys.argv[1]))
timeline = store.open(sys.argv[2], write=True) if len(sys.argv) > 2 else store.create("/p")
print(timeline.session, flush=True)
number = sum(1 for _ in timeline.events()) + 1
while True:
    timeline.append(Said(say("user", f"word{number} " + "filler " * (number % 400))), Spent("m", Usage(number), "0.1"))
    timeline.keep(f"text {number}")
    print(number, flush=True)
    number += 2
"""


def killed_after(path: Path, session: str, seconds: float) -> tuple[str, int]:
    """Let a child write until it is killed; return its session and the last number that it acknowledged."""
    command = [sys.executable, "-c", CHILD, str(path), *([session] if session else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        session = child.stdout.readline().strip()
        timer = threading.Timer(seconds, child.kill)
        timer.start()
        acknowledged = [line for line in child.stdout if line.endswith("\n")]
        timer.join()
    return session, int(acknowledged[-1]) if acknowledged else 0


def test_a_kill_at_a_random_moment_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    path, session, last = tmp_path / "timeline.db", "", 0
    chance = random.Random(7)
    for _ in range(int(os.environ.get("RA_KILLS", "30"))):
        if chance.random() < 0.2:
            session, last = "", 0
        session, acknowledged = killed_after(path, session, chance.random() * 0.1)
        store = SqliteStore(path)
        if session not in {info.id for info in store.sessions()}:
            assert not acknowledged  # killed before its first append
            session = ""
            continue
        last = max(last, acknowledged)
        events = list(store.open(session, write=False).events())
        assert [event.at for event in events] == list(range(1, len(events) + 1))
        assert len(events) % 2 == 0  # the two facts of one append are both there
        assert len(events) >= last + 1
        prompts = [event.fact.message.text for event in events[::2] if isinstance(event.fact, Said)]
        assert [text.split()[0] for text in prompts] == [f"word{number}" for number in range(1, len(events), 2)]
        if last:
            timeline = store.open(session, write=True)  # the dead writer's lock is free
            assert [hit.at for hit in timeline.search(f"word{last}", limit=1)] == [last]
            assert f"text {last}" in timeline.texts()
            timeline.close()
        store.close()


def test_only_one_of_many_processes_writes_a_session(tmp_path: Path) -> None:
    path = tmp_path / "timeline.db"
    with subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        session = child.stdout.readline().strip()
        child.stdout.readline()
        store = SqliteStore(path)
        with pytest.raises(SessionInUse, match=str(child.pid)):
            store.open(session, write=True)
        assert list(store.open(session, write=False).events())  # readers are not held up
        own = store.create("/p")
        assert [event.at for event in own.append(Said(say("user", "at the same time")))] == [1]
        child.kill()
    store.open(session, write=True).close()


STARTER = """
import sys
from pathlib import Path
from ra.core.facts import Said
from ra.core.messages import say
from ra.timeline.sqlite import SqliteStore

sys.stdin.read()
for number in range(20):
    timeline = SqliteStore(Path(sys.argv[1])).create("/p")
    timeline.append(Said(say("user", f"hello {number}")))
"""


def test_many_processes_may_make_the_store_at_the_same_moment(tmp_path: Path) -> None:
    path = tmp_path / "new" / "timeline.db"
    children = [
        subprocess.Popen([sys.executable, "-c", STARTER, str(path)], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    time.sleep(0.5)
    for child in children:
        assert child.stdin is not None
        child.stdin.close()
        child.stdin = None
    assert [(child.communicate()[1], child.returncode) for child in children] == [(b"", 0)] * 4
    assert len(SqliteStore(path).sessions()) == 80
