"""Turns any text into o200k_base tokens, fast and safely."""

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from ra.context import ranks

if TYPE_CHECKING:
    import tiktoken

# tiktoken panics on a megabyte of blanks and slows down on endless words, so that text is encoded in pieces.
_PIECE = 4096
_STRETCH = 1024
# A blank after something that is none always begins a new token, so that a cut before it changes no count.
_SEAM = re.compile(r"(?<=\S) ")

# As tiktoken_ext.openai_public spells it; that module cannot be used, since it downloads the ranks.
_PATTERN = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)


@cache
def encoding() -> "tiktoken.Encoding":
    """o200k_base, loaded once (0.3 s); without its special tokens, since text that spells one is just text."""
    import tiktoken  # with its ranks it costs 0.3 s, and most runs end before any limit is near

    return tiktoken.Encoding("o200k_base", pat_str=_PATTERN, mergeable_ranks=ranks.load(), special_tokens={})


def pieces(text: str) -> Iterator[str]:
    """Text in pieces of 4 to 5 thousand characters, cut where it changes no count if there is such a place."""
    start = 0
    while len(text) - start > _PIECE + _STRETCH:
        seam = _SEAM.search(text, start + _PIECE, start + _PIECE + _STRETCH)
        end = seam.start() if seam else start + _PIECE + _STRETCH
        yield text[start:end]
        start = end
    yield text[start:] if start else text


def count(text: str) -> int:
    encode = encoding().encode_ordinary
    if len(text) <= _PIECE + _STRETCH:
        return len(encode(text))
    return sum(len(encode(piece)) for piece in pieces(text))


def encode(text: str) -> list[int]:
    encode_piece = encoding().encode_ordinary
    return [token for piece in pieces(text) for token in encode_piece(piece)]


def decode(tokens: list[int]) -> str:
    """Their text. Characters that only half of their bytes are left of, at either end, are dropped."""
    return encoding().decode_bytes(tokens).decode("utf-8", "ignore")
