"""What the provider's side of a dialect does, and what all four of them share."""

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
    """One module per dialect."""

    BASE: str
    """The path that belongs to a base URL."""

    BAD_KEY: tuple[int, str]
    """How a wrong key is refused."""

    def is_call(self, path: str) -> bool:
        """Whether a POST to this path asks for an answer."""
        ...

    def key(self, headers: Mapping[str, str]) -> str:
        """The API key that came with a request; names of headers are in lower case."""
        ...

    def fault(self, body: JsonObject, *, model: str) -> str:
        """What is wrong with this body, in the provider's own words; empty when nothing is."""
        ...

    def overflow(self, sent: int, window: int) -> tuple[JsonObject, str]:
        """The kind and the text of the refusal of a request that is too large."""
        ...

    def refusal(self, status: int, message: str, kind: JsonObject) -> JsonObject:
        """The body of an error answer."""
        ...

    def error_frame(self, status: int, message: str) -> bytes:
        """An error inside a stream."""
        ...

    def turns(self, body: JsonObject) -> int:
        """How many answers of a model the conversation holds."""
        ...

    def frames(self, step: Step, usage: Usage, body: JsonObject, *, model: str, number: int) -> Iterator[bytes]:
        """The server-sent events of one answer."""
        ...


class Wrong(Exception):
    """Raised inside a check with the provider's words."""


def told(check: Callable[[], None]) -> str:
    """What a check says. A body that is not even shaped like one is told so, not crashed on."""
    try:
        check()
    except Wrong as wrong:
        return str(wrong)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        return f"Invalid request: {type(error).__name__}: {error}"
    return ""


def require(condition: object, words: str) -> None:
    if not condition:
        raise Wrong(words)


def seal(thinking: str) -> str:
    """A signature of thinking that a server here can check when it comes back."""
    return SEAL + hashlib.sha256(thinking.encode()).hexdigest()[:24]


def pieces(text: str) -> Iterator[str]:
    return (text[i : i + PIECE] for i in range(0, len(text), PIECE))


def frame(data: JsonObject, event: str = "") -> bytes:
    name = f"event: {event}\n".encode() if event else b""
    return name + b"data: " + encode(data) + b"\n\n"


def call_id(given: str, number: int, index: int, prefix: str) -> str:
    return given or f"{prefix}_{number}_{index}"


def raw_arguments(args: JsonObject, raw: str | None) -> str:
    return encode(args).decode() if raw is None else raw


def countable(value: Any) -> Any:
    """A body without what is not counted as text: pictures and files in base64."""
    if isinstance(value, list):
        return [countable(item) for item in value]
    if isinstance(value, dict):
        return {key: "" if _is_binary(key, item) else countable(item) for key, item in value.items()}
    return value


def _is_binary(key: str, item: object) -> bool:
    return isinstance(item, str) and (item.startswith("data:") or (key in ("data", "file_data") and len(item) > 200))
