"""Collects a reply from its events: blocks that grow, in every dialect alike."""

from collections.abc import Iterator
from os import urandom
from typing import Literal

from ra.core.errors import BadStream
from ra.core.events import CallDelta, TextDelta, ThinkingDelta
from ra.core.messages import Block, Message, Text, Thinking, ToolCall
from ra.core.model import Reply, Stop, Usage
from ra.providers.dialects.fields import arguments

OUR_ID = "ra_"
UNSEEN = "…"
"""Replaces the arguments of a call that broke off before their first character."""


class BlockDraft:
    """A block that is still being written."""

    def __init__(self, kind: Literal["text", "thinking", "call"], *, id: str = "", name: str = "") -> None:
        self.kind = kind
        self.id = id
        self.name = name
        self.signature = ""
        self.parts: list[str] = []
        self.whole = False  # the provider has declared it complete

    @property
    def written(self) -> str:
        return "".join(self.parts)

    def block(self, *, cut: bool) -> Block | None:
        """The block as a value, None if it is empty. `cut`: the model was interrupted."""
        match self.kind:
            case "text":
                return Text(self.written, self.signature) if self.written or self.signature else None
            case "thinking":
                return Thinking(self.written, self.signature, self.id) if self.written or self.signature else None
            case "call":
                return self._call(cut=cut)

    def _call(self, *, cut: bool) -> ToolCall:
        raw = self.written
        # No arguments mean `{}`, unless the model was interrupted before it could write them.
        args = {} if not raw.strip() and not cut else arguments(raw)
        if args is None:
            return ToolCall(self.id, self.name, {}, broken=raw or UNSEEN, signature=self.signature)
        return ToolCall(self.id, self.name, args, signature=self.signature)


class Draft:
    """The answer of one call. The pieces are in the order of their opening."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.pieces: dict[object, BlockDraft] = {}
        self.usage = Usage()
        self.stop: Stop | None = None

    def piece(self, key: object, kind: Literal["text", "thinking", "call"]) -> BlockDraft:
        """The piece with this key, opened if it is new. Raises BadStream if it is of another kind."""
        piece = self.pieces.setdefault(key, BlockDraft(kind))
        if piece.kind != kind:
            raise BadStream(f"The provider's answer adds {kind} to a block of {piece.kind}.")
        return piece

    def close(self) -> None:
        """Marks all open pieces as complete."""
        for piece in self.pieces.values():
            piece.whole = True

    def said(self) -> Iterator[TextDelta | ThinkingDelta | CallDelta]:
        """The deltas of the whole answer, for one that was not streamed."""
        for piece in self.pieces.values():
            match piece.kind:
                case "text" if piece.written:
                    yield TextDelta(piece.written)
                case "thinking" if piece.written:
                    yield ThinkingDelta(piece.written)
                case "call":
                    yield CallDelta(piece.name)
                case _:
                    pass

    def message(self, *, cut: bool) -> Message:
        last = next(reversed(self.pieces.values()), None)
        blocks = (piece.block(cut=cut and (piece is last or not piece.whole)) for piece in self.pieces.values())
        return Message("assistant", tuple(block for block in blocks if block is not None), model=self.model)

    def reply(self) -> Reply:
        if self.stop is None:
            raise BadStream("The answer broke off before its end.", partial=self.message(cut=True), usage=self.usage)
        message = self.message(cut=self.stop == "length")
        stop = self.stop
        if stop in ("end", "tools"):  # servers disagree on the stop reason of an answer that calls tools
            stop = "tools" if message.calls else "end"
        return Reply(message, self.usage, stop)


def new_id() -> str:
    """An id for a call that came without one. Its prefix marks it as unknown to the provider."""
    return OUR_ID + urandom(8).hex()
