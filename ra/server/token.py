"""The access token, in the data directory, readable by the user alone."""

import os
import secrets
from pathlib import Path

from ra.core.errors import UserError
from ra.system.files import create_private, open_regular

NAME = "serve.token"
SHORTEST = 16


def stored(folder: Path) -> str:
    """The token, made at the first use. Raises UserError when others could have read it."""
    path = folder / NAME
    try:
        token = secrets.token_urlsafe(32)
        create_private(path, f"{token}\n".encode())
    except FileExistsError:
        return _read(path)
    return token


def checked(token: str) -> str:
    """A token that the user chose. Raises UserError."""
    if len(token) < SHORTEST or not (token.isascii() and token.isprintable()) or " " in token:
        raise UserError(f"The token must be at least {SHORTEST} printable ASCII characters without spaces.")
    return token


def _read(path: Path) -> str:
    try:
        with open_regular(path) as file:
            status = os.fstat(file.fileno())
            token = file.read(4096).decode("ascii").strip()
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}. Remove it: a new one is made.") from error
    if status.st_mode & 0o077 or status.st_uid != os.geteuid() or len(token) < SHORTEST:
        raise UserError(f"{path} is not private to you, or is not a token. Remove it: a new one is made.")
    return token
