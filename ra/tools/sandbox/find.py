"""Which sandbox is at hand? The best that works here, tested before it is used; None when there is none."""

import platform
from collections.abc import Sequence
from typing import Protocol

from ra.tools.paths import Place
from ra.tools.process import Launch
from ra.tools.settings import Sandbox


class Box(Protocol):
    """A place where commands can do no harm.

    `limits` says what it cannot stop, for `ra doctor`. `trouble` says why it cannot hold this project just now, "" when
    it can: such a command is asked for, or refused.
    """

    name: str
    limits: tuple[str, ...]

    @property
    def trouble(self) -> str: ...

    def launch(self, argv: Sequence[str], cwd: str) -> Launch: ...

    def close(self) -> None: ...


def find_sandbox(
    setting: Sandbox, place: Place, *, hidden: tuple[str, ...] = (), system: str | None = None
) -> Box | None:
    """`system` is what `platform.system()` says, unless a test says otherwise."""
    if setting == "off":
        return None
    system = system or platform.system()
    # Loaded when the first command wants to run, and only what this system has.
    if system == "Darwin":
        from ra.tools.sandbox import seatbelt

        return seatbelt.find(place, hidden)
    if system == "Linux":
        from ra.tools.sandbox import bubblewrap, landlock_box

        return bubblewrap.find(place, hidden) or landlock_box.find(place, hidden)
    return None
