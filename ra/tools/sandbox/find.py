"""Which sandbox is at hand? The best that works here, tested before it is used; None when there is none."""

from collections.abc import Sequence
from typing import Protocol

from ra.tools.paths import Place
from ra.tools.process import Launch
from ra.tools.settings import Sandbox


class Box(Protocol):
    """A place where commands can do no harm. `limits` says what it cannot stop, for `ra doctor`."""

    name: str
    limits: tuple[str, ...]

    def launch(self, argv: Sequence[str], cwd: str) -> Launch: ...

    def close(self) -> None: ...


def find_sandbox(setting: Sandbox, place: Place, *, hidden: tuple[str, ...] = ()) -> Box | None:
    return None
