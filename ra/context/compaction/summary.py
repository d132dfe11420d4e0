"""Writes and reads summaries, which stand under the first prompt: a text and lists, of bounded size."""

import re
from collections.abc import Iterable, Sequence

import msgspec

from ra.context.compaction.findings import line
from ra.context.tokens import Estimator

_PREVIOUS = "Previously compacted context"
_NAMES = "Names in what is hidden"
# Each list is guaranteed its share of the allowance; unused shares go to the others in this order.
_LISTS = (
    ("pending", "Pending work", 0.13),
    ("decisions", "Decisions", 0.13),
    ("files", "Key files", 0.12),
    ("commands", "Commands", 0.08),
    ("tools", "Tools used", 0.03),
)
_TEXT = 0.30
_FRAME = 8  # tokens of a heading, about
_BULLET_TOKENS = 3  # the most tokens around a list item
_CUT = " […]"

_TAG = r"<{0}>\s*(.*?)\s*(?:</?(?:summary|pending_work|done_work|decisions|key_files)>|\Z)"
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s*")
_ENDS = re.compile(r"(?<=[。！？])|(?<=[.!?])\s+|\n+")


class Summary(msgspec.Struct, frozen=True):
    """`previous` is the text of the summaries before, newest first; `names` is written anew each time."""

    text: str
    files: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    previous: str = ""
    decisions: tuple[str, ...] = ()

    @property
    def flat(self) -> str:
        """Its text and those before it as one: the oldest words stand last and are the first to go."""
        return "\n".join(part for part in (self.text, _without(self.previous, self.text)) if part)


def fitted(summary: Summary, cap: int, estimator: Estimator) -> str:
    """The summary as text of at most `cap` tokens: of lists the last items are kept, of texts the beginning.

    Nothing is dropped while all of it fits.
    """
    previous = _without(summary.previous, summary.text)
    sizes = {"text": estimator.text(summary.text) + _FRAME, "previous": estimator.text(previous) + _FRAME}
    for field, _, _ in _LISTS:
        sizes[field] = sum(estimator.text(item) + _BULLET_TOKENS for item in getattr(summary, field)) + _FRAME
    shares = {"text": _TEXT, **{field: share for field, _, share in _LISTS}}
    shares["previous"] = 1 - sum(shares.values())
    rooms = {name: min(size, int(cap * shares[name])) for name, size in sizes.items()}
    spare = cap - sum(rooms.values())
    for name in ("pending", "decisions", "text", "files", "previous", "commands", "tools"):
        growth = min(sizes[name] - rooms[name], spare)
        rooms[name], spare = rooms[name] + growth, spare - growth
    paragraphs = [estimator.clip(summary.text, rooms["text"], "head", marker=_CUT)]
    for field, heading, _ in _LISTS:
        items = _newest(getattr(summary, field), rooms[field] - _FRAME, estimator)
        if items:
            paragraphs.append(f"## {heading}\n{_bullets(items)}")
    room = rooms["previous"] - _FRAME
    if previous and room > 0:
        paragraphs.append(f"## {_PREVIOUS}\n{estimator.clip(previous, room, 'head', marker=_CUT)}")
    return estimator.clip("\n\n".join(paragraphs), cap, "head", marker=_CUT)


def with_names(written: str, names: str) -> str:
    """A summary with an index of names in the room that it left."""
    return f"{written}\n\n## {_NAMES}\n{names}" if names else written


def names_frame() -> str:
    """What stands around the names; it counts as well."""
    return f"\n\n## {_NAMES}\n"


def parse(written: str) -> Summary:
    """The parts of a summary that `fitted` wrote; a text without our headings is all text."""
    headings = [heading for _, heading, _ in _LISTS] + [_PREVIOUS, _NAMES]
    text, *marked = re.split(rf"^## ({'|'.join(headings)})\n", written, flags=re.M)
    bodies = dict(zip(marked[::2], marked[1::2], strict=True))
    lists = {field: tuple(lines(bodies.get(heading, ""))) for field, heading, _ in _LISTS}
    return Summary(text.strip(), previous=bodies.get(_PREVIOUS, "").strip(), **lists)


def tagged(answer: str, tag: str) -> str:
    """What stands between <tag> and its end; a tag that the model forgot to close ends where the next begins."""
    match = re.search(_TAG.format(tag), answer, re.S | re.I)
    return match[1] if match else ""


def _newest(items: Sequence[str], room: int, estimator: Estimator) -> list[str]:
    newest: list[str] = []
    for item in reversed(items):
        room -= estimator.text(item) + _BULLET_TOKENS
        if room < 0:
            break
        newest.append(item)
    return newest[::-1]


def without(items: Iterable[str], done: Iterable[str]) -> list[str]:
    """The items that are not among those which are done."""
    finished = {_same(item) for item in done}
    return [item for item in items if _same(item) not in finished]


def _bullets(items: Sequence[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _without(previous: str, text: str) -> str:
    """Earlier words without the sentences that the newer ones repeat."""
    if not previous or not text:
        return previous
    repeated = {_same(sentence) for sentence in _ENDS.split(text)}
    lines = previous.splitlines()
    return "\n".join(
        shorter
        for line in lines
        if (shorter := " ".join(part for part in _ENDS.split(line) if part.strip() and _same(part) not in repeated))
    )


def merged(*lists: Iterable[str]) -> tuple[str, ...]:
    """All items once, each where it came last: what matters now stands at the end."""
    latest: dict[str, str] = {}
    for item in (item for items in lists for item in items):
        latest.pop(_same(item), None)
        latest[_same(item)] = item
    return tuple(latest.values())


def _same(item: str) -> str:
    return item.strip().removeprefix("./").rstrip(".").casefold()


def paths(text: str) -> list[str]:
    """The paths of a list, one per line or with commas, in code quotes or not: one file is listed once."""
    names = [name.strip().strip("`") for row in lines(text) for name in re.split(r",(?:\s+|$)", row)]
    return [name for name in names if name]


def lines(text: str) -> list[str]:
    return [line(_BULLET.sub("", row)) for row in text.splitlines() if _BULLET.sub("", row).strip()]
