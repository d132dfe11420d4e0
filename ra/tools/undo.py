"""Reverts the writes of the last turns, from the previous content of each file."""

from ra.system.files import remove_file
from ra.tools.files import read_whole, replace_file
from ra.tools.tool import Mistake

KEPT_TURNS = 20
KEPT_BYTES = 64_000_000


class Undo:
    """The changes of the file tools, turn by turn. A turn begins with the user's prompt."""

    def __init__(self) -> None:
        self._turns: list[dict[str, tuple[bytes | None, bytes]]] = []
        self._began: list[int] = []  # the timeline position at which each turn began

    def begin_turn(self, at: int = 0) -> None:
        """Begins a turn, before its prompt runs, at this timeline position. A turn without changes leaves no trace."""
        if not self._turns or self._turns[-1]:
            self._turns.append({})
            self._began.append(at)
        self._began[-1] = at
        del self._turns[:-KEPT_TURNS], self._began[:-KEPT_TURNS]

    def take_over(self, other: "Undo") -> None:
        """Takes over the other's history: the same session continues with new objects."""
        self._turns, self._began = other._turns, other._began

    def note(self, path: str, before: bytes | None, after: bytes) -> None:
        """Notes the change of a file. `before` is None if the file did not exist."""
        if not self._turns:
            self._turns.append({})
            self._began.append(0)
        turn = self._turns[-1]
        first = turn[path][0] if path in turn else before
        turn[path] = (first, after)
        while len(self._turns) > 1 and self._size() > KEPT_BYTES:
            self._turns.pop(0)
            self._began.pop(0)

    def restore_last(self) -> list[str]:
        """Restores the files that the last turn changed. Returns one line per file."""
        while self._turns and not self._turns[-1]:
            self._pop()
        return self._restore_turn() if self._turns else []

    def restore_since(self, at: int) -> list[str]:
        """Restores the files of all turns that began at this position or later, the newest turn first."""
        lines: list[str] = []
        while self._turns and self._began[-1] >= at:
            lines += self._restore_turn()
        return lines

    def changed_since(self, at: int) -> list[str]:
        """The files that the turns since this position changed."""
        turns = zip(self._began, self._turns, strict=True)
        return sorted({path for began, turn in turns if began >= at for path in turn})

    def _restore_turn(self) -> list[str]:
        return [_restore(path, before, after) for path, (before, after) in sorted(self._pop().items())]

    def _pop(self) -> dict[str, tuple[bytes | None, bytes]]:
        self._began.pop()
        return self._turns.pop()

    def _size(self) -> int:
        return sum(len(before or b"") + len(after) for turn in self._turns for before, after in turn.values())


def _restore(path: str, before: bytes | None, after: bytes) -> str:
    try:
        now: bytes | None = read_whole(path)
    except Mistake:  # deleted, or no longer a file
        now = None
    if now != after:
        return f"left {path}: it has been changed since"
    if before is None:
        remove_file(path)
        return f"removed {path}"
    replace_file(path, before)
    return f"restored {path}"
