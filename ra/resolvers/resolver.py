"""The Resolver port: it knows references of one shape and brings what they stand for."""

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

    `fetch` is the guarded fetcher: (url) → Page with `text`; only http(s), only public addresses. `sent` collects the
    real paths of the files that this prompt attaches, `sent_lines` their ranges: what is named twice is sent once.
    """

    root: Path
    cwd: Path
    fetch: Callable[[str], Awaitable[Any]]
    ask_outside: AskOutside | None = None
    sent: set[str] = msgspec.field(default_factory=set)
    sent_lines: dict[str, list[Lines]] = msgspec.field(default_factory=dict)


class Resolution(Value, frozen=True):
    """What a reference brought: blocks to attach, what the user should know, and names for `--show-context`.

    All empty when the text was no reference after all.
    """

    blocks: tuple[Content, ...] = ()
    warnings: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


class Resolver(Protocol):
    name: str
    pattern: re.Pattern[str]  # with one group: the reference

    async def resolve(self, ref: str, place: ResolverContext, *, in_code: bool) -> Resolution:
        """Bring what `ref` stands for. What fails becomes a warning: the prompt goes on with its text as it is."""
        ...
