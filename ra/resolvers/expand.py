"""Resolves the references of a prompt once, and only in what the user typed."""

import os
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ra.core.errors import UserError
from ra.core.messages import Content
from ra.core.text import shown
from ra.core.value import Value
from ra.resolvers import file_content
from ra.resolvers.files import Files, blocks
from ra.resolvers.resolver import AskOutside, Resolver, ResolverContext
from ra.resolvers.urls import Urls
from ra.system.files import similar_names

MAX_REFERENCES = 50
MAX_MATCHES = 1000  # a prompt of a megabyte may have an @ on every line

_FENCE = re.compile(r"^(```+|~~~+)[^\n]*\n.*?(?:^\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"(?<!`)(`+)(?!`)[^\n]*?(?<!`)\1(?!`)")
_DECORATOR = re.compile(r"^[ \t]*@[\w.]+(\(.*\))?[ \t]*(#.*)?\n(?=\s*(@|def |async def |class ))", re.MULTILINE)


class Reference(Value, frozen=True):
    """A resolved reference: the typed text, its resolver, and the names of what it attached."""

    text: str
    resolver: str
    names: tuple[str, ...]


class Expansion(Value, frozen=True):
    """The prompt as typed, its attachments, and warnings for the user.

    `failed` are the warnings of references that attached nothing: ask the user about them before paying for a call.
    """

    text: str
    blocks: tuple[Content, ...] = ()
    warnings: tuple[str, ...] = ()
    references: tuple[Reference, ...] = ()
    failed: tuple[str, ...] = ()


def builtin() -> tuple[Resolver, ...]:
    return (Files(), Urls())


async def expand(
    text: str,
    *,
    root: Path,
    cwd: Path,
    resolvers: Sequence[Resolver],
    fetch: Callable[[str], Awaitable[Any]] | None = None,
    ask_outside: AskOutside | None = None,
    sent: set[str] | None = None,
) -> Expansion:
    """Resolves the references in what the user typed. Where several resolvers match, a custom one takes precedence.

    `sent` holds the real paths of the files that this prompt attaches.
    """
    sent = set() if sent is None else sent
    place = ResolverContext(root=root, cwd=cwd, fetch=fetch or _fetch, ask_outside=ask_outside, sent=sent)
    attached: list[Content] = []
    warnings: list[str] = []
    references: list[Reference] = []
    failed: list[str] = []
    seen: set[tuple[str, str]] = set()
    custom_first = sorted(resolvers, key=lambda resolver: isinstance(resolver, Files | Urls))
    for count, (resolver, match, in_code) in enumerate(_find(text, custom_first)):
        if count == MAX_MATCHES or len(references) == MAX_REFERENCES:
            warnings.append(f"Only the first {len(references)} references of this prompt were resolved.")
            break
        if (resolver.name, match[1]) in seen:
            continue
        seen.add((resolver.name, match[1]))
        resolved = await resolver.resolve(match[1], place, in_code=in_code)
        attached += resolved.blocks
        warnings += (warning for warning in resolved.warnings if warning not in warnings)
        if not resolved.blocks and not resolved.names:
            failed += (warning for warning in resolved.warnings if warning not in failed)
        else:
            references.append(Reference(match[0], resolver.name, resolved.names))
    return Expansion(text, tuple(attached), tuple(warnings), tuple(references), tuple(failed))


async def _fetch(url: str) -> Any:
    from ra.resolvers.fetch import fetch  # ssl and h11 are only needed for a URL

    return await fetch(url)


def attach(path: str, *, cwd: Path, sent: set[str] | None = None) -> Expansion:
    """The attachment of `--file PATH`, which may be outside the project. A file in `sent` is not sent again.

    Raises UserError.
    """
    try:
        full = os.path.realpath(cwd / Path(path).expanduser())
    except (ValueError, RuntimeError):  # a NUL, a lone surrogate, the home of an unknown user
        full = ""
    name = shown(path)
    if not os.path.exists(full):  # noqa: PTH110 - a name that is too long must be missing, not an exception
        similar = similar_names(*os.path.split(full), most=2)
        hint = f" Did you mean {' or '.join(map(shown, similar))}?" if similar else ""
        raise UserError(f"--file {name}: file not found.{hint}")
    reference = Reference(f"--file {name}", "file", (path,))
    if sent is not None and full in sent:
        return Expansion("", references=(reference,))
    try:
        loaded = file_content.load(full, name=Path(full).name)
    except file_content.Unreadable as reason:
        advice = " Use @ and the folder's name in the prompt." if "a folder" in str(reason) else ""
        advice = advice or (" Pipe it in instead: command | ra …" if "a named pipe" in str(reason) else "")
        raise UserError(f"--file {name}: it {reason}.{advice}") from reason
    warnings = (f"--file {name}: {loaded.left_out}.",) if loaded.left_out else ()
    if sent is not None:
        sent.add(full)
    return Expansion("", blocks(path, loaded), warnings, (reference,))


def _find(text: str, resolvers: Sequence[Resolver]) -> Iterator[tuple[Resolver, re.Match[str], bool]]:
    """Yields references from left to right, never nested, and whether each is within inline code."""
    fenced = [match.span() for pattern in (_FENCE, _DECORATOR) for match in pattern.finditer(text)]
    quoted = [match.span() for match in _INLINE.finditer(text)]
    matches = [
        (match.start(), order, resolver, match)
        for order, resolver in enumerate(resolvers)
        for match in resolver.pattern.finditer(text)
    ]
    end = 0
    for start, _, resolver, match in sorted(matches, key=lambda item: item[:2]):
        if start >= end and not _within(start, fenced):
            end = match.end()
            yield resolver, match, _within(start, quoted)


def _within(position: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start <= position < end for start, end in spans)
