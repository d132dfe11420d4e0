"""What is in this file, as the model can take it? Text, an image or a PDF; everything else is refused with a reason."""

import os
import stat
import time
from typing import BinaryIO

from ra.core.messages import Document, Image
from ra.core.value import Value

MAX_TEXT_BYTES = 400_000
MAX_IMAGE_BYTES = 5_000_000  # what providers take in one image
MAX_PDF_BYTES = 20_000_000
MAX_SCAN_S = 1.5  # for the lines far down in a large file

_IMAGES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
_SAMPLE = 8192


class Unreadable(Exception):
    """Why a file is not attached."""


class Loaded(Value, frozen=True):
    """A file's content. `left_out` is empty when it is whole."""

    content: str | Image | Document
    size: int
    left_out: str = ""


def load(path: str, *, limit: int = MAX_TEXT_BYTES, name: str = "") -> Loaded:
    """A whole file, or as much of a text as `limit` bytes. Raises Unreadable."""
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(_SAMPLE)
        if media := _media_type(head):
            return Loaded(_media(file, head, media, size, name), size)
        _check_text(head)
        data = head + file.read(limit + 1 - len(head)) if len(head) <= limit else head
    if len(data) <= limit:
        return Loaded(_text(data), size)
    return Loaded(_whole_lines(data[:limit]), size, f"the first {limit} of {max(size, len(data))} bytes")


def load_lines(path: str, first: int, last: int | None, *, limit: int = MAX_TEXT_BYTES) -> Loaded:
    """Lines `first` to `last`, counted from 1. Raises Unreadable."""
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(_SAMPLE)
        if _media_type(head):
            raise Unreadable("has no lines: it is no text")
        _check_text(head)
        file.seek(0)
        skipped = _skip(file, first - 1)
        if skipped < first - 1 or not (line := file.readline(limit + 1)):
            raise Unreadable(f"has only {skipped + _unfinished(file)} lines")
        data = bytearray()
        number = first
        while line and len(data) <= limit and (last is None or number <= last):
            data += line
            number += line.endswith(b"\n")
            line = file.readline(limit + 1)
    if len(data) > limit:
        return Loaded(_whole_lines(bytes(data[:limit])), size, f"the first {limit} bytes of these lines")
    final = number - data.endswith(b"\n")
    ended = f"the file ends at line {final}" if last is not None and final < last else ""
    return Loaded(_text(bytes(data)), size, ended)


def open_plain(path: str) -> BinaryIO:
    """Open a plain file. Not blocking on a FIFO, not following a link: the path has been resolved already."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from error
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise Unreadable(f"is {_kind(mode)}, not a plain file")
    return os.fdopen(descriptor, "rb")


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a directory"
    if stat.S_ISFIFO(mode):
        return "a FIFO"
    return "a device" if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else "a socket"


def _media_type(head: bytes) -> str:
    if head.startswith(b"%PDF-"):
        return "application/pdf"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((media for magic, media in _IMAGES.items() if head.startswith(magic)), "")


def _media(file: BinaryIO, head: bytes, media: str, size: int, name: str) -> Image | Document:
    limit = MAX_PDF_BYTES if media == "application/pdf" else MAX_IMAGE_BYTES
    data = head + file.read(limit + 1 - len(head))
    if len(data) > limit:
        raise Unreadable(f"is too large: {size} bytes, the limit for {media} is {limit}")
    return Document(media, data, name) if media == "application/pdf" else Image(media, data)


def _check_text(head: bytes) -> None:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return  # UTF-16 says so itself
    if b"\0" in head:
        raise Unreadable("is binary")
    text = head.decode("utf-8", "replace")
    odd = sum(char == "\ufffd" or (char < " " and char not in "\t\n\r\f\x1b\b") for char in text)
    if odd > len(text) * 0.3:
        raise Unreadable("is binary, or text in an encoding other than UTF-8")


def _text(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")


def _whole_lines(data: bytes) -> str:
    """Without the line, or at least the character, that the limit cut in two."""
    if b"\n" in data and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        data = data[: data.rindex(b"\n") + 1]
    return _text(data).rstrip("\ufffd")


def _unfinished(file: BinaryIO) -> bool:
    """Whether the last line has no end."""
    file.seek(0, os.SEEK_END)
    if file.tell() == 0:
        return False
    file.seek(-1, os.SEEK_END)
    return file.read(1) != b"\n"


def _skip(file: BinaryIO, lines: int) -> int:
    """Move past so many lines, and return how many there were."""
    deadline = time.monotonic() + MAX_SCAN_S
    passed = 0
    while passed < lines and (chunk := file.read(1 << 20)):
        count = chunk.count(b"\n")
        if passed + count < lines:
            passed += count
        else:
            end = -1
            for _ in range(lines - passed):
                end = chunk.index(b"\n", end + 1)
            file.seek(end + 1 - len(chunk), os.SEEK_CUR)
            passed = lines
        if time.monotonic() > deadline:
            raise Unreadable(f"is too large to count lines in: {passed} passed in {MAX_SCAN_S:g} s")
    return passed
