"""Which bytes of a project's files did the user agree to? Only those run, however long `ra` runs."""

import hashlib
import os
from collections.abc import Iterable, Mapping

from ra.system.files import NotRegular, open_resolved


class ChangedSinceAgreed(OSError):
    """A file that would run has other bytes than those that the user agreed to."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} has changed since you agreed to it; run `ra trust`, and start ra again")


class Agreed:
    """The files of this process that the user agreed to, with the hashes by which that was decided."""

    def __init__(self) -> None:
        self._digests: dict[str, str] = {}
        self._needs: dict[str, tuple[str, ...]] = {}

    def know(self, command: str, digests: Mapping[str, str], *, root: str) -> None:
        """All these files run with each other, and with the command in this project."""
        self._digests |= digests
        for name in (*digests, _named(command, root)):
            self._needs[name] = tuple(dict.fromkeys((*self._needs.get(name, ()), *digests)))

    def check_command(self, argv: Iterable[str], cwd: str) -> None:
        """Raises ChangedSinceAgreed."""
        if not self._needs:
            return
        names = {name for word in argv for name in (os.path.normpath(os.path.join(cwd, word)), _named(word, cwd))}
        files = {file for name in names for file in self._needs.get(name, ())}
        for file in sorted(files):
            if digest_of(file) != self._digests[file]:
                raise ChangedSinceAgreed(file)

    def check(self, path: str, content: bytes) -> None:
        """What was read of a file, before it runs. Raises ChangedSinceAgreed."""
        if path in self._digests and hashlib.sha256(content).hexdigest() != self._digests[path]:
            raise ChangedSinceAgreed(path)


def _named(command: str, root: str) -> str:
    return f"{root}\0{command}"


def digest_of(path: str) -> str:
    """A hash over every byte of a file; a word where there is none."""
    try:
        file = open_resolved(path)
    except NotRegular:
        return "no file"
    except (OSError, ValueError):
        return "missing"  # when it appears, that is a change
    with file:
        return hashlib.file_digest(file, "sha256").hexdigest()


agreed = Agreed()
"""One for the process: code is loaded and programs are started where no object of the configuration comes."""
