"""Words that may complete what is being typed, and the paths that begin with it."""

import os
from collections.abc import Iterator
from pathlib import Path

MOST = 200  # entries of a folder that are offered

Offer = tuple[str, str]
"""A word, and what it is."""


def paths(begun: str, cwd: Path) -> Iterator[Offer]:
    """Files and folders that begin so; hidden ones when the dot was typed."""
    quote = begun[:1] if begun[:1] in "\"'" else ""
    folder, _, name = begun.removeprefix(quote).rpartition("/")
    base = cwd / Path(f"{folder}/" if begun.startswith("/") else folder or ".").expanduser()
    try:
        with os.scandir(base) as entries:
            names = sorted(
                (entry.name, entry.is_dir())
                for entry in entries
                if entry.name.startswith(name) and (name.startswith(".") or not entry.name.startswith("."))
            )
    except OSError:
        return
    for entry, is_folder in names[:MOST]:
        path = f"{folder}/{entry}" if folder or begun.startswith("/") else entry
        path += "/" if is_folder else ""
        needs = quote or ('"' if " " in path else "")
        yield (f"{needs}{path}{needs}" if needs else path), "folder" if is_folder else ""
