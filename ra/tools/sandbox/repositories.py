"""What git is told in a box: who commits, what it passes over, and to start nothing."""

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
"""Nothing that git would start besides itself."""


def git_env(settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    """What git is told in a box: these settings, and to start nothing."""
    every = (*settings, *_QUIET)
    return {"GIT_CONFIG_COUNT": str(len(every))} | {
        f"GIT_CONFIG_{kind}_{number}": text
        for number, pair in enumerate(every)
        for kind, text in zip(("KEY", "VALUE"), pair, strict=True)
    }


class IgnoredNames:
    """The file of names that git passes over in a box: the user's own ones, and what is masked there."""

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
        """The file's name. It is written anew when other paths are masked."""
        names = [os.path.relpath(path, root) for path in sorted(masked)]
        lines = [os.fsencode("/" + re.sub(r"([\\*?\[])", r"\\\1", name)) for name in names if "\n" not in name]
        content = b"\n".join([self._users, *lines, b""])
        if content != self._content:
            with open(f"{self._file}.new", "wb") as file:
                file.write(content)
            os.replace(f"{self._file}.new", self._file)
            self._content = content
        return self._file
