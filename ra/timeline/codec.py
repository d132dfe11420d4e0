"""How does a fact become bytes and back?"""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from ra.core.errors import StoreError
from ra.core.facts import Fact, TimelineEvent
from ra.core.value import encode

_facts = msgspec.json.Decoder(Fact)
_DEEP = 20_000

T = TypeVar("T")


def tag(fact: Fact) -> str:
    """`said`, `spent`, `entry-set` …"""
    return str(fact.__struct_config__.tag)


def encoded(fact: Fact) -> bytes:
    return _however_deep(encode, fact)


def event_of(at: int, time: float, fact: bytes) -> TimelineEvent:
    try:
        return TimelineEvent(at, time, _however_deep(_facts.decode, fact))
    except msgspec.DecodeError as error:
        raise StoreError(f"The event at position {at} is damaged and cannot be read: {error}.") from error


def _however_deep(convert: Callable[[Any], T], value: Any) -> T:
    # A model may nest the arguments of a call as deep as its dialect could just read. What was recorded once must
    # be readable for ever, from a deeper stack too.
    try:
        return convert(value)
    except RecursionError:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, _DEEP))
        try:
            return convert(value)
        finally:
            sys.setrecursionlimit(limit)
