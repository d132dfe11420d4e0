"""Images that are too large are scaled where Pillow is there, and refused with the reason where it is not."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ra.system import images

PIL = pytest.importorskip("PIL.Image", reason="Pillow is not installed (extra ra-agent[images])")


def picture(width: int, height: int, kind: str = "PNG") -> bytes:
    noise = PIL.frombytes("RGB", (256, 256), os.urandom(256 * 256 * 3)).resize((width, height), PIL.Resampling.NEAREST)
    data = io.BytesIO()
    noise.save(data, kind)
    return data.getvalue()


def test_a_small_image_stays_as_it_is() -> None:
    data = picture(20, 20)
    assert images.fit_image(data) == (data, "image/png")


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_an_image_with_a_long_edge_is_scaled(kind: str) -> None:
    data, media = images.fit_image(picture(9000, 30, kind))
    assert media == "image/jpeg"
    assert PIL.open(io.BytesIO(data)).size[0] == images.SCALED_EDGE


def test_an_image_of_many_bytes_is_scaled() -> None:
    noise = PIL.frombytes("RGB", (1600, 1600), os.urandom(1600 * 1600 * 3))
    data = io.BytesIO()
    noise.save(data, "PNG")
    assert len(data.getvalue()) > images.MAX_BYTES
    scaled, media = images.fit_image(data.getvalue())
    assert (len(scaled) <= images.MAX_BYTES, media) == (True, "image/jpeg")


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n" + b"\xff" * 40, b"\xff\xd8" + b"\xff" * 6_000_000, b"GIF89a"])
def test_a_damaged_image_is_a_sentence_or_goes_as_it_is(data: bytes) -> None:
    try:
        assert images.fit_image(data)[0] == data
    except images.UnfitImage as error:
        assert "is too large" in str(error)  # noqa: PT017 - both ends are fine


@pytest.mark.parametrize(("kind", "media"), [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("WEBP", "image/webp")])
def test_the_type_of_an_image_is_what_its_bytes_say(kind: str, media: str) -> None:
    assert images.fit_image(picture(20, 20, kind))[1] == media


@pytest.mark.parametrize("data", [b"", b"hello", b"%PDF-1.7", b"<svg/>", b"RIFF\0\0\0\0WAVE"])
def test_what_is_no_image_is_refused(data: bytes) -> None:
    with pytest.raises(images.UnfitImage, match="is not a PNG, JPEG, GIF or WebP image"):
        images.fit_image(data)


def test_without_pillow_it_is_refused_with_what_to_install(tmp_path: Path) -> None:
    script = "import sys; sys.modules['PIL'] = None\nfrom ra.system import images\n"
    script += "try: images.fit_image(b'GIF89a' + b'x' * 6_000_000)\nexcept images.UnfitImage as error: print(error)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == (
        "is too large: 6,000,006 bytes, the limit for image/gif is 5,000,000; "
        "pip install 'ra-agent[images]' to scale it\n"
    )
