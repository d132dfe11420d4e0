"""Loads the ranks of o200k_base from a packed file (see ORIGIN.txt), without a network."""

import zlib
from pathlib import Path

PACKED = Path(__file__).with_name("o200k_base.z")

ORIGINAL_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
"""Of the original file, as tiktoken itself checks it."""


def compress(tokens: list[bytes]) -> bytes:
    """Tokens in the order of their ranks → the packed file: their number, each one's length, all their bytes."""
    lengths = bytes(len(token) for token in tokens)
    return zlib.compress(len(tokens).to_bytes(4, "big") + lengths + b"".join(tokens), 9)


def expand(packed: bytes) -> dict[bytes, int]:
    """The packed file → token to rank."""
    plain = zlib.decompress(packed)
    count = int.from_bytes(plain[:4], "big")
    ranks: dict[bytes, int] = {}
    start = 4 + count
    for rank, length in enumerate(plain[4:start]):
        ranks[plain[start : start + length]] = rank
        start += length
    return ranks


def load() -> dict[bytes, int]:
    return expand(PACKED.read_bytes())
