"""What stands under the first prompt after a summary? A text and lists, merged with those before, of bounded size."""

import re
from collections.abc import Iterable, Sequence

import msgspec

from ra.context.compaction.findings import line
from ra.context.tokens import Estimator

_PREVIOUS = "Previously compacted context"
# What each list may take of the whole. The text takes its share of what they leave, the previous context the rest.
_LISTS = (
    ("files", "Key files", 0.14),
    ("commands", "Commands", 0.10),
    ("tools", "Tools used", 0.04),
    ("pending", "Pending work", 0.12),
)
_TEXT = 0.6
_CUT = " […]"

_TAG = r"<{0}>\s*(.*?)\s*(?:</?(?:summary|pending_work|key_files)>|\Z)"
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s*")


class Summary(msgspec.Struct, frozen=True):
    """`previous` is the text of the summaries before, newest first."""

    text: str
    files: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    previous: str = ""

    @property
    def flat(self) -> str:
        """Its text and those before it as one: the oldest words stand last and are the first to go."""
        return "\n".join(part for part in (self.text, self.previous) if part)


def fitted(summary: Summary, cap: int, estimator: Estimator) -> str:
    """The summary as text of at most `cap` tokens: of lists the last items are kept, of texts the beginning."""
    lists = []
    for field, heading, share in _LISTS:
        items = _newest(getattr(summary, field), int(cap * share) - 8, estimator)
        if items:
            lists.append(f"## {heading}\n" + "\n".join(f"- {item}" for item in items))
    room = cap - estimator.text("\n\n".join(lists)) - 4
    text = estimator.clip(summary.text, int(room * _TEXT) if summary.previous else room, "head", marker=_CUT)
    left = room - estimator.text(text) - 12
    previous = estimator.clip(summary.previous, left, "head", marker=_CUT) if left > 0 else ""
    parts = [text, *lists, *([f"## {_PREVIOUS}\n{previous}"] if previous else [])]
    return estimator.clip("\n\n".join(parts), cap, "head", marker=_CUT)


def parse(written: str) -> Summary:
    """The parts of a summary that `fitted` wrote; a text without our headings is all text."""
    headings = [heading for _, heading, _ in _LISTS] + [_PREVIOUS]
    found = re.split(rf"^## ({'|'.join(headings)})\n", written, flags=re.M)
    bodies = dict(zip(found[1::2], found[2::2], strict=True))
    lists = {field: tuple(lines(bodies.get(heading, ""))) for field, heading, _ in _LISTS}
    return Summary(found[0].strip(), previous=bodies.get(_PREVIOUS, "").strip(), **lists)


def tagged(answer: str, tag: str) -> str:
    """What stands between <tag> and its end; a tag that the model forgot to close ends where the next begins."""
    found = re.search(_TAG.format(tag), answer, re.S | re.I)
    return found[1] if found else ""


def _newest(items: Sequence[str], room: int, estimator: Estimator) -> list[str]:
    chosen: list[str] = []
    for item in reversed(items):
        room -= estimator.text(item) + 3
        if room < 0:
            break
        chosen.append(item)
    return chosen[::-1]


def merged(*lists: Iterable[str]) -> tuple[str, ...]:
    """All items once, each where it came last: what matters now stands at the end."""
    latest: dict[str, str] = {}
    for item in (item for one in lists for item in one):
        latest.pop(_same(item), None)
        latest[_same(item)] = item
    return tuple(latest.values())


def _same(item: str) -> str:
    return item.strip().removeprefix("./").rstrip(".").casefold()


def lines(text: str) -> list[str]:
    return [line(_BULLET.sub("", one)) for one in text.splitlines() if _BULLET.sub("", one).strip()]
