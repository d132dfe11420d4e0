"""What a box for commands is: what it keeps from them, what a command may do beyond it, and what is around it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from ra.core.value import Value
from ra.system.process import Launch


class Access(Value, frozen=True):
    """What a command may do beyond the sandbox: leave it, use the network in it, write the repository."""

    outside: bool = False
    network: bool = False
    git: bool = False


class Host(Value, frozen=True):
    """What concerns a box outside its project.

    `hidden`: ra's own data and configuration. `readable`: more that may be read. `box_home`: the folder that stands
    for the home directory, "" for one that goes with the session. `env`: the user's, which names programs.
    """

    hidden: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    box_home: str = ""
    env: Mapping[str, str] = {}


IN_THE_BOX = Access()
NOWHERE = Host()


class Box(Protocol):
    """A place where commands can do no harm.

    `limits` says what it cannot stop, for `ra doctor`. `trouble` says why it cannot hold this project just now, "" when
    it can: such a command is asked for, or refused.
    """

    name: str
    limits: tuple[str, ...]

    @property
    def trouble(self) -> str: ...

    def launch(self, argv: Sequence[str], cwd: str, *, network: bool = False, git: bool = False) -> Launch: ...

    def close(self) -> None: ...
