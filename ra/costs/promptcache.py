"""Simulates a provider's prompt cache: tokens read, written and new, as the provider would bill them.

One simulator serves `ra context` (cached or new), the loopback test servers (their usage figures) and the bench.
A request is a list of pieces in the order in which they are sent: tools, system, messages; one per content block.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Literal, NamedTuple

import msgspec

from ra.core.model import Usage
from ra.core.value import Value, same_head

LIFETIME_S = 300.0
LONG_LIFETIME_S = 3600.0
MAX_MARKS = 4
LOOKBACK = 20


class CachePiece(NamedTuple):
    """One block of a request: its size, and a number that differs when its content does."""

    tokens: int
    content: int


class CacheRules(Value, frozen=True):
    """How one provider caches.

    `marks`: prefixes are cached where the request marks them (Anthropic). `automatic`: prefixes are cached in steps of
    `step` tokens (OpenAI, Google). `none`: nothing is cached. A prefix below `minimum` tokens is never cached. It stays
    for `lifetime_s`, and each use starts that time again. With `writes`, new tokens that enter the cache are billed as
    cache writes, otherwise as plain input.
    """

    kind: Literal["marks", "automatic", "none"]
    minimum: int = 1024
    step: int = 1
    lifetime_s: float = LIFETIME_S
    writes: bool = False


class VendorRules(NamedTuple):
    """The published rules of a family of models. `names` matches what a model's name contains."""

    names: str
    rules: CacheRules
    source: str


_ANTHROPIC = "https://platform.claude.com/docs/en/build-with-claude/prompt-caching"
_OPENAI = "https://developers.openai.com/api/docs/guides/prompt-caching"
_GOOGLE = "https://ai.google.dev/gemini-api/docs/caching"
_DEEPSEEK = "https://api-docs.deepseek.com/guides/kv_cache"

VENDORS = (
    VendorRules(r"claude.*-3\b.*haiku|claude.*haiku-?3", CacheRules("marks", 2048, writes=True), _ANTHROPIC),
    VendorRules(r"claude.*haiku", CacheRules("marks", 4096, writes=True), _ANTHROPIC),
    VendorRules(
        r"claude.*(?:opus-4-[01]\b|opus-4\.1|opus-4-2025|3-opus|opus-3|opus-4$)",
        CacheRules("marks", 1024, writes=True),
        _ANTHROPIC,
    ),
    VendorRules(r"claude.*opus", CacheRules("marks", 4096, writes=True), _ANTHROPIC),
    VendorRules(r"claude", CacheRules("marks", 1024, writes=True), _ANTHROPIC),
    # Google does not say how long an automatically cached prefix lives.
    VendorRules(r"gemini-2", CacheRules("automatic", 2048), _GOOGLE),
    VendorRules(r"gemini", CacheRules("automatic", 4096), _GOOGLE),
    # "Typically 5 to 10 minutes of inactivity", never more than an hour.
    VendorRules(r"gpt|codex|(?:^|/)o[134]\b", CacheRules("automatic", 1024, 128, lifetime_s=600.0), _OPENAI),
    # "A few hours to a few days": the shortest of these.
    VendorRules(r"deepseek", CacheRules("automatic", 64, 64, lifetime_s=LONG_LIFETIME_S), _DEEPSEEK),
)
"""First match wins. The bench corrects these rules by a session's own bills: see `ra.bench.lessons`."""

_OTHER = CacheRules("automatic", 1024, 128)
_BY_PROVIDER = {"anthropic": "claude", "google": "gemini-2.5-flash"}


@cache
def rules_for(
    model: str, provider: str = "", *, write_costs_more: bool = False, long_lived: bool = False
) -> CacheRules:
    """The rules for a model, by its name or, for an unknown name, by its provider.

    `write_costs_more` comes from its price row: OpenAI's newer models bill writes, the older ones do not.
    """
    rules = _vendor_rules(model.lower())
    if rules is None and provider in _BY_PROVIDER and "/" not in model:
        rules = _vendor_rules(_BY_PROVIDER[provider])
    if rules is None and provider in ("local", "scripted"):
        return CacheRules("automatic", 0, lifetime_s=LONG_LIFETIME_S)
    rules = rules or _OTHER
    lifetime_s = max(LONG_LIFETIME_S, rules.lifetime_s) if long_lived else rules.lifetime_s
    return msgspec.structs.replace(rules, lifetime_s=lifetime_s, writes=rules.writes or write_costs_more)


@cache
def _vendor_rules(name: str) -> CacheRules | None:
    return next((vendor.rules for vendor in VENDORS if re.search(vendor.names, name)), None)


class PromptCache:
    """The cache of one model, as one account sees it. The time is passed in."""

    def __init__(self, rules: CacheRules) -> None:
        self._rules = rules
        self._expires: dict[int, float] = {}  # prefix → when it is gone
        self._lives: dict[int, float] = {}  # prefix → for how long it is kept after each use
        self._pieces: Sequence[CachePiece] = ()
        self._prefixes: list[int] = []
        self._sizes: list[int] = []

    def look(self, pieces: Sequence[CachePiece], *, now: float, marks: Sequence[int] = ()) -> Usage:
        """How the request would be billed; nothing enters the cache. Output is not counted."""
        self._walk(pieces)
        return self._bill(self._hit(now, self._marked(marks, len(pieces))), self._marked(marks, len(pieces)))

    def send(
        self, pieces: Sequence[CachePiece], *, now: float, marks: Sequence[int] = (), lifetime_s: float | None = None
    ) -> Usage:
        """How the request is billed; afterwards its prefix is in the cache.

        `marks` are the indexes of the pieces after which the prefix may be cached; only the last four count. What is
        written stays for `lifetime_s` (default: as the rules say). What is read keeps the lifetime of its write.
        """
        self._walk(pieces)
        marked = self._marked(marks, len(pieces))
        hit = self._hit(now, marked)
        for prefix in self._prefixes[:hit]:  # using a prefix is using every prefix of it
            if prefix in self._expires:
                self._expires[prefix] = now + self._lives.get(prefix, self._rules.lifetime_s)
        life = self._rules.lifetime_s if lifetime_s is None else lifetime_s
        for end in range(hit, len(pieces)) if self._rules.kind == "automatic" else marked:
            if self._sizes[end] >= self._rules.minimum:
                prefix = self._prefixes[end]
                if end >= hit:
                    self._lives[prefix] = life
                self._expires[prefix] = now + self._lives.get(prefix, self._rules.lifetime_s)
        return self._bill(hit, marked)

    def forget(self, pieces: Sequence[CachePiece], *, beyond: int) -> None:
        """Drop everything beyond so many tokens: after a restart, on another machine, or when a provider evicted it."""
        self._walk(pieces)
        alive = {prefix for prefix, size in zip(self._prefixes, self._sizes, strict=True) if size <= beyond}
        self._expires = {prefix: until for prefix, until in self._expires.items() if prefix in alive}

    def revive(self, pieces: Sequence[CachePiece], *, up_to: int, now: float) -> None:
        """Add the first so many tokens, whatever the rules say: another session wrote them, or kept them alive."""
        self._walk(pieces)
        for prefix, size in zip(self._prefixes, self._sizes, strict=True):
            if size > up_to:
                break
            self._expires[prefix] = now + self._rules.lifetime_s

    def warm(self, *, now: float) -> bool:
        """Whether any prefix of the last request is still cached."""
        return any(self._expires.get(prefix, 0.0) >= now for prefix in reversed(self._prefixes))

    def _marked(self, marks: Sequence[int], count: int) -> list[int]:
        if self._rules.kind != "marks":
            return [count - 1] if self._rules.kind == "automatic" and count else []
        return sorted(mark for mark in set(marks) if 0 <= mark < count)[-MAX_MARKS:]

    def _walk(self, pieces: Sequence[CachePiece]) -> None:
        """Chain the hashes of all prefixes, starting at the first piece that differs from the last request."""
        before, unchanged = self._pieces, same_head(self._pieces, pieces)
        limit = min(len(before), len(pieces))
        while unchanged < limit and before[unchanged] == pieces[unchanged]:
            unchanged += 1
        del self._prefixes[unchanged:], self._sizes[unchanged:]
        prefix = self._prefixes[-1] if unchanged else 0
        size = self._sizes[-1] if unchanged else 0
        for piece in pieces[unchanged:]:
            prefix = hash((prefix, piece.content))
            size += piece.tokens
            self._prefixes.append(prefix)
            self._sizes.append(size)
        self._pieces = pieces

    def _hit(self, now: float, marks: list[int]) -> int:
        """The number of leading pieces that are cached: the longest prefix within twenty blocks before a mark."""
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
        marked = sizes[marks[-1]] if marks else 0
        writes = marked - read if rules.writes and marked >= rules.minimum else 0
        return Usage(input=total - read - writes, cache_read=read, cache_write=max(0, writes))
