"""Keep small files that decide about rights: owned by the user, believed only then, replaced as a whole."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ra.core.errors import UserError
from ra.system.files import open_regular, write_private


def read(path: Path, kind: Any, *, again: str) -> Any:
    """What the file holds, None when there is none. `again` says how to come by a new one. Raises UserError."""
    try:
        file = open_regular(path)
    except (FileNotFoundError, NotADirectoryError):  # HOME may be /dev/null
        return None
    except OSError as error:
        raise UserError(
            f"{path} cannot be read: {error.strerror}. Make it yours (chmod 600), or delete it and {again}."
        ) from error
    with file:
        status = os.fstat(file.fileno())
        if status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise UserError(f"{path} is not yours alone (chmod 600), so it is not believed. Delete it.")
        content = file.read()
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is damaged ({error}). Delete it and {again}.") from error


def write(path: Path, value: Mapping[str, Any]) -> None:
    write_private(path, json.dumps(value, indent=1, sort_keys=True).encode())


def name_of(project: Path) -> str:
    """A project as a key of such a file: where it really is, in text that can be stored."""
    return os.path.realpath(project).encode("utf-8", "backslashreplace").decode()


class Allowed:
    """The rules that the user allowed in a project for good."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def rules(self, project: Path) -> tuple[str, ...]:
        """Raises UserError for a file that cannot be believed."""
        return tuple(self._read().get(name_of(project), ()))

    def add(self, project: Path, rule: str) -> None:
        projects = self._read()
        rules = projects.setdefault(name_of(project), [])
        if rule not in rules:
            rules.append(rule)
            write(self.path, projects)

    def remove(self, project: Path, rule: str) -> bool:
        """False when it was not there."""
        projects = self._read()
        if rule not in projects.get(name_of(project), []):
            return False
        projects[name_of(project)].remove(rule)
        write(self.path, projects)
        return True

    def _read(self) -> dict[str, list[str]]:
        return read(self.path, dict[str, list[str]], again="allow it again when asked") or {}
