"""Remembers which bytes of a project's files the user agreed to, so that only those run, however long `ra` runs."""

import hashlib
import os
from collections.abc import Iterable, Mapping

from ra.system.files import NotRegular, open_resolved


class ChangedSinceAgreed(OSError):
    """A file that is about to run differs from the one that the user agreed to."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} has changed since you agreed to it; run `ra trust`, and start ra again")


class Agreed:
    """The files of this process that the user agreed to, with their hashes at that moment."""

    def __init__(self) -> None:
        self._digests: dict[str, str] = {}
        self._dependencies: dict[str, tuple[str, ...]] = {}

    def register(self, command: str, digests: Mapping[str, str], *, root: str) -> None:
        """Registers files that run together, and with this command in the project `root`."""
        self._digests |= digests
        for name in (*digests, _command_key(command, root)):
            self._dependencies[name] = tuple(dict.fromkeys((*self._dependencies.get(name, ()), *digests)))

    def check_command(self, argv: Iterable[str], cwd: str) -> None:
        """Checks the files that a command may run. Raises ChangedSinceAgreed."""
        if not self._dependencies:
            return
        names = {name for word in argv for name in (os.path.normpath(os.path.join(cwd, word)), _command_key(word, cwd))}
        files = {file for name in names for file in self._dependencies.get(name, ())}
        for file in sorted(files):
            if digest_of(file) != self._digests[file]:
                raise ChangedSinceAgreed(file)

    def check(self, path: str, content: bytes) -> None:
        """Checks the content read from a file that is about to run. Raises ChangedSinceAgreed."""
        if path in self._digests and hashlib.sha256(content).hexdigest() != self._digests[path]:
            raise ChangedSinceAgreed(path)


def _command_key(command: str, root: str) -> str:
    return f"{root}\0{command}"


def digest_of(path: str) -> str:
    """A hash of the file's content; "missing" or "no file" where there is none."""
    try:
        file = open_resolved(path)
    except NotRegular:
        return "no file"
    except (OSError, ValueError):
        return "missing"  # its appearance is then a change
    with file:
        return hashlib.file_digest(file, "sha256").hexdigest()


agreed = Agreed()
"""One per process: plugins and programs are started in places that no object of the configuration reaches."""
