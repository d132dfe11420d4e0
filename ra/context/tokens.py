"""Counts tokens: one estimator serves every display, trigger and budget."""

import math
import re
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Literal, TypeVar, assert_never

from ra.context.ranks import encoder
from ra.core.messages import Block, Document, Image, Message, Text, Thinking, ToolCall, ToolResult
from ra.core.model import Request, Section, ToolSpec
from ra.core.text import clean
from ra.core.value import encode

MESSAGE = 4  # role and separators, in the known chat formats
BLOCK = 3  # the frame of each further block
CALL = 10  # the frame of a tool call or its result, its id included
TOOL = 12  # the frame of a tool's definition
IMAGE = 1600  # what a picture of 1 568 × 784 costs at Anthropic; providers scale larger ones down to about that
PAGE = 2000  # a page of a PDF: Anthropic names 1 500 to 3 000
PAGE_BYTES = 50_000  # of a PDF whose pages cannot be counted
LARGEST_IMAGE = 5000  # no provider counts more for one picture

LONG = 4096  # characters

_PAGES = re.compile(rb"/Type\s*/Page\b")
_CREDIBLE = (0.2, 6.0)  # reported tokens for one of o200k_base; anything outside is a fault of the report
_LONGEST_CHARACTER = 32  # code points; a family emoji has eleven
_REMEMBERED = 7  # replies that the factor is learned from

Where = Literal["head", "tail", "both"]
T = TypeVar("T")


def scaled(plain: int, rate: float) -> int:
    """Tokens of o200k_base in the model's, rounded up."""
    return math.ceil(round(plain * rate, 6))  # 100 × 1.1 is a little more than 110


class Estimator:
    """Counts in o200k_base, and whole requests in the model's tokens, by a factor learned from its replies.

    Counts are cached: texts by content, messages and tools by identity. Both caches are bounded.
    """

    def __init__(self, factor: float = 1.0) -> None:
        self._factor = min(max(_CREDIBLE[0], factor), _CREDIBLE[1])
        self._observed: deque[tuple[float, int]] = deque(maxlen=_REMEMBERED)
        self._texts: Memory[str] = Memory(_content, weight=8_000_000)
        self._messages: Memory[Message] = Memory(id, weight=8_000_000)
        self._tools: Memory[ToolSpec] = Memory(id, weight=1_000_000)
        self._bounds: Memory[Message] = Memory(id, weight=32_000_000)

    def at(self, factor: float) -> "Estimator":
        """An estimator with another factor and the same cache."""
        twin = Estimator(factor)
        twin._texts, twin._messages, twin._tools, twin._bounds = self._texts, self._messages, self._tools, self._bounds
        return twin

    @property
    def factor(self) -> float:
        """How many of its own tokens the model counts for one of o200k_base."""
        return self._factor

    def text(self, text: str) -> int:
        remembered = self._texts.get(text)
        if remembered is not None:
            return remembered
        return self._texts.put(text, encoder.count(text), weight=min(len(text), LONG))

    def thinking(self, block: Thinking) -> int:
        """The tokens of a thinking block. Sealed thinking is billed at about one token for four characters."""
        return self.text(block.text) if block.text else len(block.signature) // 4

    def message(self, message: Message) -> int:
        remembered = self._messages.get(message)
        if remembered is not None:
            return remembered
        tokens = MESSAGE - BLOCK * bool(message.blocks)
        for block in message.blocks:
            tokens += BLOCK + self._block(block)
        return self._messages.put(message, tokens, weight=tokens)

    def messages(self, messages: Iterable[Message]) -> int:
        return sum(map(self.message, messages))

    def tools(self, specs: Iterable[ToolSpec]) -> int:
        return sum(map(self._tool, specs))

    def section(self, section: Section) -> int:
        return MESSAGE + self.text(section.content)

    def request(self, request: Request) -> int:
        """The size of a request in the model's tokens."""
        plain = sum(map(self.section, request.sections)) + self.tools(request.tools) + self.messages(request.messages)
        return self.scaled(plain)

    def scaled(self, plain: int) -> int:
        """Tokens of o200k_base in the model's, rounded up."""
        return scaled(plain, self._factor)

    def plain(self, tokens: float) -> int:
        """The model's tokens in tokens of o200k_base, rounded down, so that they fit a budget."""
        return int(round(tokens / self._factor, 6))

    def bound(self, request: Request) -> int:
        """An upper bound of `request`, without counting: a token is at least one byte."""
        size = sum(MESSAGE + _bytes(section.content) for section in request.sections)
        size += sum(TOOL + _bytes(_definition(spec)) for spec in request.tools)
        size += sum(map(self._message_bound, request.messages))
        return math.ceil(size * max(1.0, self._factor))

    def clip(self, text: str, keep: int, where: Where = "both", *, marker: str = "…") -> str:
        """At most `keep` tokens (o200k_base) of a text: its head, its tail or both ends, with the marker at the cut.

        Text that fits is returned unchanged. The marker counts; if not even the marker fits, nothing is left.
        """
        if self._fits(text, keep):
            return text
        text = clean(text)
        room = keep - encoder.count(marker)
        while room > 0:
            head = {"head": room, "tail": 0, "both": (room + 1) // 2}[where]
            clipped = _head(text, head) + marker + _tail(text, room - head)
            excess = encoder.count(clipped) - keep
            if excess <= 0:
                return clipped
            room -= excess  # tokens at the seams may not merge as they did before
        return marker if encoder.count(marker) <= keep else ""

    def observe(self, estimated: int, reported: int) -> float:
        """Learn from a reply: the estimate of its request, and the total input that the provider reported.

        The factor is the median of the last seven ratios, weighted by the size of the request. A single odd report does
        not move it, and large requests, which are near a limit, decide. Incredible reports are ignored.
        """
        plain = estimated / self._factor
        ratio = reported / plain if plain > 0 else 0.0
        if _CREDIBLE[0] <= ratio <= _CREDIBLE[1]:
            self._observed.append((ratio, math.ceil(plain)))
            self._factor = _median(self._observed)
        return self._factor

    def _block(self, block: Block) -> int:
        match block:
            case Text():
                return self.text(block.text)
            case Thinking():
                return self.thinking(block)
            case Image():
                return IMAGE
            case Document():
                return self.text(_readable(block)) if _is_text(block) else PAGE * _pages(block)
            case ToolCall():
                return CALL + self.text(block.name) + self.text(block.broken or _json(block.args))
            case ToolResult():
                return CALL + sum(map(self._block, block.content))
            case _:
                assert_never(block)

    def _tool(self, spec: ToolSpec) -> int:
        remembered = self._tools.get(spec)
        if remembered is not None:
            return remembered
        tokens = TOOL + self.text(_definition(spec))
        return self._tools.put(spec, tokens, weight=tokens)

    def _message_bound(self, message: Message) -> int:
        remembered = self._bounds.get(message)
        if remembered is not None:
            return remembered
        size = MESSAGE + sum(BLOCK + _block_bound(block) for block in message.blocks)
        return self._bounds.put(message, size, weight=size)

    def _fits(self, text: str, keep: int) -> bool:
        """Whether it has at most `keep` tokens; decided by the bytes if possible, without encoding the text."""
        return _bytes(text) <= keep or self.text(text) <= keep


class Memory(Generic[T]):
    """A cache in two generations: when the young one is full, it replaces the old one, which is dropped."""

    def __init__(self, key: Callable[[T], object], *, weight: int) -> None:
        self._key = key
        self._room = self._weight = weight
        self._young: dict[object, tuple[T, int] | int] = {}
        self._old: dict[object, tuple[T, int] | int] = {}

    def get(self, thing: T) -> int | None:
        key = self._key(thing)
        remembered = self._young.get(key)
        if remembered is None:
            remembered = self._old.pop(key, None) if self._old else None
            if remembered is None:
                return None
            self._young[key] = remembered
        return remembered if isinstance(remembered, int) else remembered[1]

    def put(self, thing: T, tokens: int, *, weight: int) -> int:
        weight += 64  # what an entry itself takes
        if weight > self._room:
            self._old, self._young, self._room = self._young, {}, self._weight
        self._room -= weight
        # Objects that are looked up by identity are kept alive, so that no other object can get their id.
        self._young[self._key(thing)] = (thing, tokens) if self._key is id else tokens
        return tokens


class MessageList:
    """Messages with running totals of their tokens. It is cut back to the first change and then extended.

    Counting is lazy, and each message is counted once: a further request costs only what was added.
    """

    def __init__(self, estimator: Estimator) -> None:
        self._estimator = estimator
        self._messages: list[Message] = []
        self._totals: list[int] = [0]  # of the first 0, 1, 2… messages, as far as they were counted
        self._frozen: tuple[Message, ...] | None = ()

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def counted(self) -> int:
        """How many messages were counted already."""
        return len(self._totals) - 1

    @property
    def messages(self) -> tuple[Message, ...]:
        if self._frozen is None:
            self._frozen = tuple(self._messages)
        return self._frozen

    def extend(self, messages: Sequence[Message]) -> None:
        if messages:
            self._messages.extend(messages)
            self._frozen = None

    def cut(self, length: int) -> None:
        """Keep only the first so many messages."""
        if length < len(self._messages):
            del self._messages[length:]
            del self._totals[length + 1 :]
            self._frozen = None

    def tokens(self, *, since: int = 0) -> int:
        """Tokens (o200k_base) of the messages from index `since` on."""
        if since > self.counted:  # what lies before was reported by the provider and need not be counted
            return self._estimator.messages(self._messages[since:])
        for message in self._messages[self.counted :]:
            self._totals.append(self._totals[-1] + self._estimator.message(message))
        return self._totals[-1] - self._totals[since]

    def copy(self) -> "MessageList":
        twin = MessageList(self._estimator)
        twin._messages = self._messages.copy()
        twin._totals = self._totals.copy()
        twin._frozen = self._frozen
        return twin


def _content(text: str) -> object:
    """The text itself, or the hash of a long one, so that the cache does not keep it alive."""
    return text if len(text) <= LONG else (len(text), hash(text))


def source_of(message: Message) -> str:
    if message.name:
        return message.name
    match message.blocks:
        case (ToolResult(name=name), *_) if name:
            return f"tool:{name}"
        case _:
            return "conversation"


def _json(value: object) -> str:
    try:
        return encode(value).decode()
    except UnicodeEncodeError:  # a lone surrogate; its size is all that matters here
        return repr(value)


def _definition(spec: ToolSpec) -> str:
    return f"{spec.name}\n{spec.description}\n{_json(spec.schema)}"


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _block_bound(block: Block) -> int:
    match block:
        case Text():
            return _bytes(block.text)
        case Thinking():
            return _bytes(block.text) + len(block.signature)
        case Image():
            return LARGEST_IMAGE
        case Document():
            return _bytes(_readable(block)) if _is_text(block) else PAGE * _pages(block) + len(block.data)
        case ToolCall():
            return CALL + _bytes(block.name) + _bytes(block.broken or _json(block.args))
        case ToolResult():
            return CALL + sum(map(_block_bound, block.content))
        case _:
            assert_never(block)


def _is_text(document: Document) -> bool:
    return document.media_type.startswith("text/")


def _readable(document: Document) -> str:
    return document.data.decode("utf-8", "replace")


def _pages(document: Document) -> int:
    return len(_PAGES.findall(document.data)) or math.ceil(len(document.data) / PAGE_BYTES)


def _median(observed: Iterable[tuple[float, int]]) -> float:
    """The weighted median of the ratios."""
    ordered = sorted(observed)
    half = sum(weight for _, weight in ordered) / 2
    for ratio, weight in ordered:
        half -= weight
        if half <= 0:
            return ratio
    raise ValueError("nothing was observed")


def _head(text: str, tokens: int) -> str:
    """The first so many tokens, or a few less, so that no visible character is split."""
    if tokens <= 0:
        return ""
    cut = len(encoder.decode(_enough(text, tokens, "head")[:tokens]))
    for _ in range(_LONGEST_CHARACTER):
        if 0 < cut < len(text) and _belongs_to_previous(text, cut):
            cut -= 1
    return text[:cut]


def _tail(text: str, tokens: int) -> str:
    if tokens <= 0:
        return ""
    cut = len(text) - len(encoder.decode(_enough(text, tokens, "tail")[-tokens:]))
    for _ in range(_LONGEST_CHARACTER):
        if 0 < cut < len(text) and _belongs_to_previous(text, cut):
            cut += 1
    return text[cut:]


def _enough(text: str, tokens: int, end: Literal["head", "tail"]) -> list[int]:
    """A piece of one end with more than so many tokens, so that a huge text need not be encoded for a short cut."""
    size = tokens * 8
    while True:
        encoded = encoder.encode(text[:size] if end == "head" else text[-size:])
        if len(encoded) > tokens or size >= len(text):
            return encoded
        size *= 2


def _belongs_to_previous(text: str, at: int) -> bool:
    """Whether the character at `at` belongs to the one before it: an accent, a joiner, a variation, a skin tone."""
    character = text[at]
    return (
        unicodedata.category(character) in ("Mn", "Me", "Mc")
        or character == "\u200d"
        or text[at - 1] == "\u200d"
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or (character == "\n" and text[at - 1] == "\r")
    )
