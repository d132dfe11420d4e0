"""Checks after each compaction that text which must be kept is still there, and puts back what was lost, verbatim."""

import asyncio
import re
import sys
from collections.abc import Iterable, Sequence

import msgspec

from ra.context.render import text_of
from ra.context.view import Group, Position, View
from ra.core.errors import ConfigError
from ra.core.facts import Checkpointed, Fact
from ra.core.messages import Message
from ra.core.value import encode

TIMEOUT_S = 3.0  # for one pattern over the new text of a session
LONGEST = 4000  # characters of one match
MATCHES = 200  # of one pattern, the newest

# A pattern such as (a+)+$ can take for ever, and nothing but the end of its process stops it.
_SEARCH = """
import json, re, sys
pattern, texts = json.load(sys.stdin)
json.dump([[match.group(0) for match in re.finditer(pattern, text)] for text in texts], sys.stdout)
"""


class MustKeep:
    """Finds text that matches the patterns. The matches of each group are cached."""

    def __init__(self, patterns: Sequence[str]) -> None:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ConfigError(
                    f"agent.context.mustKeep: {pattern!r} is not a valid regular expression: {error}; correct it."
                ) from error
        self._patterns = tuple(patterns)
        self._matches: dict[Position, tuple[str, ...]] = {}
        self._slow: set[str] = set()

    async def lost(self, before: View, after: View) -> tuple[list[str], list[str]]:
        """The matches of the segment that the new request lacks, oldest first; and warnings."""
        if not self._patterns:
            return [], []
        groups = sorted((*before.hidden, *before.groups), key=lambda group: group.place)
        warnings = await self._search(
            [group for group in groups if group.place not in self._matches and not group.open]
        )
        matches = dict.fromkeys(match for group in groups for match in self._matches.get(group.place, ()))
        visible = "\n".join(_visible(after))
        return [match for match in matches if match not in visible], warnings

    async def _search(self, groups: Sequence[Group]) -> list[str]:
        texts = ["\n".join(map(_text, (item.message for item in group.items))) for group in groups]
        matches_of: list[list[str]] = [[] for _ in groups]
        warnings = []
        for pattern in self._patterns:
            matches = None if pattern in self._slow else await _matches(pattern, texts)
            if matches is None:
                self._slow.add(pattern)
                warnings.append(f"mustKeep: {pattern!r} took longer than {TIMEOUT_S:g} s and is no longer checked.")
                continue
            for matched, matches_here in zip(matches_of, matches, strict=True):
                matched += [match for match in matches_here[-MATCHES:] if match.strip() and len(match) <= LONGEST]
        self._matches.update((group.place, tuple(matched)) for group, matched in zip(groups, matches_of, strict=True))
        return warnings


async def _matches(pattern: str, texts: Sequence[str]) -> list[list[str]] | None:
    """The matches of a pattern in each text; None if the search took too long."""
    if not any(texts):
        return [[] for _ in texts]
    if re.escape(pattern) == pattern or pattern.replace(" ", "").isalnum():
        return [[pattern] if pattern in text else [] for text in texts]
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", "-c", _SEARCH, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(TIMEOUT_S):
            output, _ = await child.communicate(encode([pattern, texts]))
    except TimeoutError:
        return None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    return msgspec.json.decode(output, type=list[list[str]])


def _text(message: Message) -> str:
    """All text of a message, with the arguments and results of its calls."""
    return "\n".join((text_of(message), *(encode(call.args).decode() for call in message.calls)))


def _visible(view: View) -> Iterable[str]:
    yield from (section.content for section in view.sections)
    yield from map(_text, view.messages)


def put_back(facts: Sequence[Fact], words: str, summary: str) -> list[Fact]:
    """The facts of a compaction, with these words added to the marker of its gap; without a gap, to the first prompt.

    Of several gaps, the last one gets the words: it replaces the others, and a marker may be shortened afterwards.
    """
    mended = list(facts)
    checkpoints = [(index, fact) for index, fact in enumerate(facts) if isinstance(fact, Checkpointed)]
    if not words or not checkpoints:
        return mended
    marked = next((number for number, (_, fact) in reversed(list(enumerate(checkpoints))) if fact.marker), None)
    later = checkpoints[marked + 1 :] if marked is not None else []
    stands = marked is not None and not any(clip.block < 0 for _, fact in later for clip in fact.clips)
    index, fact = checkpoints[marked] if marked is not None and stands else checkpoints[-1]
    if stands:
        mended[index] = msgspec.structs.replace(fact, marker=f"{fact.marker}\n{words}")
    else:
        mended[index] = msgspec.structs.replace(fact, summary=f"{fact.summary or summary}\n\n{words}".strip())
    return mended
