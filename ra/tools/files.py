"""Opens, reads and replaces files for tools: errors become sentences for the model."""

import os
from typing import BinaryIO

from ra.system import files
from ra.tools.policy.paths import shown
from ra.tools.tool import Mistake

MAX_EDIT_BYTES = 50_000_000


def open_regular(path: str) -> BinaryIO:
    """Opens a file for reading. Raises Mistake for folders, pipes and devices, which could block or never end."""
    try:
        return files.open_without_links(path)
    except OSError as error:
        raise Mistake(_sentence(path, error)) from error


def read_whole(path: str) -> bytes:
    """The whole content of a file. Raises Mistake."""
    with open_regular(path) as file:
        if (size := os.fstat(file.fileno()).st_size) > MAX_EDIT_BYTES:
            raise Mistake(f"{shown(path)} has {size} bytes; files over {MAX_EDIT_BYTES} are changed with Bash.")
        return file.read(MAX_EDIT_BYTES + 1)


def replace_file(path: str, data: bytes) -> None:
    """Writes a file completely or not at all, with the mode and owner of the old one. Raises Mistake."""
    try:
        files.replace_file(path, data)
    except OSError as error:
        raise Mistake(_sentence(path, error)) from error


def why_not(path: str, error: OSError) -> str:
    """An operating system's error as a sentence for the model."""
    return f"{shown(path)}: {error.strerror or error}."


def _sentence(path: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{shown(path)} does not exist.{_hint(path)}"
    if isinstance(error, FileExistsError | NotADirectoryError):
        return f"{shown(path)}: a file is where a folder would have to be."
    if isinstance(error, files.NotRegular):
        return f"{shown(path)} is {error.kind}; only regular files are read and written."
    if isinstance(error, PermissionError) and error.strerror == "is read-only":
        return f"{shown(path)} is read-only."
    return why_not(path, error)


def _hint(path: str) -> str:
    """A hint at similar names, or at the missing folder."""
    folder, name = os.path.split(path)
    if not os.path.isdir(folder or "."):
        return f" Nor does the folder {shown(folder)}."
    names = files.similar_names(folder, name)
    return f" Did you mean {', '.join(map(shown, names))}?" if names else ""
