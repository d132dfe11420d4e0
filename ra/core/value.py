"""What every value in ra is made of: a frozen struct with a `type` tag.

`msgspec.Struct` and not a dataclass: a frozen, slotted dataclass costs 0.5 ms of start-up each, a struct 0.013 ms,
and the same declaration also reads and writes the JSON that the timeline stores.
"""

import re
from collections.abc import Sequence
from operator import is_
from typing import Any

import msgspec

_CAPITALS = re.compile(r"(?<!^)(?=[A-Z])")

JsonObject = dict[str, Any]

MAX_NESTING = 100
"""Levels of lists and objects in what a model writes: far more than a tool needs, far less than a stack holds."""


def tag_of(class_name: str) -> str:
    """`ToolCall` is tagged `tool-call`."""
    return _CAPITALS.sub("-", class_name).lower()


class Value(msgspec.Struct, frozen=True, tag_field="type", tag=tag_of, omit_defaults=True, gc=False):
    """Base of all values. Two values are equal when their types and fields are.

    Values are trees, so the garbage collector need not look at them: 16 bytes less each, and shorter pauses.
    """


def same_head(old: Sequence[object], new: Sequence[object]) -> int:
    """How many items both begin with, the very same objects: what a request shares with the one before it.

    Requests grow, so mostly the one is the head of the other, and that is seen without a loop of ours.
    """
    shared = min(len(old), len(new))
    if all(map(is_, old, new)):
        return shared
    return next(number for number, (one, other) in enumerate(zip(old, new, strict=False)) if one is not other)


def encode(value: Any) -> bytes:
    """The one way that values become JSON: same value, same bytes."""
    return msgspec.json.encode(value)


def too_deep(value: Any, most: int = MAX_NESTING) -> bool:
    """Does JSON nest deeper than this? Seen level by level: a walk down would end where the stack does."""
    level = [value]
    for _ in range(most):
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True
