"""Is everything that was said found again, in every script?"""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ra.core.facts import Checkpointed, Configured, EntrySet, Noticed, Said, Spent, TimelineEvent
from ra.core.messages import Image, Message, Text, Thinking, ToolCall, ToolResult, say
from ra.core.model import Section, Usage
from ra.core.ports import Hit
from ra.timeline.in_memory import MemoryTimeline
from ra.timeline.query import terms
from ra.timeline.sqlite import SqliteStore
from ra.timeline.store import Store
from tests.postgres import PostgresServer
from tests.timeline.conftest import Home

WORDS = st.text(st.characters(categories=["L", "N", "M"]), min_size=1, max_size=12)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@settings(max_examples=100, deadline=None)
@given(before=TEXT, word=WORDS, after=TEXT)
def test_any_stored_word_of_any_script_is_found(
    before: str, word: str, after: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    timeline = SqliteStore(tmp_path_factory.mktemp("store") / "timeline.db").create("/p")
    said = Said(say("user", f"{before} {word} {after}"))
    timeline.append(said)
    assert [hit.at for hit in timeline.search(word)] == [1]
    assert [hit.at for hit in MemoryTimeline(events=[TimelineEvent(1, 0.0, said)]).search(word)] == [1]
    timeline.close()


@settings(max_examples=60, deadline=None)
@given(query=st.text(max_size=40))
def test_no_query_is_refused(query: str, store_of_words: SqliteStore) -> None:
    hits = store_of_words.search(query.encode("utf-8", "replace").decode())
    assert all(hit.at in (1, 2) for hit in hits)


@pytest.fixture(scope="module")
def store_of_words(tmp_path_factory: pytest.TempPathFactory) -> SqliteStore:
    store = SqliteStore(tmp_path_factory.mktemp("store") / "timeline.db")
    store.create("/p").append(Said(say("user", "AND OR NOT NEAR(a b) col:x ^begin pre*")), Said(say("user", "other")))
    return store


TEXTS = (
    "Die Größe des Fensters, см. файл настроек",
    "请重启数据库服务器,然后检查日志",
    "サーバーを再起動してください",
    "โปรดรีสตาร์ทเซิร์ฟเวอร์",
    "서버를 다시 시작하세요",
    "कृपया सर्वर पुनः आरंभ करें",
    "call getUserName() in src/agent/loop_test.py -> 42 🎉",
)


@pytest.mark.parametrize(
    ("query", "at"),
    [
        ("größe", 1),
        ("GRÖSSE fenster", 1),
        ("ФАЙЛ", 1),
        ("настро", 1),
        ("数据库", 2),
        ("重启", 2),
        ("志", 2),
        ("再起動", 3),
        ("サーバ", 3),
        ("เซิร์ฟ", 4),
        ("시작", 5),
        ("सर्वर", 6),
        ("src/agent/loop_test.py", 7),
        ("loop_test", 7),
        ("agent/loop", 7),
        ("UserNa", 7),
        ("username", 7),
        ('"src/agent"', 7),
        ("->", 7),
        ("🎉", 7),
        ("42", 7),
    ],
)
def test_words_parts_and_signs_are_found(query: str, at: int, home: Home) -> None:
    timeline = home.open().create("/p")
    timeline.append(*(Said(say("user", text)) for text in TEXTS))
    assert [hit.at for hit in timeline.search(query)] == [at]


def test_the_best_find_comes_first_and_any_word_is_better_than_none(home: Home) -> None:
    timeline = home.open().create("/p")
    timeline.append(
        Said(say("user", "the cache is cold and the day is long")),
        Said(say("user", "caches and windows")),
        Said(say("user", "the cache has a window")),
    )
    assert [hit.at for hit in timeline.search("cache window")] == [3, 2, 1]
    assert [hit.at for hit in timeline.search("cache window", limit=1)] == [3]
    assert [hit.at for hit in timeline.search("how cold is it?")] == [1]
    assert timeline.search("elephant") == timeline.search("") == timeline.search("   ") == []


def test_what_was_said_noted_and_summed_up_is_found_and_what_was_configured_is_not(home: Home) -> None:
    timeline = home.open().create("/p")
    timeline.append(
        Said(
            Message("assistant", (Thinking("pondering"), ToolCall("1", "Bash", {"command": ["make", {"x": "demo"}]})))
        ),
        Said(Message("tool", (ToolResult("1", "Bash", (Text("built fine"), Image("image/png", b"built"))),))),
        EntrySet("lang", "answer in French", attrs={"k": "vivid"}),
        Noticed(Section("AGENTS.md", "volatile", "use tabs")),
        Checkpointed("digest", "threshold", marker="12 hidden", summary="refactored the parser"),
        Configured("p", "m", "timeline", sections=(Section("system", "pinned", "be terse"),)),
        Spent("terse", Usage()),
    )
    queries = (
        "pondering",
        "demo",
        "built",
        "French",
        "vivid",
        "tabs",
        "parser",
        "terse",
        "digest",
        "image/png",
        "said",
    )
    assert {query: [hit.at for hit in timeline.search(query)] for query in queries} == {
        "pondering": [1],
        "demo": [1],
        "built": [2],
        "French": [3],
        "vivid": [3],
        "tabs": [4],
        "parser": [5],
        "terse": [],
        "digest": [],
        "image/png": [],
        "said": [],
    }


def test_a_find_shows_the_words_around_it(home: Home) -> None:
    store = home.open(lambda: 5.0)
    timeline = store.create("/p")
    timeline.append(Said(say("user", "x" * 200 + " the\nNeedle here " + "y" * 200)))
    snippet = "…" + "x" * 75 + " the Needle here " + "y" * 68 + "…"
    assert store.search("needle") == [Hit(timeline.session, 1, 5.0, "said", snippet)]


def test_a_search_over_all_sessions_can_be_narrowed(home: Home) -> None:
    store = home.open()
    ours, other, foreign = store.create("/p"), store.create("/p"), store.create("/q")
    for timeline in (ours, other, foreign):
        timeline.append(Said(say("user", f"apples of {timeline.session}")))

    def sessions(**narrow: str) -> set[str]:
        return {hit.session for hit in store.search("apples", **narrow)}

    assert sessions() == {ours.session, other.session, foreign.session}
    assert sessions(project="/p") == {ours.session, other.session}
    assert sessions(project="/p", exclude=ours.session) == {other.session}
    assert {hit.session for hit in ours.search("apples")} == {ours.session}


def test_copies_that_a_fork_made_count_once(home: Home) -> None:
    store = home.open()
    timeline = store.create("/p")
    timeline.append(Said(say("user", "unique words")))
    fork = store.fork(timeline.session)
    assert [hit.session for hit in store.search("unique")] in ([timeline.session], [fork])
    assert [hit.session for hit in store.open(fork, write=False).search("unique")] == [fork]


def test_a_query_is_read_as_words_and_quoted_phrases() -> None:
    assert terms('say "two words" and say "open end') == ("say", "two words", "and", "open end")
    assert terms('"" " "') == ()
    assert len(terms(" ".join(map(str, range(1000))))) == 32
    assert terms("half \ud800 of it") == ("half", "?", "of", "it")


@settings(max_examples=100, deadline=None)
@given(before=TEXT, word=WORDS, after=TEXT)
def test_any_stored_word_of_any_script_is_found_in_postgres(
    before: str, word: str, after: str, words_of_any_script: Store
) -> None:
    timeline = words_of_any_script.create("/p")
    timeline.append(Said(say("user", f"{before} {word} {after}")))
    assert [hit.at for hit in timeline.search(word)] == [1]
    timeline.close()


@pytest.fixture(scope="module")
def words_of_any_script(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    home = Home(tmp_path_factory.mktemp("none"), postgres.fresh())
    yield home.open()
    home.close()


def test_a_very_long_text_is_stored_and_found(home: Home) -> None:
    timeline = home.open().create("/p")
    timeline.append(Said(say("user", " ".join(f"word{number}" for number in range(200_000)) + " needle")))
    timeline.append(Said(say("user", "x" * 3_000_000 + " it's \\ here")))
    assert [hit.at for hit in timeline.search("word17")] == [1]
    assert [hit.at for hit in timeline.search("needle")] == [1]
    assert [hit.at for hit in timeline.search("here")] == [2]
    timeline.close()
