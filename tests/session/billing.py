"""A server with a prompt cache: what it read and wrote, by the marks that Anthropic's dialect sets."""

import time
from collections.abc import Callable
from typing import Any

from ra.context.ranks import encoder
from ra.core.value import encode
from ra.costs.promptcache import CachePiece, PromptCache, rules_for

FRAME = encoder.count('{"role":"user","content":[]},')


def prompt_cache(
    model: str, *, clock: Callable[[], float] = time.monotonic
) -> Callable[[dict[str, Any]], tuple[int, int]]:
    """For `LoopbackServer(cache=…)`: body → (read, written)."""
    caches: dict[str, PromptCache] = {}

    def bill(body: dict[str, Any]) -> tuple[int, int]:
        pieces: list[CachePiece] = []
        marks: list[int] = []
        groups = [body.get("tools", []), body.get("system", []), *(message["content"] for message in body["messages"])]
        for blocks in groups:
            for number, block in enumerate(blocks):
                bare = {key: value for key, value in block.items() if key != "cache_control"}
                text = encode(bare).decode()
                # What frames a message is in the cache with it, as at any provider.
                pieces.append(CachePiece(encoder.count(text) + (FRAME if not number else 1), hash(text)))
                if "cache_control" in block:
                    marks.append(len(pieces) - 1)
        name = body["model"]
        cache = caches.setdefault(name, PromptCache(rules_for(name, "anthropic")))
        usage = cache.send(pieces, now=clock(), marks=marks)
        return usage.cache_read, usage.cache_write

    return bill
