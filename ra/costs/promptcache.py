"""What would a provider's prompt cache make of a request? Tokens read, written and new, as it would bill them.

One simulator serves `ra context` (cached or new), the loopback test servers (their usage figures) and the bench.
A request is a list of pieces in the order of the wire: tools, system, messages, one piece per content block.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from ra.core.model import Usage
from ra.core.value import Value

LIFETIME_S = 300.0
LONG_LIFETIME_S = 3600.0
MAX_MARKS = 4
LOOKBACK = 20


class Piece(NamedTuple):
    """One block of a request: its size, and a number that differs when its content does."""

    tokens: int
    content: int


class CacheRules(Value, frozen=True):
    """How one provider caches.

    `marks`: the prefix is kept where the request says so (Anthropic). `automatic`: it is kept by itself, in steps
    (OpenAI, Google). `none`: not at all. A prefix below `minimum` tokens is never kept. What was used within
    `lifetime_s` is still there, and using it starts the time anew. With `writes`, new tokens that enter the cache are
    billed as cache writes, otherwise as plain input.
    """

    kind: Literal["marks", "automatic", "none"]
    minimum: int = 1024
    step: int = 1
    lifetime_s: float = LIFETIME_S
    writes: bool = False


def rules_for(
    model: str, provider: str = "", *, write_costs_more: bool = False, long_lived: bool = False
) -> CacheRules:
    """The rules of a model by its name, or by its provider when the name says nothing.

    `write_costs_more` is what its price row says: OpenAI's newer models bill writes, the older ones do not.
    """
    name = model.lower()
    lifetime = LONG_LIFETIME_S if long_lived else LIFETIME_S
    if "claude" in name or (provider == "anthropic" and "/" not in name):
        return CacheRules("marks", _anthropic_minimum(name), lifetime_s=lifetime, writes=True)
    if "gemini" in name or provider == "google":
        return CacheRules("automatic", 4096 if "pro" in name else 2048, writes=write_costs_more)
    if provider in ("local", "scripted"):
        return CacheRules("automatic", 0, lifetime_s=LONG_LIFETIME_S)
    return CacheRules("automatic", 1024, 128, lifetime_s=lifetime, writes=write_costs_more)


def _anthropic_minimum(name: str) -> int:
    """Published minimums: 4 096 since Opus 4.5 and for Haiku 4.5, 2 048 for older Haikus, 1 024 for the rest."""
    if "haiku" in name:
        return 2048 if "-3" in name else 4096
    older = ("opus-4-0", "opus-4-1", "opus-4.1", "opus-4-2025", "3-opus", "opus-3")
    if "opus" in name and not any(part in name for part in older) and not name.endswith("opus-4"):
        return 4096
    return 1024


class PromptCache:
    """The cache of one model, as one account sees it. Pure apart from what it remembers: the clock is given."""

    def __init__(self, rules: CacheRules) -> None:
        self._rules = rules
        self._expires: dict[int, float] = {}  # prefix → when it is gone
        self._pieces: Sequence[Piece] = ()
        self._prefixes: list[int] = []
        self._sizes: list[int] = []

    def look(self, pieces: Sequence[Piece], *, now: float, marks: Sequence[int] = ()) -> Usage:
        """How the request would be billed, without sending it. Output is not counted."""
        self._walk(pieces)
        return self._bill(self._hit(now, self._marked(marks, len(pieces))), self._marked(marks, len(pieces)))

    def send(self, pieces: Sequence[Piece], *, now: float, marks: Sequence[int] = ()) -> Usage:
        """How the request is billed; afterwards its prefix is in the cache.

        `marks` are the indexes of the pieces after which the prefix may be kept; only the last four count.
        """
        self._walk(pieces)
        kept = self._marked(marks, len(pieces))
        hit = self._hit(now, kept)
        until = now + self._rules.lifetime_s
        for prefix in self._prefixes[:hit]:  # using a prefix is using every prefix of it
            if prefix in self._expires:
                self._expires[prefix] = until
        for end in range(hit, len(pieces)) if self._rules.kind == "automatic" else kept:
            if self._sizes[end] >= self._rules.minimum:
                self._expires[self._prefixes[end]] = until
        return self._bill(hit, kept)

    def clear(self) -> None:
        """Something outside the conversation has spoilt the cache: another system prompt, another account."""
        self._expires.clear()

    def warm(self, *, now: float) -> bool:
        """Is anything of the last request still there?"""
        return any(self._expires.get(prefix, 0.0) >= now for prefix in reversed(self._prefixes))

    def _marked(self, marks: Sequence[int], count: int) -> list[int]:
        if self._rules.kind != "marks":
            return [count - 1] if self._rules.kind == "automatic" and count else []
        return sorted(mark for mark in set(marks) if 0 <= mark < count)[-MAX_MARKS:]

    def _walk(self, pieces: Sequence[Piece]) -> None:
        """Chain the hashes of all prefixes; only from the first piece that differs from the last request's."""
        old, same = self._pieces, 0
        limit = min(len(old), len(pieces))
        while same < limit and (old[same] is pieces[same] or old[same] == pieces[same]):
            same += 1
        del self._prefixes[same:], self._sizes[same:]
        prefix = self._prefixes[-1] if same else 0
        size = self._sizes[-1] if same else 0
        for piece in pieces[same:]:
            prefix = hash((prefix, piece.content))
            size += piece.tokens
            self._prefixes.append(prefix)
            self._sizes.append(size)
        self._pieces = pieces

    def _hit(self, now: float, marks: list[int]) -> int:
        """How many pieces at the head are in the cache: from each mark back by up to twenty blocks, the longest."""
        back = len(self._prefixes) if self._rules.kind == "automatic" else LOOKBACK
        for mark in reversed(marks):
            for end in range(mark, max(-1, mark - back), -1):
                if self._expires.get(self._prefixes[end], -1.0) >= now:
                    return end + 1
        return 0

    def _bill(self, hit: int, marks: list[int]) -> Usage:
        rules, sizes = self._rules, self._sizes
        total = sizes[-1] if sizes else 0
        read = sizes[hit - 1] // rules.step * rules.step if hit else 0
        if read < rules.minimum:
            read = 0
        kept = sizes[marks[-1]] if marks else 0
        written = kept - read if rules.writes and kept >= rules.minimum else 0
        return Usage(input=total - read - written, cache_read=read, cache_write=max(0, written))
