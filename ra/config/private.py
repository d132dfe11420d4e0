"""Reads and writes small files that grant rights. They count only if the user alone can write them."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ra.core.errors import UserError
from ra.system.files import open_regular, write_private


def read(path: Path, kind: Any, *, again: str) -> Any:
    """The file's content, None without a file. `again` says how to recreate it. Raises UserError."""
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
    """The key of a project in such a file: its real path, as text that can be stored."""
    return os.path.realpath(project).encode("utf-8", "backslashreplace").decode()


class Allowed:
    """The rules that the user allowed permanently, by project."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def rules(self, project: Path) -> tuple[str, ...]:
        """The rules of a project. Raises UserError for a file that others can write."""
        return tuple(self._read().get(name_of(project), ()))

    def add(self, project: Path, rule: str) -> None:
        projects = self._read()
        rules = projects.setdefault(name_of(project), [])
        if rule not in rules:
            rules.append(rule)
            write(self.path, projects)

    def remove(self, project: Path, rule: str) -> bool:
        """Remove a rule. Returns False if there is none."""
        projects = self._read()
        if rule not in projects.get(name_of(project), []):
            return False
        projects[name_of(project)].remove(rule)
        write(self.path, projects)
        return True

    def _read(self) -> dict[str, list[str]]:
        return read(self.path, dict[str, list[str]], again="allow it again when asked") or {}
