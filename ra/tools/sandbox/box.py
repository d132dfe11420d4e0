"""Defines what a sandbox for commands is: what it hides, what a command may do beyond it, and what surrounds it."""

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
    """What a sandbox needs to know outside its project.

    `hidden`: ra's own data and configuration. `readable`: further readable paths. `box_home`: the folder that replaces
    the home directory, "" for a temporary one per session. `env`: the user's environment, which names programs.
    """

    hidden: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    box_home: str = ""
    env: Mapping[str, str] = {}


IN_THE_BOX = Access()
NOWHERE = Host()


class Box(Protocol):
    """A place where commands can do no harm.

    `limits` says what it cannot prevent, for `ra doctor`. `trouble` says why it cannot protect this project at the
    moment, "" if it can: then a command is asked for, or refused.
    """

    name: str
    limits: tuple[str, ...]

    @property
    def trouble(self) -> str: ...

    def launch(self, argv: Sequence[str], cwd: str, *, network: bool = False, git: bool = False) -> Launch: ...

    def close(self) -> None: ...
