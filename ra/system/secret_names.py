"""Recognises files that hold secrets by their names, for everything that would show a file to a model."""

import os
import re
import unicodedata
from fnmatch import fnmatchcase


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


TOKEN_NAMES = _words(
    ".env .env.* .envrc *.env .netrc _netrc .pgpass .pypirc .git-credentials .htpasswd .dockercfg .vault-token "
    "credentials credentials.json credentials.toml client_secret*.json service-account*.json "
    "secrets.y*ml secrets.json secrets.toml id_rsa* id_dsa* id_ecdsa* id_ed25519*"
)
KEY_NAMES = _words("*.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk")
"""Often test certificates: Read asks before it reads them, but a box shows them."""

HARMLESS_NAMES = _words(".env.example .env.sample .env.template .env.dist example.env sample.env *.pub")
SECRET_DIRS = _words(".ssh .aws .gnupg .password-store .1password")
_REPOSITORY, _ITS_SETTINGS = ".git", _words("config config.worktree")
"""Where a clone keeps the token it was fetched with: in an address, or as a header."""

_INVISIBLE = re.compile(
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)


def fold(name: str) -> str:
    """A name as the most tolerant file system would compare it.

    macOS and Windows ignore case and the normal form of accents, HFS+ ignores invisible characters, Windows trailing
    dots and spaces: `.Git`, `.g\\u200cit` and `.git.` may all be `.git`.
    """
    return unicodedata.normalize("NFKC", _INVISIBLE.sub("", name)).casefold().rstrip(" .") or name


def is_secret(path: str) -> bool:
    """Whether a file may hold secrets, judged by its name and its folders."""
    *folders, name = [fold(part) for part in path.split(os.sep) if part] or [""]
    if any(folder in SECRET_DIRS for folder in (*folders, name)) or (_REPOSITORY in folders and name in _ITS_SETTINGS):
        return True
    return holds_token(name) or matches(name, KEY_NAMES)


def holds_token(name: str) -> bool:
    """Whether files with this (folded) name usually hold credentials."""
    return matches(name, TOKEN_NAMES) and not matches(name, HARMLESS_NAMES)


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
