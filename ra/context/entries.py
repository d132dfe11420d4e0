"""Makes the facts that set and remove entries, which survive compactions and restarts."""

from collections.abc import Mapping

from ra.context.view import View
from ra.core.errors import UsageError
from ra.core.facts import Entry, EntryRemoved, EntrySet
from ra.core.text import clean

LONGEST_ID = 200


def insert(
    view: View, id: str, content: str, *, name: str = "", attrs: Mapping[str, str] | None = None
) -> tuple[EntrySet, ...]:
    """The facts that set an entry, replacing the one with this id; none if it has exactly this text already."""
    for key, value in (("id", id), ("name", name), ("content", content)):
        if not isinstance(value, str):  # from Python, where anything can be passed
            raise UsageError(
                f"Entry: {key} is {value!r}; use text: insert_context(id, name=…, content=…, attrs={{…}})."
            )
    id, content, name = clean(id).strip(), clean(content), clean(name)
    if not id or len(id) > LONGEST_ID:
        raise UsageError(f"An entry needs an id of 1 to {LONGEST_ID} characters, not {id[:40]!r} ({len(id)}).")
    if not content.strip():
        raise UsageError(f"Entry {id!r} has no content; to remove the entry, use rm.")
    entry = EntrySet(id, content, name, {clean(key): clean(value) for key, value in (attrs or {}).items()})
    live = view.entries.get(id)
    if live and (live.content, live.name, live.attrs) == (entry.content, entry.name, entry.attrs):
        return ()
    return (entry,)


def remove(view: View, id: str) -> tuple[EntryRemoved, ...]:
    """The facts that remove an entry; none if there is no such entry."""
    return (EntryRemoved(id),) if id in view.entries else ()


def get(view: View, id: str) -> Entry | None:
    return view.entries.get(id)


def all_of(view: View) -> tuple[Entry, ...]:
    """The live entries, in the order in which they were added."""
    return tuple(sorted(view.entries.values(), key=lambda entry: entry.inserted_at))
