"""How does a fact become bytes and back, and what is kept text called?"""

import msgspec

from ra.core.errors import StoreError
from ra.core.facts import Fact, TimelineEvent

_facts = msgspec.json.Decoder(Fact)


def tag(fact: Fact) -> str:
    """`said`, `spent`, `entry-set` …"""
    return str(fact.__struct_config__.tag)


def event_of(at: int, time: float, fact: bytes) -> TimelineEvent:
    try:
        return TimelineEvent(at, time, _facts.decode(fact))
    except msgspec.DecodeError as error:
        raise StoreError(f"The event at position {at} is damaged and cannot be read: {error}.") from error


def reference(text: str) -> str:
    """Text is named by its content: `~` and twelve hex digits."""
    from hashlib import sha256  # loads OpenSSL, which most runs do not need

    return "~" + sha256(text.encode()).hexdigest()[:12]
