"""The base of every value in ra: a frozen struct with a `type` tag.

`msgspec.Struct` and not a dataclass: each frozen, slotted dataclass costs 0.5 ms of start-up, a struct 0.013 ms,
and its declaration also reads and writes the JSON that the timeline stores.
"""

import re
from collections.abc import Sequence
from operator import is_
from typing import Any

import msgspec

_CAPITALS = re.compile(r"(?<!^)(?=[A-Z])")

JsonObject = dict[str, Any]

MAX_NESTING = 100
"""Levels of lists and objects allowed in a model's JSON: more than tools need, far fewer than overflow the stack."""


def tag_of(class_name: str) -> str:
    """`ToolCall` is tagged `tool-call`."""
    return _CAPITALS.sub("-", class_name).lower()


class Value(msgspec.Struct, frozen=True, tag_field="type", tag=tag_of, omit_defaults=True, gc=False):
    """Base of all values. Two values are equal when their types and fields are.

    Values are trees, so the garbage collector need not look at them: 16 bytes less each, and shorter pauses.
    """


def same_head(old: Sequence[object], new: Sequence[object]) -> int:
    """The length of the common prefix, compared by identity: what a request shares with the previous one.

    Requests grow, so usually one is a prefix of the other. `all(map(…))` detects that without a Python loop.
    """
    shared = min(len(old), len(new))
    if all(map(is_, old, new)):
        return shared
    pairs = zip(old, new, strict=False)
    return next(index for index, (old_item, new_item) in enumerate(pairs) if old_item is not new_item)


def encode(value: Any) -> bytes:
    """The JSON of a value, for every caller: equal values give equal bytes."""
    return msgspec.json.encode(value)


def too_deep(value: Any, most: int = MAX_NESTING) -> bool:
    """Whether JSON nests deeper than `most` levels. Checked level by level: recursion would overflow the stack."""
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
