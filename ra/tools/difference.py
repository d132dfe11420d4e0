"""Compares two states of a file: hunks with line numbers and three lines of context."""

from collections.abc import Iterator, Sequence

from ra.core.events import ChangedLine, FileChange

CONTEXT = 3  # lines around a change
MAX_LINES = 400  # of one difference
MAX_COMPARED = 3000  # lines; comparing more would take too long, so that is shown as one replacement
BINARY = b"\0"

Region = tuple[int, int, int, int]
"""A range of lines in the old file (from, to) and the range that replaced it in the new file (from, to)."""


def difference(path: str, before: bytes | None, after: bytes) -> FileChange:
    if BINARY in (before or b"")[:8192] or BINARY in after[:8192]:
        return FileChange(path, (), created=before is None, note=_sizes(before, after))
    old_lines, new_lines = _lines(before or b""), _lines(after)
    regions = list(_regions(old_lines, new_lines))
    change = FileChange(
        path,
        tuple(tuple(hunk) for hunk in _hunks(regions, old_lines, new_lines)),
        added=sum(to - start for _, _, start, to in regions),
        removed=sum(to - start for start, to, _, _ in regions),
        created=before is None,
        note=_unseen(before, after),
    )
    return change.at_most(MAX_LINES)


def as_text(change: FileChange) -> str:
    """The difference for faces without colours: a path, then lines with sign and number."""
    width = max((len(str(line.number)) for hunk in change.hunks for line in hunk), default=1)
    hunks = ["\n".join(f"{line.number:>{width}} {line.sign}{line.text}" for line in hunk) for hunk in change.hunks]
    left_out = [f"[{change.left_out} more lines]"] if change.left_out else []
    note = [f"[{change.note}]"] if change.note else []
    return "\n".join([change.path, "\n⋮\n".join(hunks), *left_out, *note])


def _sizes(before: bytes | None, after: bytes) -> str:
    sizes = [f"{len(content):,} byte{'s' * (len(content) != 1)}" for content in (before, after) if content is not None]
    return f"a binary file: {' → '.join(sizes)}"


def _unseen(before: bytes | None, after: bytes) -> str:
    """Changes that lines cannot show: an empty file, the newline at the end, the kind of line ends."""
    if before is None:
        return "" if after else "an empty file"
    if before == after:
        return "nothing changes"
    notes = []
    if before and not after:
        notes.append("the file becomes empty")
    elif before and before.endswith(b"\n") != after.endswith(b"\n"):
        notes.append("a newline at the end" if after.endswith(b"\n") else "no newline at the end any more")
    if (
        before.strip()
        and after.strip()
        and (b"\r\n" in before) != (b"\r\n" in after)
        and b"\n" in before
        and b"\n" in after
    ):
        notes.append("line ends: LF → CRLF" if b"\r\n" in after else "line ends: CRLF → LF")
    return "; ".join(notes)


def _lines(content: bytes) -> list[str]:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace").splitlines()
    return content.decode("utf-8", "replace").splitlines()


def _regions(old: Sequence[str], new: Sequence[str]) -> Iterator[Region]:
    """The changed regions. Equal ends are skipped first: a one-line edit of a long file costs next to nothing."""
    shorter = min(len(old), len(new))
    head = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    tail = next((n for n in range(shorter - head) if old[-1 - n] != new[-1 - n]), shorter - head)
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    if not middle_old and not middle_new:
        return
    if not middle_old or not middle_new or len(middle_old) + len(middle_new) > MAX_COMPARED:
        yield head, len(old) - tail, head, len(new) - tail
        return
    from difflib import SequenceMatcher  # start-up time: only for a change with lines on both sides

    for tag, i1, i2, j1, j2 in SequenceMatcher(None, middle_old, middle_new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield head + i1, head + i2, head + j1, head + j2


def _hunks(regions: Sequence[Region], old: Sequence[str], new: Sequence[str]) -> Iterator[list[ChangedLine]]:
    """The regions as hunks; regions whose context meets share one."""
    hunk: list[ChangedLine] = []
    shown_to = 0  # lines of the new file that the hunks already cover
    for number, (i1, i2, j1, j2) in enumerate(regions):
        start = max(j1 - CONTEXT, shown_to)
        if hunk and start > shown_to:
            yield hunk
            hunk = []
        hunk += [ChangedLine(" ", n + 1, new[n]) for n in range(start, j1)]
        hunk += [ChangedLine("-", n + 1, old[n]) for n in range(i1, i2)]
        hunk += [ChangedLine("+", n + 1, new[n]) for n in range(j1, j2)]
        following = regions[number + 1][2] if number + 1 < len(regions) else len(new)
        shown_to = min(j2 + CONTEXT, following)
        hunk += [ChangedLine(" ", n + 1, new[n]) for n in range(j2, shown_to)]
    if hunk:
        yield hunk
