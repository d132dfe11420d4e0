"""Completes the word that is being typed, and the paths that begin with it."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from ra.cli.project_files import ProjectFiles

MOST = 200  # entries of a folder that are offered

Offer = tuple[str, str]
"""A word and its meaning."""

# As the resolver of files parses it, up to the cursor: not in an e-mail address; a quoted one may contain spaces.
_REFERENCE = re.compile(r"""(?<![A-Za-z0-9_@\\/.+-])@("[^"\n]*|'[^'\n]*|[^\s"'@][^\s]*|)$""")


def reference_in(text: str) -> str | None:
    """The text after the @ of the reference that is being typed; None outside a reference."""
    match = _REFERENCE.search(text)
    return match[1] if match is not None else None


def paths(begun: str, cwd: Path) -> Iterator[Offer]:
    """Files and folders that begin with `begun`; hidden ones if it begins with a dot."""
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
        yield quoted(path, quote), "folder" if is_folder else ""


def quoted(path: str, quote: str = "") -> str:
    """The path in the form of a reference: quoted if it contains a space."""
    mark = quote or ('"' if " " in path else "")
    return f"{mark}{path}{mark}"


def references(begun: str, cwd: Path, files: ProjectFiles) -> list[Offer]:
    """The completions after an @: paths that begin so, then files of the project that contain these letters."""
    offers = dict(paths(begun, cwd))
    quote = begun[:1] if begun[:1] in "\"'" else ""
    letters = begun.removeprefix(quote)
    if letters and not letters.startswith(("/", "~", ".")):
        for path in files.matching(letters):
            offers.setdefault(quoted(path, quote), "")
    return list(offers.items())
