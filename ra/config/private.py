"""How is a small file kept that decides about rights? Ours alone, believed only then, and replaced whole."""

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ra.core.errors import UserError


def read(path: Path, kind: Any, *, again: str) -> Any:
    """What the file holds, None when there is none. `again` says how to come by a new one. Raises UserError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(
            f"{path} cannot be read: {error.strerror}. Make it yours (chmod 600), or delete it and {again}."
        ) from error
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise UserError(f"{path} is not yours alone (chmod 600), so it is not believed. Delete it.")
        data = file.read()
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is damaged ({error}). Delete it and {again}.") from error


def write(path: Path, value: Mapping[str, Any]) -> None:
    replace(path, json.dumps(value, indent=1, sort_keys=True).encode())


def name_of(project: Path) -> str:
    """A project as a key of such a file: where it really is, in text that can be stored."""
    return os.path.realpath(project).encode("utf-8", "backslashreplace").decode()


def replace(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """A new file in place of the old one: a crash leaves one or the other. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    draft.replace(path)
