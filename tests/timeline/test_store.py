"""Are sessions stored, found, forked and deleted as they should be?"""

import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ra.core.errors import SessionInUse, UsageError, UserError
from ra.core.facts import Configured, EntrySet, Fact, Said, Spent, TimelineEvent
from ra.core.messages import Message, ToolCall, say
from ra.core.model import Usage
from ra.timeline.in_memory import MemoryTimeline
from ra.timeline.sqlite import SqliteStore
from ra.timeline.sqlite_file import WriterLock
from ra.timeline.store import Endpoint, Learned, SessionInfo, Store, StoredTimeline, encoded
from tests.strategies import facts, timelines
from tests.timeline.conftest import Home


class Clock:
    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(home: Home, clock: Clock) -> Store:
    return home.open(clock)


@pytest.fixture
def sqlite_store(tmp_path: Path, clock: Clock) -> SqliteStore:
    return SqliteStore(tmp_path / "data" / "timeline.db", clock=clock)


def prompt(text: str) -> Said:
    return Said(say("user", text))


def paid(dollars: str) -> Spent:
    return Spent("m", Usage(1, 2, 3, 4), dollars)


@settings(max_examples=60, deadline=None)
@given(batches=st.lists(st.lists(facts, max_size=4), max_size=4))
def test_what_is_appended_is_read_back_in_order(
    batches: list[list[Fact]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("store") / "timeline.db"
    timeline = SqliteStore(path, clock=Clock()).create("/p")
    appended = [event for batch in batches for event in timeline.append(*batch)]
    expected = [TimelineEvent(at, 1_000.0, fact) for at, fact in enumerate(chain(*batches), 1)]
    assert appended == expected
    assert list(timeline.events()) == expected
    if expected:
        later = SqliteStore(path).open(timeline.session, write=False)
        assert list(later.events(since=2)) == expected[2:]
    timeline.close()


@settings(max_examples=40, deadline=None)
@given(events=timelines(), data=st.data())
def test_a_fork_equals_the_prefix(
    events: list[TimelineEvent], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = SqliteStore(tmp_path_factory.mktemp("store") / "timeline.db")
    session = store.adopt("/p", events)
    at = data.draw(st.none() | st.integers(0, len(events)))
    fork = store.fork(session, at)
    assert list(store.open(fork, write=False).events()) == (events if at is None else events[:at])
    assert list(store.open(session, write=False).events()) == events
    store.close()


@settings(max_examples=40, deadline=None)
@given(first=st.lists(facts, max_size=3), second=st.lists(facts, max_size=3))
def test_memory_takes_over_where_a_file_ended(first: list[Fact], second: list[Fact]) -> None:
    whole = MemoryTimeline("s", clock=Clock())
    whole.append(*first)
    taken = MemoryTimeline("s", events=whole.events(), texts={"~x": "old"}.get, clock=Clock())
    assert taken.append(*second) == whole.append(*second)
    assert taken.events() == whole.events()
    assert taken.events(since=len(first)) == whole.events()[len(first) :]
    assert (taken.kept("~x"), taken.kept(taken.keep("")), taken.kept("~y")) == ("old", "", None)


def test_nothing_is_made_before_something_is_recorded(sqlite_store: SqliteStore) -> None:
    store = sqlite_store
    assert (store.sessions(), store.latest("/p"), store.search("x"), store.learned(HOME)) == ([], None, [], Learned())
    assert not store.path.parent.exists()
    timeline = store.create("/p")
    assert list(timeline.events()) == []
    assert timeline.append() == []
    assert not store.path.exists()


def test_everything_is_for_the_user_alone(sqlite_store: SqliteStore) -> None:
    store = sqlite_store
    timeline = store.create("/p")
    timeline.append(prompt("hello"))
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [store.path.parent, *store.path.parent.rglob("*")]}
    assert len(modes) >= 5
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}


def test_a_listing_tells_what_a_session_is_and_cost(store: Store, clock: Clock) -> None:
    timeline = store.create("/p", agent="ops", channel="api", chat_id="7")
    timeline.append(prompt("please  count\nthe files"), paid("0.25"), paid("0.10"))
    clock.now = 2_000.0
    fork = store.fork(timeline.session)
    clock.now = 3_000.0
    copy = store.open(fork, write=True)
    copy.append(Spent("n", Usage(output=5), ""))
    original = SessionInfo(
        id=timeline.session,
        project="/p",
        title="please count",
        created=1_000.0,
        updated=1_000.0,
        events=3,
        model="m",
        dollars=Decimal("0.35"),
        tokens=Usage(2, 4, 6, 8),
        agent="ops",
        channel="api",
        chat_id="7",
    )
    forked = SessionInfo(
        id=fork,
        project="/p",
        title="please count",
        created=2_000.0,
        updated=3_000.0,
        events=4,
        model="n",
        dollars=None,
        tokens=Usage(output=5),
        parent=timeline.session,
        forked_at=3,
        agent="ops",
        channel="api",
        chat_id="7",
    )
    assert store.sessions() == [forked, original]
    assert store.sessions("/p", limit=1) == [forked]
    assert store.sessions("/other") == []
    assert store.info(timeline.session) == original
    assert [(session, event.at) for session, event in store.spent()] == [
        (timeline.session, 2),
        (timeline.session, 3),
        (fork, 4),
    ]
    assert [event.at for _, event in store.spent(since=2_000.0, project="/p")] == [4]


def test_the_latest_session_is_the_one_in_which_something_happened_last(store: Store, clock: Clock) -> None:
    old, new = store.create("/p"), store.create("/p")
    old.append(prompt("a"))
    clock.now += 1
    new.append(prompt("b"))
    assert store.latest("/p") == new.session
    clock.now += 1
    old.append(prompt("c"))
    assert store.latest("/p") == old.session
    clock.now += 1
    assert store.latest("/p") != store.fork(new.session) == store.latest("/p")
    assert store.latest("/q") is None


def test_a_chat_finds_its_session_again(store: Store) -> None:
    timeline = store.create("/p", agent="ops", channel="telegram", chat_id="42")
    timeline.append(prompt("hi"))
    assert store.find("ops", "telegram", "42") == timeline.session
    assert store.find("ops", "telegram", "43") is None


def test_a_clock_that_was_ahead_does_not_capture_the_latest_session(store: Store, clock: Clock) -> None:
    before = store.create("/p")
    before.append(prompt("a"))
    clock.now += 30 * 86_400
    ahead = store.create("/p")
    ahead.append(prompt("b"))
    clock.now -= 30 * 86_400 - 100
    assert store.latest("/p") == ahead.session  # made after `before`
    clock.now += 100
    after = store.create("/p")
    after.append(prompt("c"))
    assert store.latest("/p") == after.session
    assert [info.id for info in store.sessions()] == [after.session, ahead.session, before.session]
    clock.now += 100
    ahead.append(prompt("used again, with the clock right"))
    assert store.latest("/p") == ahead.session


def test_a_chat_has_one_session_whoever_asks_first(store: Store, home: Home) -> None:
    def take(_: int) -> str:
        other = home.open()
        try:
            while True:
                try:
                    timeline = other.open_chat("/p", "ops", "api", "42")
                except SessionInUse:
                    continue
                timeline.append(prompt("hi"))
                timeline.close()
                return timeline.session
        finally:
            other.close()

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(take, range(8)))) == 1
    assert [info.events for info in store.sessions()] == [8]


def test_the_beginning_of_an_id_is_enough_when_it_is_the_only_one(store: Store) -> None:
    timeline = store.create("/p")
    timeline.append(prompt("hi"))
    assert store.open(timeline.session[:3], write=False).session == timeline.session


@pytest.mark.parametrize("wrong", ["nosuchid", "", "%", "../../x", "' OR 1=1 --"])
def test_an_unknown_id_is_told_with_what_there_is(store: Store, wrong: str) -> None:
    with pytest.raises(UserError, match="Nothing has been stored yet"):
        store.open(wrong, write=True)
    timeline = store.create("/p")
    timeline.append(prompt("hi"))
    with pytest.raises(UserError, match=timeline.session):
        store.open(wrong, write=True)


def test_a_near_id_is_suggested(store: Store) -> None:
    timeline = store.create("/p")
    timeline.append(prompt("hi"))
    with pytest.raises(UserError, match=f"Did you mean {timeline.session}"):
        store.open("x" + timeline.session[1:], write=False)


def test_an_ambiguous_beginning_names_the_sessions(store: Store) -> None:
    sessions = []
    while len({session[0] for session in sessions}) == len(sessions):  # until two begin alike
        timeline = store.create("/p")
        timeline.append(prompt("hi"))
        sessions.append(timeline.session)
    with pytest.raises(UserError, match="More than one session begins with"):
        store.open(sessions[-1][0], write=False)


def test_a_second_writer_is_sent_to_a_fork(store: Store, home: Home) -> None:
    timeline = store.create("/p")
    timeline.append(prompt("hi"))
    other = home.open()
    with pytest.raises(SessionInUse, match="--fork"):
        other.open(timeline.session, write=True)
    assert len(list(other.open(timeline.session, write=False).events())) == 1
    fork = other.open(other.fork(timeline.session), write=True)
    fork.append(prompt("my own way"))
    timeline.close()
    again = other.open(timeline.session, write=True)
    assert [event.at for event in again.append(prompt("more"))] == [2]
    if isinstance(store, SqliteStore):
        assert {path.stem for path in (store.path.parent / "locks").iterdir()} == {again.session, fork.session}


def test_a_fork_begins_where_there_was_something(store: Store) -> None:
    timeline = store.create("/p")
    timeline.append(prompt("one"), prompt("two"))
    for wrong in (-1, 3):
        with pytest.raises(UserError, match=f"can be forked at 0 to 2, not at {wrong}"):
            store.fork(timeline.session, wrong)
    assert list(store.open(store.fork(timeline.session, 0), write=False).events()) == []


def test_a_session_from_elsewhere_is_stored_with_its_times_and_texts(store: Store) -> None:
    events = [TimelineEvent(at, 7.0 + at, prompt(f"word {at}")) for at in (1, 2)]
    adopted = store.open(store.adopt("/p", events, texts=["kept"]), write=False)
    assert (list(adopted.events()), adopted.texts()) == (events, ["kept"])
    with pytest.raises(UserError, match="number 2 is out of order"):
        store.adopt("/p", events[1:])


def test_what_the_last_request_was_made_with_is_found_without_reading_the_log(store: Store) -> None:
    timeline, newest = store.create("/p"), Configured("anthropic", "new", "timeline")
    assert timeline.configured() is None
    timeline.append(Configured("anthropic", "old", "timeline"), prompt("one"), newest, prompt("two"))
    other = store.create("/p")
    other.append(Configured("openai", "another session's", "timeline"))
    assert timeline.configured() == newest


def test_where_nothing_was_recorded_nothing_is_found(store: Store) -> None:
    timeline = store.create("/p")
    assert (timeline.search("word"), timeline.texts(), list(timeline.events())) == ([], [], [])
    timeline.close()
    timeline.close()  # a second time does no harm
    with pytest.raises(UsageError):
        timeline.append(prompt("late"))


def test_a_lock_that_its_holder_removed_meanwhile_is_taken_anew(tmp_path: Path) -> None:
    """Who opens the file just before its holder removes it has locked nothing: at most one may hold it at any time."""
    held, most = 0, 0
    guard = threading.Lock()

    def work() -> None:
        nonlocal held, most
        for _ in range(400):
            try:
                lock = WriterLock(tmp_path / "locks", "s")
            except SessionInUse:
                continue
            with guard:
                held += 1
                most = max(most, held)
            with guard:
                held -= 1
            lock.release()
            lock.release()

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work) for _ in range(4)]:
            done.result()
    assert most == 1


def test_a_timeline_opened_for_reading_does_not_write(store: Store) -> None:
    timeline = store.create("/p")
    timeline.append(prompt("hi"))
    with pytest.raises(UsageError, match="for reading"):
        store.open(timeline.session, write=False).append(prompt("x"))


def test_what_is_deleted_is_gone_and_the_rest_is_whole(store: Store) -> None:
    timeline = store.create("/p")
    timeline.append(prompt("alpha secret"), EntrySet("k", "beta secret"))
    common, own = timeline.keep("common text"), timeline.keep("own text")
    fork = store.fork(timeline.session, 1)
    other = store.create("/p")
    other.append(prompt("gamma"))
    other.keep("common text")
    with pytest.raises(SessionInUse):
        store.delete(timeline.session)
    timeline.close()
    store.delete(timeline.session)
    assert {info.id for info in store.sessions()} == {fork, other.session}
    assert [hit.session for hit in store.search("secret")] == [fork]
    assert (other.kept(common), other.kept(own)) == ("common text", "own text")  # the fork still has it
    store.delete(fork)
    assert (other.kept(common), other.kept(own)) == ("common text", None)
    assert store.search("secret") == []
    store.close()
    if isinstance(store, SqliteStore):
        assert b"secret" not in store.path.read_bytes()


def test_prune_keeps_the_newest_and_what_is_in_use(store: Store, clock: Clock) -> None:
    sessions = []
    for _ in range(5):
        clock.now += 100
        timeline = store.create("/p")
        timeline.append(prompt("x"))
        sessions.append(timeline)
    for timeline in sessions[1:]:
        timeline.close()
    ids = [timeline.session for timeline in sessions]
    with pytest.raises(UserError):
        store.prune()
    assert store.prune(older_than_s=1_000) == []
    assert store.prune(older_than_s=150, keep=1) == [ids[2], ids[1]]
    assert store.prune(keep=1) == [ids[3]]
    assert [info.id for info in store.sessions()] == [ids[4], ids[0]]


HOME = Endpoint("anthropic", "https://api.anthropic.com", "m")
GATEWAY = Endpoint("anthropic", "http://gateway:8080", "m")


def test_what_an_endpoint_taught_survives_a_restart_and_stays_with_it(store: Store, home: Home) -> None:
    store.learn_window(GATEWAY, 8192, text="maximum context length is 8192 tokens")
    store.learn_factor(GATEWAY, 1.25)
    store.close()
    again = home.open()
    learned = again.learned(GATEWAY)
    assert (learned.window, learned.factor, learned.guessed) == (8192, 1.25, False)
    assert learned.text == "maximum context length is 8192 tokens"
    assert learned.window_at > 0
    assert learned.factor_at > 0
    assert again.learned(HOME) == Learned()
    again.learn_window(GATEWAY, 4096, text="Bad Request", guessed=True)
    assert again.learned(GATEWAY).window == 4096
    assert again.learned(GATEWAY).guessed
    assert again.learned(GATEWAY).factor == 1.25


def test_what_was_learned_can_be_forgotten_for_one_model_or_for_all(store: Store) -> None:
    other = Endpoint("openai", "https://api.openai.com/v1", "n")
    assert store.forget() == []
    for endpoint in (HOME, GATEWAY, other):
        store.learn_factor(endpoint, 1.5)
    assert sorted(endpoint.base_url for endpoint, _ in store.all_learned()) == [
        "http://gateway:8080",
        "https://api.anthropic.com",
        "https://api.openai.com/v1",
    ]
    assert len(store.forget("m")) == 2
    assert [endpoint for endpoint, _ in store.all_learned()] == [other]
    assert store.forget() == [other]
    assert store.learned(other) == Learned()


def test_kept_text_has_one_reference_and_is_read_in_a_later_process(store: Store, home: Home) -> None:
    timeline = store.create("/p")
    ref = timeline.keep("long\x00text ✓")
    assert (ref, timeline.keep("long\x00text ✓")) == (ref, ref)
    assert ref.startswith("~")
    assert len(ref) == 13
    assert home.open().open(timeline.session, write=False).kept(ref) == "long\x00text ✓"
    assert timeline.kept("~000000000000") is None


def test_arguments_nested_as_deep_as_they_could_be_read_are_stored_and_found(store: Store) -> None:
    args: dict[str, object] = {"word": "needle"}
    for _ in range(950):
        args = {"a": [args]}
    deep = Said(Message("assistant", (ToolCall("1", "Bash", args),)))
    timeline = store.create("/p")
    timeline.append(deep)
    assert [hit.at for hit in timeline.search("needle")] == [1]
    (read,) = timeline.events()
    assert encoded(read.fact) == encoded(deep)


def test_threads_may_share_a_store(store: Store) -> None:
    timelines = [store.create("/p") for _ in range(4)]

    def write(timeline: StoredTimeline) -> list[int]:
        return [event.at for number in range(20) for event in timeline.append(prompt(f"word {number}"))]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(write, timelines)) == [list(range(1, 21))] * 4
