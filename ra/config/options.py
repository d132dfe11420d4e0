"""The options of a run that come from the command line, never from a file."""

from typing import Literal

from ra.core.value import Value
from ra.tools.settings import Edits


class Options(Value, frozen=True):
    """`edits` unset: as the configuration has it. `read_only`: nothing may be changed, by no tool. `served`: it is a
    task of the HTTP API. `sends`: a model may be asked; a dry run asks none, so that it needs no key.
    """

    tools: bool = True
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    sandbox: Literal["auto", "off"] = "auto"
    edits: Edits | None = None
    read_only: bool = False
    terminal: bool = False
    agent_file: str | None = None
    channel: str = "pipe"
    agent: str = ""  # the named agent, if it is one
    served: bool = False
    sends: bool = True
