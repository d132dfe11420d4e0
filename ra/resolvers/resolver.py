"""The protocol of resolvers: each recognises one form of reference and loads what it refers to."""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ra.core.messages import Content
from ra.core.value import Value

AskOutside = Callable[[Path], Awaitable[bool]]
"""Asks the user whether something outside the project may be read."""


Lines = tuple[int, int | None]  # the first and the last; None: to the end


class ResolverContext(msgspec.Struct, frozen=True):
    """Where a reference was typed: the `ctx` of a custom resolver.

    `fetch` is the guarded fetcher: (url) → FetchedPage with `text`; only http(s), only public addresses. `sent` holds
    the real paths of the files that this prompt attaches, `sent_lines` their ranges: each is sent only once.
    """

    root: Path
    cwd: Path
    fetch: Callable[[str], Awaitable[Any]]
    ask_outside: AskOutside | None = None
    sent: set[str] = msgspec.field(default_factory=set)
    sent_lines: dict[str, list[Lines]] = msgspec.field(default_factory=dict)


class Resolution(Value, frozen=True):
    """The result of a reference: blocks to attach, warnings for the user, and names for `--show-context`.

    All are empty when the text is not a reference after all.
    """

    blocks: tuple[Content, ...] = ()
    warnings: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


class Resolver(Protocol):
    name: str
    pattern: re.Pattern[str]  # with one group: the reference

    async def resolve(self, ref: str, place: ResolverContext, *, in_code: bool) -> Resolution:
        """Loads what `ref` refers to. A failure becomes a warning: the prompt is sent with its text unchanged."""
        ...
