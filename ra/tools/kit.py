"""What do the built-in tools work with? All that a session has for them; each takes what it needs."""

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from ra.core.facts import Entry
from ra.tools.builtin.bash import Shell
from ra.tools.paths import Place
from ra.tools.tool import Output
from ra.tools.undo import Undo

Recall = Callable[[str], Awaitable[str]]
Fetch = Callable[[str], Awaitable[str]]
"""An address → its page as text; raises OSError or Mistake for what cannot be had."""

RunAgent = Callable[[str], Awaitable[Output]]
"""A task → the sub-agent's answer; what it cost comes back as facts."""


class Kit(msgspec.Struct, frozen=True):
    """A tool whose callable is None is not there.

    `readable` says whether Read might show a file without asking: what may not be read is not searched either.
    `entries` gives the live ones.
    """

    place: Place
    undo: Undo
    shell: Shell
    timeout_s: float
    readable: Callable[[str], bool]
    recall: Recall | None = None
    entries: Callable[[], Sequence[Entry]] | None = None
    run_agent: RunAgent | None = None
    fetch: Fetch | None = None
