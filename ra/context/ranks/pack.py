"""Makes the packed rank file: `python -m ra.context.ranks.pack WHEEL`, from a wheel that carries the original.

`pip download --no-deps llama-index-core` fetches such a wheel. The original file alone is accepted as well.
"""

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

from ra.context.ranks import ORIGINAL_SHA256, PACKED, compress

NAME_IN_WHEEL = "fb374d419588a4632f3f557e76b4b70aebbca790"  # SHA-1 of the address that tiktoken would download from


def read_original(path: Path) -> bytes:
    """The original file, checked. Raises SystemExit when it is not there or not the one that tiktoken expects."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as wheel:
            name = next((name for name in wheel.namelist() if name.endswith(NAME_IN_WHEEL)), None)
            if name is None:
                raise SystemExit(f"{path} holds no file named {NAME_IN_WHEEL}; use a wheel of llama-index-core.")
            original = wheel.read(name)
    else:
        original = path.read_bytes()
    digest = hashlib.sha256(original).hexdigest()
    if digest != ORIGINAL_SHA256:
        raise SystemExit(f"{path}: SHA-256 is {digest}, expected {ORIGINAL_SHA256}.")
    return original


def tokens_of(original: bytes) -> list[bytes]:
    """Lines of `base64 rank` → tokens in the order of their ranks, which must have no holes."""
    ranked = sorted((int(rank), base64.b64decode(token)) for token, rank in map(bytes.split, original.splitlines()))
    if [rank for rank, _ in ranked] != list(range(len(ranked))):
        raise SystemExit("The ranks have holes; this format cannot hold them.")
    return [token for _, token in ranked]


def main(arguments: list[str]) -> None:
    if len(arguments) != 1:
        raise SystemExit("Usage: python -m ra.context.ranks.pack WHEEL|FILE")
    packed = compress(tokens_of(read_original(Path(arguments[0]))))
    PACKED.write_bytes(packed)
    print(f"{PACKED.name}: {len(packed)} bytes, SHA-256 {hashlib.sha256(packed).hexdigest()}")


if __name__ == "__main__":
    main(sys.argv[1:])
