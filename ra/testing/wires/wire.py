"""The protocol of the provider's side of a dialect, and what all four dialects share."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from ra.core.model import Usage
from ra.core.value import JsonObject, encode
from ra.providers.script import Step

PIECE = 12
"""Characters in one delta: about three tokens."""

SEAL = "loop-"


class Wire(Protocol):
    """The provider's side of a dialect, implemented by one module for each."""

    BASE: str
    """The path at the end of a base URL."""

    BAD_KEY: tuple[int, str]
    """Status and message of the refusal of a wrong key."""

    def is_call(self, path: str) -> bool:
        """Whether a POST to this path is a model call."""
        ...

    def key(self, headers: Mapping[str, str]) -> str:
        """The API key of a request; header names are in lower case."""
        ...

    def fault(self, body: JsonObject, *, model: str) -> str:
        """What is wrong with this body, in the provider's own words; "" when it is valid."""
        ...

    def overflow(self, sent: int, window: int) -> tuple[JsonObject, str]:
        """The error fields and the message that refuse a request that is too large."""
        ...

    def refusal(self, status: int, message: str, kind: JsonObject) -> JsonObject:
        """The body of an error response."""
        ...

    def error_frame(self, status: int, message: str) -> bytes:
        """An error inside a stream."""
        ...

    def turns(self, body: JsonObject) -> int:
        """The number of model answers in the conversation."""
        ...

    def frames(self, step: Step, usage: Usage, body: JsonObject, *, model: str, number: int) -> Iterator[bytes]:
        """The server-sent events of one answer."""
        ...


class InvalidRequest(Exception):
    """A check failed; the text is the provider's message."""


def fault_of(check: Callable[[], None]) -> str:
    """The message of a failed check, or "". Also reports a body of the wrong shape instead of crashing."""
    try:
        check()
    except InvalidRequest as invalid:
        return str(invalid)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        return f"Invalid request: {type(error).__name__}: {error}"
    return ""


def require(condition: object, message: str) -> None:
    if not condition:
        raise InvalidRequest(message)


def seal(thinking: str) -> str:
    """A signature of thinking that these servers can verify when it is sent back."""
    return SEAL + hashlib.sha256(thinking.encode()).hexdigest()[:24]


def pieces(text: str) -> Iterator[str]:
    return (text[i : i + PIECE] for i in range(0, len(text), PIECE))


def frame(data: JsonObject, event: str = "") -> bytes:
    name = f"event: {event}\n".encode() if event else b""
    return name + b"data: " + encode(data) + b"\n\n"


def call_id(id: str, number: int, index: int, prefix: str) -> str:
    return id or f"{prefix}_{number}_{index}"


def raw_arguments(args: JsonObject, raw: str | None) -> str:
    return encode(args).decode() if raw is None else raw


def countable(value: Any) -> Any:
    """A body without parts that do not count as text: images and files in base64."""
    if isinstance(value, list):
        return [countable(item) for item in value]
    if isinstance(value, dict):
        return {key: "" if _is_binary(key, item) else countable(item) for key, item in value.items()}
    return value


def _is_binary(key: str, item: object) -> bool:
    return isinstance(item, str) and (item.startswith("data:") or (key in ("data", "file_data") and len(item) > 200))
