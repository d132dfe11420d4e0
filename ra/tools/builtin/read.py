"""The Read tool: text by lines, images and scanned PDFs unchanged, notebooks and other PDFs as text."""

import asyncio
import os
import time
from typing import Annotated, BinaryIO

import msgspec
from msgspec import Meta

from ra.core.messages import Document, Image, Text
from ra.system import worker
from ra.system.files import PDF, media_type
from ra.tools.files import open_regular
from ra.tools.policy.paths import shown
from ra.tools.tool import Mistake, Output, Say, Tool, declare
from ra.tools.workspace import Workspace

MAX_LINES = 2000
MAX_BYTES = 256_000
MAX_PDF_BYTES = 20_000_000
MAX_PDF_PAGES = 40
COUNTED_BYTES = 5_000_000  # of text read into memory to count its lines: each line takes 40 bytes or more


class ReadArgs(msgspec.Struct):
    path: str
    offset: Annotated[int, Meta(description="First line (PDF: page), from 1", ge=1)] = 1
    limit: Annotated[int, Meta(description=f"Lines, at most {MAX_LINES}", ge=1)] = MAX_LINES


def tool(workspace: Workspace) -> Tool:
    async def run(args: ReadArgs, say: Say) -> str | Output:
        path = workspace.resolve(args.path, "Read")
        until = time.monotonic() + workspace.timeout_s
        return await asyncio.to_thread(read, path, args.offset, min(args.limit, MAX_LINES), until)

    return declare(
        ReadArgs,
        run,
        name="Read",
        description="Read a file: text, image, PDF or notebook.",
        reads_only=True,
    )


def read(path: str, offset: int, limit: int, until: float) -> str | Output:
    """The content of a file. `until` is a time of `time.monotonic`. Raises Mistake."""
    with open_regular(path) as file:
        head = file.read(8192)
        size = os.fstat(file.fileno()).st_size
        media = media_type(head)
        if media and media != PDF:
            from ra.system import images  # start-up time: only for images

            try:
                data, media = images.fit_image(head + file.read(images.MAX_SOURCE_BYTES))
            except images.UnfitImage as error:
                raise Mistake(f"{shown(path)} {error}.") from error
            return Output((Image(media, data),))
        if media == PDF:
            return _pdf(path, head + file.read(MAX_PDF_BYTES), offset, limit, until)
        if path.endswith(".ipynb") and size <= MAX_PDF_BYTES:
            return _notebook(path, head + file.read())
        encoding = _encoding(head)
        if encoding is None:
            raise Mistake(f"{shown(path)} is a binary file ({size} bytes). Look at it with Bash: file, xxd, strings.")
        if encoding != "utf-8":
            data = (head + file.read(MAX_PDF_BYTES)).decode(encoding, "replace").encode()
            return _pick(data.splitlines(keepends=True), path, offset, limit)
        file.seek(0)
        if size <= COUNTED_BYTES:
            return _pick(file.read(COUNTED_BYTES).splitlines(keepends=True), path, offset, limit)
        return _scan(file, path, offset, limit, until)


def _encoding(head: bytes) -> str | None:
    """The encoding of the text, None for a binary file."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    return None if b"\0" in head else "utf-8"


def _pick(lines: list[bytes], path: str, offset: int, limit: int) -> str:
    """Part of a file that is in memory, so that the number of its lines is known."""
    if not lines:
        return "(The file is empty.)"
    if offset > len(lines):
        raise Mistake(f"{shown(path)} has {len(lines)} lines; offset {offset} is past its end.")
    picked, cut = _within_bytes(lines[offset - 1 : offset - 1 + limit])
    last = offset - 1 + len(picked)
    text = b"".join(picked).decode("utf-8", "replace").removeprefix("\ufeff")
    if cut:
        return f"{text}\n[line {last} is longer than {MAX_BYTES} bytes and cut here; {len(lines)} lines in all]"
    if offset == 1 and last == len(lines):
        return text
    hint = f"; go on with offset {last + 1}" if last < len(lines) else ""
    return f"{text.rstrip(chr(10))}\n[lines {offset}-{last} of {len(lines)}{hint}]"


def _scan(file: BinaryIO, path: str, offset: int, limit: int, until: float) -> str:
    """Part of a file too large to load: reads line by line, and no line beyond MAX_BYTES at once."""
    chosen: list[bytes] = []
    number, used = 1, 0
    while number < offset + limit and used < MAX_BYTES:
        line = file.readline(MAX_BYTES)
        if not line:
            break
        if number % 10_000 == 0 and time.monotonic() > until:
            raise Mistake(f"Line {offset} is too far into {shown(path)} to be read in time. Use Bash: tail, sed.")
        if number >= offset:
            chosen.append(line)
            used += len(line)
        number += line.endswith(b"\n")
    if not chosen:
        raise Mistake(f"{shown(path)} has {number - 1} lines; offset {offset} is past its end.")
    kept_lines, cut = _within_bytes(chosen)
    last = offset - 1 + len(kept_lines)
    text = b"".join(kept_lines).decode("utf-8", "replace").rstrip("\n")
    note = ", the last one cut" if cut else ""
    return f"{text}\n[lines {offset}-{last} of a large file{note}; go on with offset {last + 1}]"


def _within_bytes(lines: list[bytes]) -> tuple[list[bytes], bool]:
    """As many whole lines as fit, and whether even the first one had to be cut."""
    used = 0
    for place, line in enumerate(lines):
        used += len(line)
        if used > MAX_BYTES:
            return (lines[:place], False) if place else ([line[:MAX_BYTES]], True)
    return lines, False


def _pdf(path: str, data: bytes, offset: int, limit: int, until: float) -> str | Output:
    if len(data) > MAX_PDF_BYTES:
        raise Mistake(f"{shown(path)} is a PDF of more than {MAX_PDF_BYTES} bytes. Take pages out of it with Bash.")
    try:
        # A few bytes of a PDF can expand to gigabytes, or loop for ever.
        answer = worker.call(
            "ra.tools.pdf:serve", b"%d %d\n%b" % (offset, min(limit, MAX_PDF_PAGES), data), until=until
        )
    except (worker.OutOfMemory, worker.OutOfTime) as error:
        raise Mistake(f"{shown(path)} takes too much to be read as text. Take pages out of it with Bash.") from error
    except worker.WorkerFailed as error:
        raise Mistake(f"{shown(path)} cannot be read as a PDF: {error}.") from error
    total, texts = msgspec.json.decode(answer, type=tuple[int, list[str]])
    if offset > total:
        raise Mistake(f"{shown(path)} has {total} pages; offset {offset} is past its end.")
    last = offset - 1 + len(texts)
    if not any(text.strip() for text in texts):
        return Output(
            (
                Text(f"{shown(path)} has no text; here it is as it is."),
                Document(PDF, data, os.path.basename(path)),
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
        raise Mistake(f"{shown(path)} is not a notebook: {error}.") from error
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
