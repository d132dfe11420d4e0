"""Is a store that cannot be used told in a sentence, and nothing torn?"""

import os
import resource
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ra.core.errors import StoreError
from ra.core.facts import Said
from ra.core.messages import say
from ra.timeline.in_memory import MemoryTimeline
from ra.timeline.sqlite import SqliteStore
from ra.timeline.sqlite_file import translated
from ra.timeline.store import Endpoint

NOBODY = 65534


def prompt(text: str) -> Said:
    return Said(say("user", text))


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory that another user can reach too."""
    path = Path(tempfile.mkdtemp(prefix="ra-faults-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@contextmanager
def unprivileged() -> Iterator[None]:
    """Root may write anywhere, so root steps down."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file may grow beyond this: what a full disk looks like to one process."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def filled(path: Path) -> str:
    store = SqliteStore(path)
    timeline = store.create("/p")
    timeline.append(prompt("hello world"))
    timeline.keep("kept")
    timeline.close()
    store.close()
    return timeline.session


def test_a_read_only_store_can_be_read_and_not_written(directory: Path) -> None:
    session = filled(directory / "data" / "timeline.db")
    data = directory / "data"
    for path in [*data.rglob("*"), data]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    with unprivileged():
        store = SqliteStore(data / "timeline.db")
        assert [info.id for info in store.sessions()] == [session]
        assert [hit.at for hit in store.search("hello")] == [1]
        assert [event.fact for event in store.open(session, write=False).events()] == [prompt("hello world")]
        with pytest.raises(StoreError, match="RA_HOME"):
            store.open(session, write=True)
        with pytest.raises(StoreError, match="RA_HOME"):
            store.create("/p")
        with pytest.raises(StoreError, match="read-only"):
            store.learn_factor(Endpoint("", "", "m"), 1.5)
        assert [info.id for info in store.sessions()] == [session]


def test_a_store_that_a_killed_writer_left_can_be_read_where_nothing_can_be_written(directory: Path) -> None:
    data = directory / "data"
    store = SqliteStore(data / "timeline.db")
    timeline = store.create("/p")
    timeline.append(prompt("hello world"))  # not closed: the log lies beside the file
    for path in [*data.rglob("*"), data]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    with unprivileged():
        assert [info.events for info in SqliteStore(data / "timeline.db").sessions()] == [1]


def test_a_place_where_nothing_can_be_made_is_told(directory: Path) -> None:
    directory.chmod(0o555)
    with unprivileged():
        store = SqliteStore(directory / "new" / "timeline.db")
        assert store.sessions() == []
        with pytest.raises(StoreError, match="cannot be made"):
            store.create("/p")
        with pytest.raises(StoreError, match="Permission denied"):
            store.learn_factor(Endpoint("", "", "m"), 1.5)


def test_a_store_that_may_not_be_read_is_told(directory: Path) -> None:
    filled(directory / "timeline.db")
    (directory / "timeline.db").chmod(0)
    with unprivileged(), pytest.raises(StoreError, match="cannot be opened"):
        SqliteStore(directory / "timeline.db").sessions()


@pytest.mark.parametrize("place", ["is a directory", "below a file"])
def test_a_wrong_place_is_told(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("x")
    path = tmp_path if place == "is a directory" else tmp_path / "file" / "timeline.db"
    with pytest.raises(StoreError, match="RA_HOME"):
        SqliteStore(path).learn_factor(Endpoint("", "", "m"), 1.5)


def test_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "timeline.db"
    session = filled(path)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    for use in (lambda: SqliteStore(path).sessions(), lambda: SqliteStore(path).open(session, write=True)):
        with pytest.raises(StoreError, match="newer ra"):
            use()


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "timeline.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    with pytest.raises(StoreError, match="another program"):
        SqliteStore(path).sessions()
    with pytest.raises(StoreError, match="another program"):
        SqliteStore(path).learn_factor(Endpoint("", "", "m"), 1.5)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 1")
        connection.execute("PRAGMA application_id = 4711")
    with pytest.raises(StoreError, match="another program"):
        SqliteStore(path).sessions()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (sqlite3.SQLITE_FULL, "free some disk space"),
        (sqlite3.SQLITE_BUSY, "locked by another program"),
        (sqlite3.SQLITE_READONLY, "is read-only"),
        (sqlite3.SQLITE_CANTOPEN, "cannot be opened"),
        (sqlite3.SQLITE_NOTADB, "Move it away"),
        (sqlite3.SQLITE_TOOBIG, "An event is too large"),
        (sqlite3.SQLITE_MISUSE, "cannot be used: told by SQLite"),
    ],
)
def test_what_sqlite_says_is_told_with_what_to_do(tmp_path: Path, code: int, words: str) -> None:
    error = sqlite3.OperationalError("told by SQLite")
    error.sqlite_errorcode = code
    with pytest.raises(StoreError, match=words), translated(tmp_path / "timeline.db"):
        raise error


@pytest.mark.parametrize(
    "content", [b"not a database at all, but long enough" * 9, b"SQLite format 3\0" + b"\xff" * 500]
)
def test_a_file_that_is_no_database_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "timeline.db"
    path.write_bytes(content)
    for use in (SqliteStore(path).sessions, lambda: SqliteStore(path).learn_factor(Endpoint("", "", "m"), 1.5)):
        with pytest.raises(StoreError, match="damaged"):
            use()
    assert path.read_bytes() == content


def test_damage_at_any_page_is_told_or_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "timeline.db"
    session = filled(path)
    whole = path.read_bytes()
    told = 0
    for page in range(len(whole) // 4096):
        path.write_bytes(whole[: page * 4096] + b"\xa5" * 4096 + whole[(page + 1) * 4096 :])
        store = SqliteStore(path)
        try:
            store.sessions()
            list(store.open(session, write=False).events())
            store.search("hello")
            timeline = store.open(session, write=True)
            try:
                timeline.append(prompt("more"))
            finally:
                timeline.close()
        except StoreError:
            told += 1
        store.close()
    assert told > 3


def test_an_empty_file_is_a_new_store(tmp_path: Path) -> None:
    path = tmp_path / "timeline.db"
    path.touch()
    assert SqliteStore(path).sessions() == []
    assert filled(path) == SqliteStore(path).sessions()[0].id


def test_a_damaged_event_is_named(tmp_path: Path) -> None:
    path = tmp_path / "timeline.db"
    session = filled(path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE events SET fact = x'7b22'")
    with pytest.raises(StoreError, match="position 1 is damaged"):
        list(SqliteStore(path).open(session, write=False).events())


def test_a_locked_store_is_told_and_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "timeline.db"
    session = filled(path)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    store = SqliteStore(path, busy_s=0.05)
    timeline = store.open(session, write=True)
    with pytest.raises(StoreError, match="locked by another program"):
        timeline.append(prompt("now"))
    assert len(list(timeline.events())) == 1
    holder.execute("ROLLBACK")
    assert [event.at for event in timeline.append(prompt("now"))] == [2]


def test_a_full_disk_tears_nothing_and_the_answer_goes_on_in_memory(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "timeline.db")
    timeline = store.create("/p")
    timeline.append(prompt("before"))
    ref = timeline.keep("kept before")
    with largest_file(150_000):
        with pytest.raises(StoreError, match="disk space"):
            timeline.append(prompt("small"), prompt("x" * 300_000))
        assert [event.fact for event in timeline.events()] == [prompt("before")]
        memory = MemoryTimeline(timeline.session, events=timeline.events(), texts=timeline.kept)
        assert [event.at for event in memory.append(prompt("after"))] == [2]
        assert memory.kept(ref) == "kept before"
        assert [hit.at for hit in memory.search("after")] == [2]
    assert [event.at for event in timeline.append(prompt("room again"))] == [2]
    assert [event.fact for event in SqliteStore(store.path).open(timeline.session, write=False).events()] == [
        prompt("before"),
        prompt("room again"),
    ]


def test_a_database_that_is_deleted_under_an_open_session_is_told_and_not_written_on(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "ra.db")
    timeline = store.create("/p")
    timeline.append(prompt("one"))
    for file in tmp_path.glob("ra.db*"):
        file.unlink()
    with pytest.raises(StoreError, match=r"was moved away or deleted while this session was open"):
        timeline.append(prompt("two"))
    SqliteStore(tmp_path / "ra.db").create("/q").append(prompt("of another process"))
    with pytest.raises(StoreError, match=r"was moved away or deleted"):
        timeline.append(prompt("three"))
    assert [info.project for info in SqliteStore(tmp_path / "ra.db").sessions()] == ["/q"]
    assert [event.fact for event in timeline.events()] == [prompt("one")]
    store.create("/r").append(prompt("of the same process, later"))
    assert {info.project for info in store.sessions()} == {"/q", "/r"}


def test_a_database_that_can_no_longer_be_reached_is_told_and_what_is_open_can_be_read(directory: Path) -> None:
    directory.chmod(0o777)
    with unprivileged():
        home = directory / "data"
        home.mkdir()
        store = SqliteStore(home / "ra.db")
        timeline = store.create("/p")
        timeline.append(prompt("one"))
        home.chmod(0)
        with pytest.raises(StoreError, match=r"was moved away or deleted"):
            timeline.append(prompt("two"))
        with pytest.raises(StoreError):
            store.sessions()
        assert [event.fact for event in timeline.events()] == [prompt("one")]
        home.chmod(0o700)
        timeline.append(prompt("back again"))
        assert [info.project for info in store.sessions()] == ["/p"]


def test_a_disk_that_is_full_from_the_start_is_told(tmp_path: Path) -> None:
    with largest_file(100), pytest.raises(StoreError, match="disk space"):
        SqliteStore(tmp_path / "timeline.db").learn_factor(Endpoint("", "", "m"), 1.5)
    SqliteStore(tmp_path / "timeline.db").learn_factor(Endpoint("", "", "m"), 1.5)


def test_a_full_disk_at_the_first_write_says_that_nothing_was_stored(tmp_path: Path) -> None:
    timeline = SqliteStore(tmp_path / "timeline.db").create("/p")
    with largest_file(100), pytest.raises(StoreError, match="Nothing of this session was stored"):
        timeline.append(prompt("x"))
    timeline.append(prompt("there is room again"))
    assert [event.at for event in timeline.events()] == [1]


@pytest.mark.parametrize("code", [sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ])
def test_a_read_error_is_not_told_as_a_full_disk(tmp_path: Path, code: int) -> None:
    failure = sqlite3.OperationalError("disk I/O error")
    failure.sqlite_errorcode = code
    with pytest.raises(StoreError, match="could not be read") as told, translated(tmp_path / "timeline.db"):
        raise failure
    assert "disk space" not in str(told.value)
