"""Configures git in a sandbox: the committer, the ignored files, and that it starts nothing."""

import os
import re
from collections.abc import Iterable, Sequence

from ra.system.files import open_resolved
from ra.tools.sandbox.box import Host
from ra.tools.sandbox.host import expanded

_CONFIG_BYTES = 1_000_000
EXCLUDES_KEY = "core.excludesfile"
_QUIET = (
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("diff.external", ""),
    ("submodule.recurse", "false"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("gc.auto", "0"),
)
"""Prevents git from starting other programs."""


class Skipped:
    """What git would do outside, by the user's configuration, and skips in a sandbox. The result reports it."""

    def __init__(self, identity: Sequence[tuple[str, str]], git_dir: str) -> None:
        values = {key.casefold(): value for key, value in identity}
        self._log = os.path.join(git_dir, "logs/HEAD")
        signs = _own_word(os.path.join(git_dir, "config")) or values.get("commit.gpgsign", "")
        self._words = [
            *(["commits are not signed"] if signs.casefold() in ("true", "yes", "on", "1") else []),
            *(["the hooks of your core.hooksPath do not run"] if values.get("core.hookspath") else []),
        ]
        self._before = self._state()

    def notes(self) -> list[str]:
        """Empty as long as git has moved nothing."""
        moved = self._words and self._state() != self._before
        return [f"In the sandbox {' and '.join(self._words)}. Tell the user."] if moved else []

    def _state(self) -> tuple[int, int]:
        try:
            status = os.stat(self._log)
        except OSError:
            return (0, 0)
        return status.st_mtime_ns, status.st_size


def _own_word(config: str) -> str:
    """What the repository itself configures about signing."""
    try:
        with open_resolved(config) as file:
            text = file.read(_CONFIG_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
    return "".join(re.findall(r"^\s*gpgsign\s*=\s*(\w+)", text, re.IGNORECASE | re.MULTILINE)[-1:])


def git_env(settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The configuration of git in a sandbox: these settings, and no programs."""
    every = (*settings, *_QUIET)
    return {"GIT_CONFIG_COUNT": str(len(every))} | {
        f"GIT_CONFIG_{kind}_{number}": text
        for number, pair in enumerate(every)
        for kind, text in zip(("KEY", "VALUE"), pair, strict=True)
    }


class IgnoredNames:
    """The file of names that git ignores in a sandbox: the user's own, and the masked ones."""

    def __init__(self, file: str, identity: Sequence[tuple[str, str]], host: Host, home: str) -> None:
        self._file = file
        above = host.env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
        names = [value for key, value in identity if key == EXCLUDES_KEY] or [os.path.join(above, "git/ignore")]
        try:
            with open_resolved(expanded(names[-1], home)) as opened:
                self._users = opened.read(_CONFIG_BYTES)
        except (OSError, ValueError):
            self._users = b""
        self._content: bytes | None = None

    def written(self, masked: Iterable[str], root: str) -> str:
        """The file's name. Writes it again if other paths are masked."""
        names = [os.path.relpath(path, root) for path in sorted(masked)]
        lines = [os.fsencode("/" + re.sub(r"([\\*?\[])", r"\\\1", name)) for name in names if "\n" not in name]
        content = b"\n".join([self._users, *lines, b""])
        if content != self._content:
            with open(f"{self._file}.new", "wb") as file:
                file.write(content)
            os.replace(f"{self._file}.new", self._file)
            self._content = content
        return self._file
