"""Reads a file in a form that models accept: text, an image or a PDF; refuses everything else with a reason."""

import os
import time
from typing import BinaryIO

from ra.core.messages import Document, Image
from ra.core.value import Value
from ra.system import images
from ra.system.files import PDF, NotRegular, media_type, open_regular

MAX_TEXT_BYTES = 400_000
MAX_PDF_BYTES = 20_000_000
MAX_SCAN_S = 1.5  # limit for finding lines far down in a large file

_SAMPLE = 8192


class Unreadable(Exception):
    """A file that cannot be attached; the text is the reason."""


class FileContent(Value, frozen=True):
    """A file's content. `left_out` describes the omitted part; it is empty when the content is complete."""

    content: str | Image | Document
    size: int
    left_out: str = ""


def load(path: str, *, limit: int = MAX_TEXT_BYTES, name: str = "") -> FileContent:
    """A complete file, or the first `limit` bytes of a text. Raises Unreadable."""
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(_SAMPLE)
        if media := media_type(head):
            return FileContent(_media(file, head, media, size, name), size)
        _check_text(head)
        data = head + file.read(limit + 1 - len(head)) if len(head) <= limit else head
    if len(data) <= limit:
        return FileContent(_text(data), size)
    return FileContent(_whole_lines(data[:limit]), size, f"the first {limit} of {max(size, len(data))} bytes")


def load_lines(path: str, first: int, last: int | None, *, limit: int = MAX_TEXT_BYTES) -> FileContent:
    """Lines `first` to `last`, counted from 1. Raises Unreadable."""
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(_SAMPLE)
        if media_type(head):
            raise Unreadable("has no lines: it is not text")
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
        return FileContent(_whole_lines(bytes(data[:limit])), size, f"the first {limit} bytes of these lines")
    final = number - data.endswith(b"\n")
    ended = f"the file ends at line {final}" if last is not None and final < last else ""
    return FileContent(_text(bytes(data)), size, ended)


def open_plain(path: str) -> BinaryIO:
    """Open a file whose path has been resolved. Raises Unreadable."""
    try:
        return open_regular(path)
    except NotRegular as error:
        raise Unreadable(f"is {error.kind}, not a file") from error
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from error


def _media(file: BinaryIO, head: bytes, media: str, size: int, name: str) -> Image | Document:
    limit = MAX_PDF_BYTES if media == PDF else images.MAX_SOURCE_BYTES
    data = head + file.read(limit + 1 - len(head))
    if media != PDF:
        try:
            data, media = images.fit_image(data)
        except images.UnfitImage as error:
            raise Unreadable(str(error)) from error
        return Image(media, data)
    if len(data) > limit:
        raise Unreadable(f"is too large: {size} bytes, the limit for {media} is {limit}")
    return Document(media, data, name)


def _check_text(head: bytes) -> None:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return  # a byte order mark: UTF-16
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
    """The text without the line, or at least the character, that the limit cut in two."""
    if b"\n" in data and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        data = data[: data.rindex(b"\n") + 1]
    return _text(data).rstrip("\ufffd")


def _unfinished(file: BinaryIO) -> bool:
    """Whether the last line lacks a line end."""
    file.seek(0, os.SEEK_END)
    if file.tell() == 0:
        return False
    file.seek(-1, os.SEEK_END)
    return file.read(1) != b"\n"


def _skip(file: BinaryIO, lines: int) -> int:
    """Moves past up to `lines` lines, and returns how many there were. Raises Unreadable when it takes too long."""
    deadline = time.monotonic() + MAX_SCAN_S
    skipped = 0
    while skipped < lines and (chunk := file.read(1 << 20)):
        count = chunk.count(b"\n")
        if skipped + count < lines:
            skipped += count
        else:
            end = -1
            for _ in range(lines - skipped):
                end = chunk.index(b"\n", end + 1)
            file.seek(end + 1 - len(chunk), os.SEEK_CUR)
            skipped = lines
        if time.monotonic() > deadline:
            raise Unreadable(f"is too large to count lines in: {skipped} passed in {MAX_SCAN_S:g} s")
    return skipped
