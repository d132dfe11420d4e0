"""What only a database can do to a store: be away, come back, be read-only, be newer, be asked by many at once."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("psycopg", reason="psycopg is not installed")

import psycopg

from ra.config.show import redacted
from ra.core.errors import SessionInUse, StoreAway, StoreError, UserError
from ra.core.facts import Said
from ra.core.messages import say
from ra.providers.script import Step
from ra.testing.server import LoopbackServer
from ra.timeline.opening import copy_session, open_store
from ra.timeline.postgres import PostgresStore
from ra.timeline.postgres_database import SILENT_S
from ra.timeline.sqlite import SqliteStore
from ra.timeline.store import StoredTimeline
from tests.cli.conftest import Shell
from tests.postgres import PostgresServer
from tests.server.conftest import until


def prompt(text: str) -> Said:
    return Said(say("user", text))


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.fresh()


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    opened = PostgresStore(url)
    yield opened
    opened.close()


def kill_connections(url: str) -> None:
    """As an administrator, a fail-over or a broken line would."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )


def test_a_lost_connection_is_made_again_and_nothing_is_lost_or_twice(store: PostgresStore, url: str) -> None:
    timeline = store.create("/p")
    for number in range(1, 6):
        timeline.append(prompt(f"a{number}"))
        kill_connections(url)
    assert [event.at for event in timeline.events()] == [1, 2, 3, 4, 5]
    other = PostgresStore(url)
    with pytest.raises(SessionInUse):  # the lock came back with the connection
        timeline.append(prompt("a6")) and other.open(timeline.session, write=True)
    other.close()
    timeline.close()


def test_a_session_that_another_process_took_meanwhile_is_not_written(store: PostgresStore, url: str) -> None:
    timeline = store.create("/p")
    timeline.append(prompt("mine"))
    kill_connections(url)
    other = PostgresStore(url)
    theirs = other.open(timeline.session, write=True)
    theirs.append(prompt("theirs"))
    with pytest.raises(SessionInUse):
        timeline.append(prompt("too late"))
    theirs.close()
    other.close()
    assert [event.at for event in timeline.events()] == [1, 2]
    timeline.append(prompt("after them"))
    assert [event.at for event in timeline.events()] == [1, 2, 3]
    timeline.close()


def test_a_dead_process_leaves_no_lock(store: PostgresStore, url: str) -> None:
    session = store.create("/p")
    session.append(prompt("hi"))
    session.close()
    code = (
        "import sys, time; from ra.timeline.postgres import PostgresStore; "
        "t = PostgresStore(sys.argv[1]).open(sys.argv[2], write=True); print('open', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, url, session.session], stdout=subprocess.PIPE)
    assert holder.stdout
    assert holder.stdout.readline() == b"open\n"
    with pytest.raises(SessionInUse):
        store.open(session.session, write=True)
    holder.kill()
    holder.wait()
    holder.stdout.close()
    for _ in range(100):
        try:
            store.open(session.session, write=True).close()
            return
        except SessionInUse:
            pass
    pytest.fail("the lock of a dead process stayed")


def test_what_is_recorded_while_a_server_is_away_is_stored_once_when_it_is_back(
    postgres: PostgresServer, url: str
) -> None:
    store = PostgresStore(url, patience_s=0.2)
    timeline = store.create("/p")
    timeline.append(prompt("before"))
    postgres.stop()
    try:
        timeline.append(prompt("during"))
        ref = timeline.keep("long text")
        assert timeline.kept(ref) == "long text"
        with pytest.raises(StoreAway, match="cannot be reached"):
            timeline.flush()
        with pytest.raises(StoreAway, match="cannot be reached"):
            store.sessions()
    finally:
        postgres.start()
    timeline.flush()
    timeline.append(prompt("after"))
    facts = [(1, prompt("before")), (2, prompt("during")), (3, prompt("after"))]
    assert [(event.at, event.fact) for event in timeline.events()] == facts
    timeline.close()
    other = PostgresStore(url)
    stored = other.open(timeline.session, write=False)
    assert [(event.at, event.fact) for event in stored.events()] == facts
    assert (stored.kept(ref), stored.texts()) == ("long text", ["long text"])
    other.close()
    store.close()


def test_a_server_that_stands_still_is_given_up_and_used_again_when_it_goes_on(
    store: PostgresStore, postgres: PostgresServer
) -> None:
    timeline = store.create("/p")
    timeline.append(prompt("before"))
    with postgres.standing_still():
        timeline.append(prompt("during"))
        with pytest.raises(StoreAway, match="cannot be reached"):
            timeline.flush()
        with pytest.raises(StoreAway):
            store.sessions()
    until(lambda: _saved(timeline))
    timeline.append(prompt("after"))
    assert [event.fact for event in timeline.events()] == [prompt("before"), prompt("during"), prompt("after")]


def _saved(timeline: StoredTimeline) -> bool:
    try:
        timeline.flush()
    except StoreAway:
        return False
    return True


def test_a_server_that_is_only_slow_is_waited_for(store: PostgresStore, url: str) -> None:
    timeline = store.create("/p")
    timeline.append(prompt("one"))
    with psycopg.connect(url) as holder:
        holder.execute("LOCK TABLE ra_events")
        threading.Timer(SILENT_S + 1.5, holder.rollback).start()
        timeline.append(prompt("two"))
        timeline.flush()
    assert len(list(timeline.events())) == 2


def test_a_session_that_is_closed_while_the_server_is_away_says_what_is_lost(
    postgres: PostgresServer, url: str
) -> None:
    store = PostgresStore(url, patience_s=0.2)
    timeline = store.create("/p")
    timeline.append(prompt("before"))
    postgres.stop()
    try:
        timeline.append(prompt("one"), prompt("two"))
        with pytest.raises(StoreError, match="The last 2 events of"):
            timeline.close()
    finally:
        postgres.start()
        store.close()


def test_a_new_session_waits_for_a_server_too(postgres: PostgresServer, url: str) -> None:
    store = PostgresStore(url, patience_s=0.2)
    store.create("/p").append(prompt("the connection is made"))
    timeline = store.create("/p")
    postgres.stop()
    try:
        timeline.append(prompt("first"))
    finally:
        postgres.start()
    timeline.append(prompt("second"))
    assert [(event.at, event.fact) for event in timeline.events()] == [(1, prompt("first")), (2, prompt("second"))]
    timeline.close()
    store.close()


def test_a_database_that_restarts_is_waited_for(store: PostgresStore, postgres: PostgresServer) -> None:
    timeline = store.create("/p")
    timeline.append(prompt("before"))
    postgres.stop()
    restart = threading.Timer(0.5, postgres.start)
    restart.start()
    timeline.append(prompt("during"))
    restart.join()
    assert [(event.at, event.fact) for event in timeline.events()] == [(1, prompt("before")), (2, prompt("during"))]
    timeline.close()


def test_a_read_only_database_is_told(store: PostgresStore, url: str) -> None:
    timeline = store.create("/p")
    timeline.append(prompt("hi"))
    read_only = PostgresStore(f"{url}%20-cdefault_transaction_read_only%3Don")
    assert [info.id for info in read_only.sessions()] == [timeline.session]
    with pytest.raises(StoreError, match=r"read-only\. Nothing of this session was stored\."):
        read_only.create("/p").append(prompt("hi"))
    read_only.close()
    timeline.close()


def test_a_newer_database_is_refused(store: PostgresStore, url: str) -> None:
    store.create("/p").append(prompt("hi"))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE ra_version SET version = 99")
    with pytest.raises(StoreError, match="newer version of ra"):
        PostgresStore(url).sessions()


def test_workers_that_start_together_make_the_tables_once(url: str) -> None:
    def first_write(number: int) -> str:
        store = PostgresStore(url)
        timeline = store.open_chat("/p", "a", "c", f"chat{number % 3}")
        timeline.append(prompt("hi"))
        timeline.close()
        store.close()
        return timeline.session

    def patiently(number: int) -> str:
        while True:
            try:
                return first_write(number)
            except SessionInUse:
                pass

    with ThreadPoolExecutor(8) as pool:
        sessions = list(pool.map(patiently, range(24)))
    assert len(set(sessions)) == 3


def test_sessions_are_copied_both_ways(store: PostgresStore, tmp_path: Path) -> None:
    local = SqliteStore(tmp_path / "ra.db")
    original = local.create("/p", agent="a", channel="c", chat_id="1")
    original.append(prompt("hello"))
    ref = original.keep("long text")
    original.close()
    copy_session(local, original.session, store)
    assert store.info(original.session) == local.info(original.session)
    copied = store.open(original.session, write=False)
    assert list(copied.events()) == list(original.events())
    assert (copied.kept(ref), store.find("a", "c", "1")) == ("long text", original.session)
    with pytest.raises(UserError, match="already"):
        copy_session(local, original.session, store)
    back = SqliteStore(tmp_path / "back.db")
    copy_session(store, original.session, back)
    assert back.info(original.session) == local.info(original.session)


def test_an_address_names_its_store_and_hides_its_password(tmp_path: Path) -> None:
    store = open_store(tmp_path, "postgresql://me:geheim@db.example:5433/ra")
    assert store.place == "postgresql://db.example:5433/ra"
    assert open_store(tmp_path).place == str(tmp_path / "ra.db")
    assert open_store(tmp_path, str(tmp_path / "x.db")).place == str(tmp_path / "x.db")
    with pytest.raises(UserError, match="mysql:// is not a supported store"):
        open_store(tmp_path, "mysql://x")
    with pytest.raises(StoreError, match="cannot be reached"):
        open_store(tmp_path, f"postgresql://me:geheim@/ra?host={tmp_path}").sessions()


def test_a_long_session_is_appended_to_as_fast_as_a_short_one(store: PostgresStore) -> None:
    timeline = store.create("/p")
    for start in range(0, 20_000, 1_000):
        timeline.append(*[prompt(f"message {start + number}") for number in range(1_000)])
    assert sum(1 for _ in timeline.events()) == 20_000
    assert timeline.append(prompt("next"))[0].at == 20_001
    assert [hit.at for hit in timeline.search("next")] == [20_001]
    timeline.close()


def test_the_command_line_works_on_a_database_and_copies_to_it(url: str, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with LoopbackServer("anthropic", [Step(text="First."), Step(text="Second.")]) as server:
        shell.serve(server)
        assert shell.ra("one").stdout == b"First.\n"
        done = shell.ra("sessions", "copy", "--to", url)
        assert b"1 sessions copied to postgresql://" in done.stderr
        again = shell.ra("sessions", "copy", "--to", url)
        assert b"0 sessions copied" in again.stderr
        assert b"1 were there already" in again.stderr
        on_database = ("--set", f"app.store={url}")
        assert shell.ra("-c", *on_database, "two").stdout == b"Second.\n"
    asked = [message["content"] for message in server.bodies[1]["messages"] if message["role"] == "user"]
    assert len(asked) == 2  # the second prompt goes on where the copied session ended


def test_a_password_in_an_address_is_not_shown(tmp_path: Path) -> None:
    assert redacted("store", "postgresql://me:geheim@h/ra", ("app", "store")) == "postgresql://me:[redacted]@h/ra"
