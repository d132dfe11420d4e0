"""Checks in a sandbox, before its command, that the mounts are the intended ones.

Bubblewrap mounts by name. A background job can replace a folder with a link between our check and the mount: then a key
elsewhere would be mounted as a file of the project, or a protected file would not be covered. A folder that is itself a
mount, in the job's sandbox too, cannot be moved; the contents of others are compared with the kernel's list of mounts.
"""

import os
from collections.abc import Collection, Iterator, Sequence

_BINDS = ("--bind", "--ro-bind")
_SCRIPT = """\
all=$'\\n'
while read -r _ _ device root point _; do all+="$point"$'\\n'"$device $root $point"$'\\n'; done < /proc/self/mountinfo
while [[ $1 != -- ]]; do
  if [[ $all != *$'\\n'"$1"$'\\n'* ]]; then
    echo 'Folders were moved while the command was being started, so it was not run. Run it again.' >&2
    exit 75
  fi
  shift
done
shift
exec "$@"
"""


def checked(argv: Sequence[str], mounts: Sequence[str], root: str, steady: Collection[str]) -> Sequence[str]:
    """Puts the check before the command. `steady`: folders that nobody can move, whose entries need no check."""
    doubtful = [pair for pair in _pairs(mounts) if pair[1].startswith(f"{root}/") and _folder(pair[1]) not in steady]
    if not doubtful:
        return argv
    outside = _Mounts()
    expected = [outside.line(target) if source == target else _escaped(target) for source, target in doubtful]
    return ["bash", "--noprofile", "--norc", "-c", _SCRIPT, "ra", *expected, "--", *argv]


def _pairs(mounts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The source and the target of each mount; "" for a mount without a source."""
    for place, word in enumerate(mounts):
        if word in _BINDS:
            yield mounts[place + 1], mounts[place + 2]
        elif word == "--tmpfs":
            yield "", mounts[place + 1]


def _folder(path: str) -> str:
    return os.path.dirname(path)


class _Mounts:
    """The mounts outside, which show the name under which the kernel knows a file."""

    def __init__(self) -> None:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            rows = [line.split(" ", 5) for line in file]
        self._rows = {row[4]: (row[2], row[3]) for row in rows}

    def line(self, path: str) -> str:
        """This path in the sandbox's own list, if mounted at the same place."""
        escaped = _escaped(path)
        point = escaped
        while point not in self._rows:
            point = os.path.dirname(point)
        device, root = self._rows[point]
        below = escaped[len(point) :].strip("/")
        return f"{device} {os.path.join(root, below) if below else root} {escaped}"


def _escaped(path: str) -> str:
    """A path in the kernel's notation."""
    return path.replace("\\", "\\134").replace(" ", "\\040").replace("\t", "\\011").replace("\n", "\\012")
