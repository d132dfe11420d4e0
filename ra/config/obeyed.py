"""Find what of a project other programs run by themselves: files that git's configuration, direnv and mise name.

Git runs them at each `git status` or commit, a prompt of the shell runs `git status`, and direnv and mise run theirs
when the user enters the folder. Nobody asks again when such a file has changed.
"""

# Strings: any text of a file may stand here, and a Path would tidy it first.
# ruff: noqa: PTH111, PTH113, PTH118, PTH119, PTH120

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ra.config.paths import PLAIN_KEYS
from ra.config.reach import inside, reach
from ra.system.files import open_resolved

_WORDS = re.compile(r"[\s\"'`;&|()<>=!,\\]+")
_MAX_BYTES = 1_000_000
_SOURCES = re.compile(r"\s*(?:\.|source\w*|dotenv\w*)\s")
_USES_NIX = re.compile(r"\s*use[_ ](?:flake|nix)\b")
_NIX_FILES = "flake.nix shell.nix default.nix"
_MISE_SECTIONS = ("env", "hooks")


class Setting(NamedTuple):
    section: str
    key: str
    value: str


def settings(text: str) -> Iterator[Setting]:
    """The lines of a git configuration (or of TOML, as far as it looks the same), continued ones among them."""
    section = key = ""
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("[") and "]" in stripped:
            header, _, stripped = stripped.strip("[").partition("]")
            section, key = header.partition('"')[0].strip().casefold(), ""
            stripped = stripped.strip("] \t")
        if not stripped or stripped[0] in "#;":
            continue
        if "=" in stripped:
            key, _, stripped = (part.strip() for part in stripped.partition("="))
        yield Setting(section, key.casefold(), stripped)


def obeyed(root: Path, configs: Iterable[tuple[str, str]], scripts: Iterable[str]) -> tuple[str, ...]:
    """Files and folders of the project. `configs`: git configurations, each with its text. `scripts`: what direnv and
    mise read."""
    top = os.path.realpath(root)
    paths: list[str] = []
    files: list[str] = []
    for config, text in configs:
        for setting in settings(text):
            if setting.key == "hookspath":
                paths.append(_hooks(top, setting.value))
            elif setting.key == "path" and setting.section.startswith("include"):
                paths.append(_joined(os.path.dirname(config), setting.value))
            elif setting.key not in PLAIN_KEYS:
                files += _named(setting.value, top)
    for script in scripts:
        files += _named_by_mise(script, top) if script.endswith(".toml") else _named_by_direnv(script, top)
    paths += [*files, *reach(files, top)]
    return tuple(path for path in dict.fromkeys(paths) if _is_free(path, top))


def _hooks(top: str, value: str) -> str:
    folder = _joined(top, value)
    return os.path.dirname(folder) if os.path.basename(folder) == "_" else folder  # husky's


def _joined(folder: str, value: str) -> str:
    return os.path.realpath(os.path.join(folder, os.path.expanduser(value.strip().strip('"').replace("\0", ""))))


def _named(value: str, top: str) -> Iterator[str]:
    """The files that exist among the words of a command."""
    for word in _WORDS.split(value):
        path = os.path.normpath(os.path.join(top, word)) if word and "\0" not in word else ""
        if path and os.path.isfile(path):
            yield path


def _named_by_mise(file: str, top: str) -> Iterator[str]:
    for setting in settings(_text(file)):
        if setting.section.startswith(_MISE_SECTIONS) or setting.key.startswith(("_.", "env.", "hooks.")):
            yield from _named(setting.value, top)


def _named_by_direnv(file: str, top: str) -> Iterator[str]:
    """What it sources or starts, and so on; `use flake` and `use nix` run what Nix files say."""
    yield from reach((file,), top)[1:]
    for line in _text(file).splitlines():
        if _SOURCES.match(line):
            yield from _named(line, top)
        elif _USES_NIX.match(line):
            yield from _named(_NIX_FILES, top)


def _is_free(path: str, top: str) -> bool:
    """In the project, and not in its repository, which has a boundary of its own."""
    return inside(path, top) and not f"{path}/".startswith(os.path.join(top, ".git", ""))


def _text(file: str) -> str:
    try:
        with open_resolved(file) as opened:
            return opened.read(_MAX_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
