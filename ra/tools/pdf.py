"""Extracts the text of PDF pages, in a worker: a malicious PDF may exhaust memory or time."""

import io

import msgspec


def serve(order: bytes) -> bytes:
    """`OFFSET LIMIT`, a line end, the PDF → the number of its pages, and the text of the requested ones."""
    import pypdf  # 100 ms, in the worker

    head, _, document = order.partition(b"\n")
    offset, limit = map(int, head.split())
    pages = pypdf.PdfReader(io.BytesIO(document)).pages
    total = len(pages)
    texts = [pages[number].extract_text() for number in range(offset - 1, min(total, offset - 1 + limit))]
    return msgspec.json.encode((total, [text.encode("utf-8", "replace").decode() for text in texts]))
