import pytest

from ra.context import entries
from ra.core.errors import UsageError
from ra.core.facts import Entry, EntryRemoved, EntrySet
from tests.context.sessions import engine, started, text_of


def test_inserting_replacing_and_removing():
    one = engine()
    log = started(one)
    log.record(*entries.insert(one.view, "prefs", "Short answers.", name="Preferences", attrs={"priority": "high"}))
    log.record(*entries.insert(one.view, "zone", "UTC+8"))
    assert entries.get(one.view, "prefs") == Entry("prefs", "Preferences", "Short answers.", 3, {"priority": "high"})
    log.record(*entries.insert(one.view, "prefs", "Long answers."))
    assert [entry.id for entry in entries.all_of(one.view)] == ["zone", "prefs"]
    assert "Short answers." not in text_of(one.request())
    log.record(*entries.remove(one.view, "zone"))
    assert entries.get(one.view, "zone") is None
    assert "UTC+8" not in text_of(one.request())


def test_what_changes_nothing_is_not_recorded():
    one = engine()
    log = started(one)
    log.record(*entries.insert(one.view, "a", "b"))
    assert entries.insert(one.view, "a", "b") == ()
    assert entries.insert(one.view, "a", "c") == (EntrySet("a", "c"),)
    assert entries.remove(one.view, "nobody") == ()
    assert entries.remove(one.view, "a") == (EntryRemoved("a"),)


@pytest.mark.parametrize(
    ("id", "content", "fault"),
    [
        ("", "x", "needs an id"),
        (" ", "x", "needs an id"),
        ("a" * 201, "x", "201"),
        ("a", " ", "no content"),
        ("a", {"content": "x"}, "use text"),
    ],
)
def test_an_entry_that_is_none_is_refused(id, content, fault):
    with pytest.raises(UsageError, match=fault):
        entries.insert(engine().view, id, content)


def test_text_that_cannot_be_stored_is_mended():
    assert entries.insert(engine().view, "a", "x\ud800y") == (EntrySet("a", "x?y"),)
