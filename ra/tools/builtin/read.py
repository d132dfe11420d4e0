"""What does a file hold? Read: text by lines, images and scanned PDFs as they are, notebooks and PDFs as text."""

import asyncio
import os
from typing import Annotated, BinaryIO

import msgspec
from msgspec import Meta

from ra.core.messages import Document, Image, Text
from ra.tools.files import open_regular
from ra.tools.kit import Kit
from ra.tools.paths import shown
from ra.tools.tool import Mistake, Output, Say, Tool, declare

MAX_LINES = 2000
MAX_BYTES = 256_000
MAX_IMAGE_BYTES = 5_000_000
MAX_PDF_BYTES = 20_000_000
MAX_PDF_PAGES = 40
COUNTED_BYTES = 20_000_000

_IMAGES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


class ReadArgs(msgspec.Struct):
    path: str
    offset: Annotated[int, Meta(description="First line (PDF: page), from 1", ge=1)] = 1
    limit: Annotated[int, Meta(description=f"Lines, at most {MAX_LINES}", ge=1)] = MAX_LINES


def tool(kit: Kit) -> Tool:
    async def run(args: ReadArgs, say: Say) -> str | Output:
        path = kit.place.resolve(args.path, "Read")
        return await asyncio.to_thread(read, path, args.offset, min(args.limit, MAX_LINES))

    return declare(
        ReadArgs,
        run,
        name="Read",
        description="Read a file: text, image, PDF or notebook.",
        reads_only=True,
    )


def read(path: str, offset: int, limit: int) -> str | Output:
    with open_regular(path) as file:
        head = file.read(8192)
        size = os.fstat(file.fileno()).st_size
        if media_type := _image_type(head):
            if size > MAX_IMAGE_BYTES:
                raise Mistake(
                    f"{shown(path)} is an image of {size} bytes; {MAX_IMAGE_BYTES} is the most a model takes."
                )
            return Output((Image(media_type, head + file.read()),))
        if head.startswith(b"%PDF-"):
            return _pdf(path, head + file.read(MAX_PDF_BYTES), offset, limit)
        if path.endswith(".ipynb") and size <= MAX_PDF_BYTES:
            return _notebook(path, head + file.read())
        encoding = _encoding(head)
        if encoding is None:
            raise Mistake(f"{shown(path)} is a binary file ({size} bytes). Look at it with Bash: file, xxd, strings.")
        if encoding != "utf-8":
            data = (head + file.read(COUNTED_BYTES)).decode(encoding, "replace").encode()
            return _pick(data.splitlines(keepends=True), path, offset, limit)
        file.seek(0)
        if size <= COUNTED_BYTES:
            return _pick(file.read(COUNTED_BYTES).splitlines(keepends=True), path, offset, limit)
        return _scan(file, path, offset, limit)


def _image_type(head: bytes) -> str | None:
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for magic, media_type in _IMAGES.items() if head.startswith(magic)), None)


def _encoding(head: bytes) -> str | None:
    """How text is written, None for what is not text."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    return None if b"\0" in head else "utf-8"


def _pick(lines: list[bytes], path: str, offset: int, limit: int) -> str:
    """Part of a file that is in memory, whose length is known."""
    if not lines:
        return "(The file is empty.)"
    if offset > len(lines):
        raise Mistake(f"{shown(path)} has {len(lines)} lines; offset {offset} is behind its end.")
    chosen, cut = _within_bytes(lines[offset - 1 : offset - 1 + limit])
    last = offset - 1 + len(chosen)
    text = b"".join(chosen).decode("utf-8", "replace").removeprefix("\ufeff")
    if cut:
        return f"{text}\n[line {last} is longer than {MAX_BYTES} bytes and cut here; {len(lines)} lines in all]"
    if offset == 1 and last == len(lines):
        return text
    more = f"; go on with offset {last + 1}" if last < len(lines) else ""
    return f"{text.rstrip(chr(10))}\n[lines {offset}-{last} of {len(lines)}{more}]"


def _scan(file: BinaryIO, path: str, offset: int, limit: int) -> str:
    """Part of a file that is too large to be loaded: read on line by line, and never a whole line that has no end."""
    chosen: list[bytes] = []
    number, used = 1, 0
    while number < offset + limit and used < MAX_BYTES:
        line = file.readline(MAX_BYTES)
        if not line:
            break
        if number >= offset:
            chosen.append(line)
            used += len(line)
        number += line.endswith(b"\n")
    if not chosen:
        raise Mistake(f"{shown(path)} has {number - 1} lines; offset {offset} is behind its end.")
    kept, cut = _within_bytes(chosen)
    last = offset - 1 + len(kept)
    text = b"".join(kept).decode("utf-8", "replace").rstrip("\n")
    note = ", the last one cut" if cut else ""
    return f"{text}\n[lines {offset}-{last} of a large file{note}; go on with offset {last + 1}]"


def _within_bytes(lines: list[bytes]) -> tuple[list[bytes], bool]:
    """As many whole lines as fit, and whether even the first had to be cut."""
    used = 0
    for place, line in enumerate(lines):
        used += len(line)
        if used > MAX_BYTES:
            return (lines[:place], False) if place else ([line[:MAX_BYTES]], True)
    return lines, False


def _pdf(path: str, data: bytes, offset: int, limit: int) -> str | Output:
    if len(data) > MAX_PDF_BYTES:
        raise Mistake(f"{shown(path)} is a PDF of more than {MAX_PDF_BYTES} bytes. Take pages out of it with Bash.")
    import io

    import pypdf  # 100 ms, and only a PDF needs it
    import pypdf.errors

    try:
        pages = pypdf.PdfReader(io.BytesIO(data)).pages
        total = len(pages)
        if offset > total:
            raise Mistake(f"{shown(path)} has {total} pages; offset {offset} is behind its end.")
        last = min(total, offset - 1 + min(limit, MAX_PDF_PAGES))
        texts = [pages[number].extract_text() for number in range(offset - 1, last)]
    except (pypdf.errors.PyPdfError, ValueError, KeyError, TypeError, RecursionError, AttributeError) as error:
        raise Mistake(f"{shown(path)} cannot be read as a PDF: {error}.") from error
    if not any(text.strip() for text in texts):
        return Output(
            (
                Text(f"{shown(path)} has no text; here it is as it is."),
                Document("application/pdf", data, os.path.basename(path)),
            )
        )
    body = "\n\n".join(f"[page {number} of {total}]\n{text}" for number, text in enumerate(texts, offset))
    return body + (f"\n[go on with offset {last + 1}]" if last < total else "")


class _Cell(msgspec.Struct):
    cell_type: str = ""
    source: str | list[str] = ""
    outputs: list[dict[str, object]] = []


class _Notebook(msgspec.Struct):
    cells: list[_Cell] = []


def _notebook(path: str, data: bytes) -> str:
    try:
        notebook = msgspec.json.decode(data, type=_Notebook)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
        raise Mistake(f"{shown(path)} is no notebook: {error}.") from error
    lines = []
    for number, cell in enumerate(notebook.cells, 1):
        lines.append(f"[cell {number}: {cell.cell_type}]\n{_joined(cell.source)}")
        lines += [f"[output]\n{text}" for output in cell.outputs if (text := _cell_output(output))]
    return "\n\n".join(lines) or "(The notebook is empty.)"


def _cell_output(output: dict[str, object]) -> str:
    data = output.get("data")
    if isinstance(data, dict):
        kinds = [str(kind) for kind in data if str(kind).startswith("image/")]
        return _joined(data.get("text/plain", "")) + (f"\n({', '.join(kinds)} left out)" if kinds else "")
    return _joined(output.get("text") or output.get("evalue") or "")


def _joined(source: object) -> str:
    return "".join(map(str, source)) if isinstance(source, list) else str(source)
