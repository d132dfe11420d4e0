"""Fits images to models: providers refuse one with too many bytes, too long an edge or another type than it says."""

import io
import struct

from ra.system.files import IMAGE_TYPES, media_type

MAX_BYTES = 5_000_000  # the providers' limit for one image
MAX_EDGE = 8000  # pixels; Anthropic refuses more
SCALED_EDGE = 2000  # models scale images down even further
MAX_SOURCE_BYTES = 50_000_000  # the largest file that is read for scaling

INSTALL = "pip install 'ra-agent[images]' to scale it"


class UnfitImage(Exception):
    """An image that no provider takes; the text gives the reason and a remedy."""


def fit_image(data: bytes) -> tuple[bytes, str]:
    """The image, scaled down if necessary, and its media type: what its bytes say, whatever its name or server says.

    Raises UnfitImage.
    """
    media = media_type(data)
    if media not in IMAGE_TYPES:
        raise UnfitImage("is not a PNG, JPEG, GIF or WebP image")
    width, height = _edges(data)
    if len(data) <= MAX_BYTES and max(width, height) <= MAX_EDGE:
        return data, media
    why = f"{len(data):,} bytes" if len(data) > MAX_BYTES else f"{width:,} × {height:,} pixels"
    limit = f"{MAX_BYTES:,}" if len(data) > MAX_BYTES else f"{MAX_EDGE:,}"
    if len(data) > MAX_SOURCE_BYTES:
        raise UnfitImage(f"is too large: {why}, and images above {MAX_SOURCE_BYTES:,} bytes are not scaled")
    try:
        from PIL import Image  # an optional extra: most installations send no large images
    except ImportError as error:
        raise UnfitImage(f"is too large: {why}, the limit for {media} is {limit}; {INSTALL}") from error
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.thumbnail((SCALED_EDGE, SCALED_EDGE))
            opaque = image.mode in ("RGB", "L", "CMYK", "YCbCr")
            target, kind = (image.convert("RGB"), "JPEG") if opaque else (image.convert("RGBA"), "PNG")
            scaled = io.BytesIO()
            target.save(scaled, kind, **({"quality": 85} if kind == "JPEG" else {"optimize": True}))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise UnfitImage(
            f"is too large ({why}) and cannot be scaled: it is damaged, or in an unknown format"
        ) from error
    if len(scaled.getvalue()) > MAX_BYTES:
        raise UnfitImage(f"is too large ({why}), even after scaling")
    return scaled.getvalue(), f"image/{kind.lower()}"


def _edges(data: bytes) -> tuple[int, int]:
    """Width and height from the header of a PNG, GIF or JPEG; 0 where it does not contain them."""
    try:
        if data.startswith(b"\x89PNG"):
            return struct.unpack(">II", data[16:24])
        if data.startswith(b"GIF8"):
            return struct.unpack("<HH", data[6:10])
        if data.startswith(b"\xff\xd8"):
            return _jpeg_edges(data)
    except struct.error:
        pass
    return 0, 0


def _jpeg_edges(data: bytes) -> tuple[int, int]:
    place = 2
    while place + 9 < len(data) and data[place] == 0xFF:
        kind, size = data[place + 1], struct.unpack(">H", data[place + 2 : place + 4])[0]
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[place + 5 : place + 9])
            return width, height
        place += 2 + size
    return 0, 0
