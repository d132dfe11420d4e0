"""What is this path? Inside the project or not, protected, a secret; and how a path is read and shown."""

import contextlib
import os
import re
import unicodedata
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from ra.core.settings import INSTRUCTION_FILES
from ra.core.value import Value
from ra.tools.tool import Mistake

CONFIG_NAMES = ("ra.yaml",)
OWN_DIRS = (".git", ".ra")


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


TOKEN_NAMES = _words(
    ".env .env.* .envrc *.env .netrc _netrc .pgpass .pypirc .git-credentials .htpasswd .dockercfg .vault-token "
    "credentials credentials.json client_secret*.json service-account*.json secrets.y*ml secrets.json "
    "id_rsa* id_dsa* id_ecdsa* id_ed25519*"
)
KEY_NAMES = _words("*.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk")
"""Often certificates of tests: Read asks for them, but a box shows them."""

HARMLESS_NAMES = _words(".env.example .env.sample .env.template .env.dist example.env sample.env *.pub")
SECRET_DIRS = _words(".ssh .aws .gnupg .password-store .1password")
CREDENTIALS = (
    *SECRET_DIRS,
    *_words(
        ".kube .azure .docker .anthropic .openai .claude .codex .pki .mozilla .config/gh .config/gcloud .config/op"
    ),
    *_words(".config/hub .config/git/credentials .config/rclone .config/ra .config/google-chrome .config/chromium"),
    *_words(".local/share/keyrings .local/share/kwalletd .cargo/credentials .cargo/credentials.toml .gem/credentials"),
    *_words(
        ".m2/settings.xml .gradle/gradle.properties .terraform.d/credentials.tfrc.json .netrc .pgpass .pypirc .npmrc"
    ),
    *_words(".git-credentials .vault-token .my.cnf .env .bash_history .zsh_history .python_history .psql_history"),
    *_words(".mysql_history .node_repl_history"),
)
"""What a box hides below the home directory."""

_INVISIBLE = re.compile(
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)


def fold(name: str) -> str:
    """A name as the most forgiving file system would compare it.

    macOS and Windows ignore case and the form of accents, HFS+ ignores invisible characters, Windows trailing
    dots and spaces: `.Git`, `.g\\u200cit` and `.git.` may all be `.git`.
    """
    return unicodedata.normalize("NFKC", _INVISIBLE.sub("", name)).casefold().rstrip(" .") or name


def is_secret(path: str) -> bool:
    *folders, name = [fold(part) for part in path.split(os.sep) if part] or [""]
    return any(folder in SECRET_DIRS for folder in (*folders, name)) or holds_token(name) or matches(name, KEY_NAMES)


def holds_token(name: str) -> bool:
    """Whether a file of this (folded) name is kept to hold credentials."""
    return matches(name, TOKEN_NAMES) and not matches(name, HARMLESS_NAMES)


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def protected(relative: str, instructions: tuple[str, ...] = INSTRUCTION_FILES) -> str:
    """Why a path below the project is not simply written, or "" when it is."""
    parts = [fold(part) for part in relative.split(os.sep) if part not in ("", ".")]
    for own in OWN_DIRS:
        if own in parts:
            return f"it lies in {own}"
    for pattern in (*instructions, *CONFIG_NAMES):
        wanted = [fold(part) for part in pattern.split("/")]
        if len(parts) >= len(wanted) and all(map(fnmatchcase, parts[-len(wanted) :], wanted)):
            return "it is ra's configuration" if pattern in CONFIG_NAMES else "it is an instruction file"
    return ""


_answers: ContextVar[dict[str, str] | None] = ContextVar("answers", default=None)


@contextlib.contextmanager
def one_answer() -> Iterator[None]:
    """During one call a path leads to one place: what was judged is what is used, whatever is put there meanwhile."""
    token = _answers.set({})
    try:
        yield
    finally:
        _answers.reset(token)


def real_path(path: str) -> str:
    answers = _answers.get()
    if answers is None:
        return os.path.realpath(path)
    if path not in answers:
        answers[path] = os.path.realpath(path)
    return answers[path]


class Place(Value, frozen=True):
    """Where calls happen: what is the project, what is free there.

    `writes`: file tools may write in the project (a terminal, or --write). `boxed`: Bash has an OS sandbox; `trouble`:
    it has one with a weakness in this project, so commands are asked for. `free`: tools that touch nothing outside ra.
    `roots`: tools that are held to a folder of their own. `runs`: files that ra itself runs outside any box, such as
    hooks, and folders where such code is looked for: who can write them is out of the box.
    """

    root: str
    cwd: str
    home: str = ""
    writes: bool = False
    boxed: bool = False
    trouble: str = ""
    free: tuple[str, ...] = ()
    roots: dict[str, str] = {}
    instructions: tuple[str, ...] = INSTRUCTION_FILES
    runs: tuple[str, ...] = ()
    real: Callable[[str], str] = real_path

    def joined(self, path: str, tool: str = "") -> str:
        """The path as the model meant it, from the tool's own folder. Raises Mistake for what no file can be called."""
        if "\0" in path:
            raise Mistake("A path cannot hold a NUL character.")
        try:
            os.fsencode(path)
        except UnicodeEncodeError as error:
            raise Mistake(f"No file can have this name: {path.encode('utf-8', 'replace').decode()!r}.") from error
        if self.home and (path == "~" or path.startswith("~/")):
            path = self.home + path[1:]
        return os.path.join(self.roots.get(tool, self.cwd), path)

    def resolve(self, path: str, tool: str = "") -> str:
        """The path that would really be touched. Not normalised first: `link/..` is above the link's target."""
        return self.real(self.joined(path, tool))

    def inside(self, real: str, tool: str = "") -> str | None:
        """The path relative to the project, None when it lies outside (or outside the folder the tool is held to)."""
        root = self.real(self.root)
        held_to = self.real(self.roots.get(tool, root))
        if real != held_to and not real.startswith(held_to.rstrip(os.sep) + os.sep):
            return None
        return os.path.relpath(real, root)

    def runs_from(self, path: str) -> bool:
        """Whether ra would run what stands there."""
        return any(path == run or path.startswith(run.rstrip(os.sep) + os.sep) for run in self.runs)


_SAMPLES = tuple(name.replace("*", "x") for name in (*TOKEN_NAMES, *KEY_NAMES, *SECRET_DIRS))


def names_secret(word: str, place: Place) -> bool:
    """Whether a word of a command may be a file with secrets: by its name, by where it leads, or as a glob."""
    for path in {word, word.partition("=")[2]} - {""}:
        if "\0" in path or any("\ud800" <= char <= "\udfff" for char in path):
            return True
        lexical = os.path.normpath(place.joined(path))
        if is_secret(os.path.relpath(lexical, place.root)) or is_secret(
            os.path.relpath(place.real(lexical), place.root)
        ):
            return True
        globs = [fold(part) for part in path.split(os.sep) if set(part) & set("*?[") and part.strip("*")]
        if any(fnmatchcase(sample, part) for part in globs for sample in _SAMPLES):
            return True
    return False


def program(name: str, root: str) -> str | None:
    """Where a program lies that ra itself starts. Not in the project: there a command in the box could put another.

    A project's environment is often the first of PATH, and nobody but the model may have written it.
    """
    import shutil  # 2 ms, and only a search or a command needs it

    below = os.path.realpath(root).rstrip(os.sep) + os.sep
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    outer = [path for path in folders if os.path.isabs(path) and not f"{os.path.realpath(path)}/".startswith(below)]
    return shutil.which(name, path=os.pathsep.join(outer)) if outer else None


def shown(path: str) -> str:
    """A path on one line of text: quoted when a control character is in it, invalid bytes replaced."""
    clean = re.sub("[\ud800-\udfff]", "\ufffd", path)
    return msgspec.json.encode(clean).decode() if any(ord(c) < 32 or ord(c) == 127 for c in clean) else clean


def relative_to(path: str, base: str) -> str:
    """Short for the eye: below `base` relative, elsewhere absolute."""
    return os.path.relpath(path, base) if Path(path).is_relative_to(base) else path
