"""Which token opens the door? One that lies in the data directory, for the user alone to read."""

import os
import secrets
from pathlib import Path

from ra.core.errors import UserError

NAME = "serve.token"
SHORTEST = 16


def stored(folder: Path) -> str:
    """The token, made at the first use. Raises UserError when others could have read it."""
    path = folder / NAME
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return _read(path)
    made = secrets.token_urlsafe(32)
    with os.fdopen(file, "w") as new:
        new.write(made + "\n")
    return made


def checked(token: str) -> str:
    """A token that the user chose. Raises UserError."""
    if len(token) < SHORTEST or not (token.isascii() and token.isprintable()) or " " in token:
        raise UserError(f"The token must be at least {SHORTEST} printable ASCII characters without spaces.")
    return token


def _read(path: Path) -> str:
    try:
        found = path.lstat()
        token = path.read_text("ascii").strip()
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}. Remove it: a new one is made.") from error
    if found.st_mode & 0o077 or found.st_uid != os.geteuid() or path.is_symlink() or len(token) < SHORTEST:
        raise UserError(f"{path} is not private to you, or is no token. Remove it: a new one is made.")
    return token
