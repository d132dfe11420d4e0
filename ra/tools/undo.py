"""How is the last turn's writing taken back? From what each file held before."""

from ra.tools.files import read_whole, remove_file, replace_file
from ra.tools.tool import Mistake

KEPT_TURNS = 20
KEPT_BYTES = 64_000_000


class Undo:
    """What the file tools changed, turn by turn. A turn begins with the user's prompt."""

    def __init__(self) -> None:
        self._turns: list[dict[str, tuple[bytes | None, bytes]]] = []

    def begin_turn(self) -> None:
        """Call before a prompt is worked on. A turn that changed nothing leaves no trace."""
        if not self._turns or self._turns[-1]:
            self._turns.append({})
        del self._turns[:-KEPT_TURNS]

    def take_over(self, other: "Undo") -> None:
        """Go on with what another has kept: the same session, wired anew."""
        self._turns = other._turns

    def note(self, path: str, before: bytes | None, after: bytes) -> None:
        """A file is changed: None means that it was not there."""
        if not self._turns:
            self._turns.append({})
        turn = self._turns[-1]
        first = turn[path][0] if path in turn else before
        turn[path] = (first, after)
        while len(self._turns) > 1 and self._size() > KEPT_BYTES:
            self._turns.pop(0)

    def restore_last(self) -> list[str]:
        """Put back what the last turn changed; one line per file on what was done."""
        while self._turns and not self._turns[-1]:
            self._turns.pop()
        if not self._turns:
            return []
        lines = []
        for path, (before, after) in sorted(self._turns.pop().items()):
            lines.append(_restore(path, before, after))
        return lines

    def _size(self) -> int:
        return sum(len(before or b"") + len(after) for turn in self._turns for before, after in turn.values())


def _restore(path: str, before: bytes | None, after: bytes) -> str:
    try:
        now: bytes | None = read_whole(path)
    except Mistake:  # it is gone, or no file any more
        now = None
    if now != after:
        return f"left {path}: it has been changed since"
    if before is None:
        remove_file(path)
        return f"removed {path}"
    replace_file(path, before)
    return f"restored {path}"
