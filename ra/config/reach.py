"""Find what else runs when a trusted file runs: files of the project that it imports, requires, sources or starts.

Read from the text, not by running it: what Python finds beside a script (also what would take a module's place), what
`require`, `import` and `include` name in other languages, what a shell script sources or starts. Not followed are
installed packages, and names that a program makes up while it runs.
"""

# Strings: any text of a file may stand here, and a Path would tidy it first.
# ruff: noqa: PTH112, PTH113, PTH118, PTH120, PTH122, PTH208

import os
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from ra.system.files import open_resolved

MAX_FILES = 1000
MAX_BYTES = 1_000_000


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CODE = _words(".py .pyc .so .pyd .sh .bash .zsh .js .mjs .cjs .ts .mts .cts .jsx .tsx .rb .pl .pm .php .lua .awk .mk")
BUILDS = {
    **dict.fromkeys(("make", "gmake"), ("Makefile", "makefile", "GNUmakefile")),
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn", "bun"), ("package.json",)),
    "just": ("justfile", "Justfile"),
}
"""Programs that run what a file of the project says, without being told its name."""

_PYTHON = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<base>\.*[\w.]*)[ \t]+import[ \t]+(?P<parts>\([^)]*\)|[^\n#;]+)"
    r"|import[ \t]+(?P<whole>[^\n#;]+))|(?:import_module|__import__)\(\s*[\"'](?P<called>[\w.]+)",
    re.MULTILINE,
)
_OTHER = re.compile(
    r"\b(?:require(?:_relative|_once)?|include(?:_once)?|import|from|load|dofile|do)\b[ \t]*\(?[ \t]*[\"']([^\"'\n]+)"
)
_SHELL = re.compile(r"[;&|(){}`\n]|[^\s;&|(){}`]+")
_LEADERS = _words(
    "source . exec command env nohup time if then elif else do while until ! bash sh zsh dash python python3 node bun "
    "deno ruby perl php lua"
)


def reach(files: Iterable[str], root: str) -> tuple[str, ...]:
    """These files and all that they load of the project, in the order in which they are found; at most MAX_FILES."""
    reached = dict.fromkeys(files)
    waiting = list(reached)
    while waiting:
        for target in _loaded_by(waiting.pop(0), root):
            if len(reached) < MAX_FILES and target not in reached and inside(target, root):
                reached[target] = None
                waiting.append(target)
    return tuple(reached)


def module(folder: str, name: str) -> tuple[str, ...]:
    """The files that `python -m name` would run from a folder."""
    parts = name.split(".")
    places = [os.path.join(folder, *parts[:depth]) for depth in range(1, len(parts) + 1)]
    return tuple(file for place in (*places, os.path.join(places[-1], "__main__")) for file in _found(place))


def written(command: str) -> frozenset[str]:
    """Files that a command only writes to (`… >> calls.jsonl`): what is in them does not run, and changes each time.

    In doubt none: where a character is escaped, where the name is quoted, or stands in the command a second time.
    """
    import shlex

    if "\\" in command:
        return frozenset()
    try:
        parts = list(shlex.shlex(command, posix=False, punctuation_chars=True))
    except ValueError:
        return frozenset()
    names = (name for sign, name in pairwise(parts) if sign in (">", ">>"))
    return frozenset(name for name in names if re.fullmatch(r"[\w./-]+", name) and command.count(name) == 1)


def closed(files: Iterable[str], root: str) -> tuple[str, ...]:
    """The folders of these files that hold no other code: nothing may be put beside what lies there.

    Python and others look beside a script first, so a new `json.py` there would be loaded in place of the real one.
    """
    real_paths = {os.path.realpath(file) for file in files}
    folders = dict.fromkeys(os.path.dirname(file) for file in real_paths if inside(os.path.dirname(file), root))
    return tuple(folder for folder in folders if real_paths.issuperset(_code_in(folder)))


def inside(path: str, root: str) -> bool:
    """Below the root, by its own name or where it leads: a link in the project can be put elsewhere."""
    below = root.rstrip(os.sep) + os.sep
    return os.path.normpath(path).startswith(below) or os.path.realpath(path).startswith(below)


def _code_in(folder: str) -> Iterator[str]:
    try:
        entries = os.scandir(folder)
    except OSError:  # what names a file in it is told that there is none
        return
    with entries:
        for entry in entries:
            yield from (os.path.realpath(path) for path in _exactly(entry.path))


def _loaded_by(file: str, root: str) -> Iterator[str]:
    text = _text(file)
    folder = os.path.dirname(file)
    kind = _kind(file, text)
    if kind == "python":
        for path in _imports(text, folder):
            yield from _found(path)
    elif kind == "shell":
        for name in _started(text):
            for base in (folder, root):
                yield from _exactly(os.path.join(base, name))
    else:
        for name in _OTHER.findall(text):
            yield from _found(os.path.join(folder, name))


def _imports(text: str, folder: str) -> Iterator[str]:
    """Where Python would look first, without an ending: beside the script, part by part of a dotted name."""
    for match in _PYTHON.finditer(text):
        if match["base"] is not None:
            dots = len(match["base"]) - len(match["base"].lstrip("."))
            start = os.path.normpath(os.path.join(folder, *[".."] * (dots - 1)))
            base = [part for part in match["base"].split(".") if part]
            parts = [base, *([*base, name] for name in _names(match["parts"]))]
        else:
            start = folder
            parts = [name.split(".") for name in _names(match["whole"] or match["called"])]
        for dotted in parts:
            yield from (os.path.join(start, *dotted[:depth]) for depth in range(1, len(dotted) + 1))


def _names(text: str) -> list[str]:
    """`a, b as c` → a, b."""
    words = (part.split() for part in re.sub(r"[()\\]|#[^\n]*", " ", text).split(","))
    return [part[0] for part in words if part and re.fullmatch(r"[\w.]+", part[0])]


def _started(text: str) -> Iterator[str]:
    """What a shell script sources or starts, from where it lies: `. "$(dirname "$0")/lib.sh"` is lib.sh."""
    leads = True
    for piece in _SHELL.findall(text):
        word = piece.strip("\"'")
        if piece in ";&|(){}`\n":
            leads = True
        elif leads and word not in _LEADERS and not re.match(r"-|\w+=", word):
            yield re.sub(r"^.*\$\w+", "", word).lstrip("/")
            leads = False


def _found(path: str) -> Iterator[str]:
    """The files that a name without its ending may mean: `x` is x.py, x.so, x/__init__.py or x/index.js."""
    yield from _exactly(path)
    folder, stem = os.path.split(os.path.normpath(path))
    yield from _with_stem(folder, stem)
    if os.path.isdir(path):
        yield from _with_stem(path, "__init__")
        yield from _with_stem(path, "index")


def _with_stem(folder: str, stem: str) -> Iterator[str]:
    try:
        names = sorted(os.listdir(folder))
    except (OSError, ValueError):
        return
    for name in names:
        if name.partition(".")[0] == stem and os.path.splitext(name)[1] in CODE:
            yield os.path.join(folder, name)


def _exactly(path: str) -> Iterator[str]:
    """A file of code, by its ending or because it may be executed."""
    full = os.path.normpath(path)
    if os.path.isfile(full) and (os.path.splitext(full)[1] in CODE or os.access(full, os.X_OK)):
        yield full


def _kind(file: str, text: str) -> str:
    ending = os.path.splitext(file)[1]
    first = text.partition("\n")[0] if text.startswith("#!") else ""
    if ending == ".py" or "python" in first:
        return "python"
    is_shell = ending in (".sh", ".bash", ".zsh") or file.endswith("/.envrc")
    return "shell" if is_shell or re.search(r"\b(ba|z|da|k)?sh\b", first) else "other"


def _text(file: str) -> str:
    """What is no plain file says nothing."""
    try:
        with open_resolved(file) as opened:
            content = opened.read(MAX_BYTES)
    except (OSError, ValueError):
        return ""
    return "" if b"\0" in content[:1024] else content.decode("utf-8", "replace")
