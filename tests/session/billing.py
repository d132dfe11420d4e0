"""A server with a prompt cache: what it read and wrote, by the marks that Anthropic's dialect sets."""

import time
from collections.abc import Callable
from typing import Any

from ra.context.ranks import encoder
from ra.core.value import encode
from ra.costs.promptcache import CachePiece, PromptCache, rules_for


def prompt_cache(
    model: str, *, clock: Callable[[], float] = time.monotonic
) -> Callable[[dict[str, Any]], tuple[int, int]]:
    """For `LoopbackServer(cache=…)`: body → (read, written)."""
    caches: dict[str, PromptCache] = {}

    def bill(body: dict[str, Any]) -> tuple[int, int]:
        pieces: list[CachePiece] = []
        marks: list[int] = []
        blocks = [
            *body.get("tools", []),
            *body.get("system", []),
            *(block for message in body["messages"] for block in message["content"]),
        ]
        for index, block in enumerate(blocks):
            bare = {key: value for key, value in block.items() if key != "cache_control"}
            text = encode(bare).decode()
            pieces.append(CachePiece(encoder.count(text), hash(text)))
            if "cache_control" in block:
                marks.append(index)
        name = body["model"]
        cache = caches.setdefault(name, PromptCache(rules_for(name, "anthropic")))
        usage = cache.send(pieces, now=clock(), marks=marks)
        return usage.cache_read, usage.cache_write

    return bill
