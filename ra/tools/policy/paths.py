"""Classifies paths (inside the project, protected, secret), resolves them and formats them."""

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from ra.core.settings import INSTRUCTION_FILES
from ra.core.value import Value
from ra.system.secret_names import SECRET_DIRS, fold
from ra.system.secret_names import is_secret as is_secret
from ra.tools.settings import Edits
from ra.tools.tool import Mistake

CONFIG_NAMES = ("ra.yaml", "agentx.json")
OWN_DIRS = (".git", ".ra")
EDITOR_NAMES = (
    *(".mcp.json", ".vscode", ".idea", ".envrc", ".gitmodules", ".claude", ".cursor", ".zed", ".devcontainer"),
    *(".exrc", ".nvim.lua", ".nvimrc", ".vimrc", ".lvimrc", ".dir-locals.el", ".gdbinit", ".lldbinit"),
    *(".mise.toml", "mise.toml", ".mise.local.toml", "mise.local.toml", ".mise", ".autoenv.zsh", ".env.zsh"),
    *(".devcontainer.json", ".dir-locals-2.el", ".helix", ".fleet", ".nova", ".local.vimrc", ".husky"),
    *("*.code-workspace", "*.sublime-project"),
    # Files that instruct other agents, or name programs that they start.
    *("AGENTS.override.md", "CLAUDE.local.md", "GEMINI.md", ".gemini", ".codex", ".opencode", "opencode.json"),
    *(".kiro", ".roo", ".clinerules", ".windsurf", ".continue", ".aider.conf.yml", ".junie", ".qwen", "crush.json"),
    *(".amazonq", ".augment", ".trae", ".vs", ".ycm_extra_conf.py", "AGENT.md", "WARP.md", ".goosehints", ".rules"),
    *(".augment-guidelines", ".github/instructions", ".github/prompts", ".github/agents", ".config/lefthook*"),
    *("mise.*.toml", ".mise.*.toml", "mise/config.toml", ".config/mise", ".config/mise.toml"),
    *(".vim", ".lazy.lua", ".theia", ".direnv/*.rc", ".direnv/bin"),
    # Shell prompts ask these for a version, and they start the program that the file names.
    *(".tool-versions", "rust-toolchain", "rust-toolchain.toml"),
    # Other version control systems run programs that their configuration names, as git does.
    *(".hg/hgrc", ".hg/sharedpath", ".jj/repo/config.toml", ".jj/workspace-config.toml", ".sl/config"),
    # Interactive programs run a file of this name in their working directory.
    *(".pdbrc", ".irbrc", ".pryrc", ".rdbgrc", ".byebugrc", ".rprofile", ".rdata", ".ghci", ".ocamlinit"),
    *(".iex.exs", ".perldb", ".octaverc", ".jdbrc", ".renviron", ".gvimrc", "_vimrc", "_exrc", ".rvmrc"),
    # Editors start package managers when they open a folder. These name programs, and registries that receive keys.
    *(".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "bunfig.toml", ".cargo/config", ".cargo/config.toml"),
    *(".mvn/jvm.config", ".mvn/maven.config", ".mvn/extensions.xml", ".prototools", ".externaltoolbuilders", ".ccls"),
)
"""Files that editors, shells, git and other agents obey as soon as they exist."""

ROOT_NAMES = (
    *(".pre-commit-config.yaml", "prek.toml", ".overcommit.yml", ".git-hooks", "captainhook.json", "grumphp.yml"),
    *("lefthook.*", "lefthook-local.*", ".lefthook.*", ".lefthook-local.*", ".lefthook", ".lefthook-local"),
    *(".rusty-hook.toml", "hk.pkl", ".hk.pkl"),
)
"""Files that installed hooks of git run, looking for them at the top of the project."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


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
"""Paths below the home directory that a sandbox hides."""


def protected(relative: str, instructions: tuple[str, ...] = INSTRUCTION_FILES) -> str:
    """Why a path below the project is protected from writing, or "" if it is not."""
    parts = [fold(part) for part in relative.split(os.sep) if part not in ("", ".")]
    for folder in OWN_DIRS:
        if folder in parts:
            return f"it lies in {folder}"
    if parts and any(fnmatchcase(parts[0], name) for name in ROOT_NAMES):
        return "hooks of git obey it"
    for name in EDITOR_NAMES:
        names = name.casefold().split("/")
        starts = range(len(parts) - len(names) + 1)
        if any(all(map(fnmatchcase, parts[start : start + len(names)], names)) for start in starts):
            return f"programs obey {name}"
    for pattern in (*instructions, *CONFIG_NAMES):
        pattern_parts = [fold(part) for part in pattern.split("/")]
        if len(parts) >= len(pattern_parts) and all(map(fnmatchcase, parts[-len(pattern_parts) :], pattern_parts)):
            return "it is ra's configuration" if pattern in CONFIG_NAMES else "it is an instruction file"
    return ""


_answers: ContextVar[dict[str, str] | None] = ContextVar("answers", default=None)


@contextlib.contextmanager
def one_answer() -> Iterator[None]:
    """During one call a path resolves to one place: the call uses what was judged, whatever replaces it meanwhile."""
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


class Project(Value, frozen=True):
    """The place of the calls: the project, and what is free in it.

    `edits`: the permission for the file tools to write in the project. `read_only`: nothing may change the project,
    commands included. `boxed`: Bash has an OS sandbox; `trouble`: the sandbox has a weakness in this project, so
    commands are asked for. `container`: the user turned the sandbox off, because the machine is one itself. `free`:
    tools that touch nothing outside ra. `roots`: tools that are confined to a folder of their own. `runs`: files that
    ra itself runs outside any sandbox, such as hooks, and the folders where it looks for such code: whoever can write
    them escapes the sandbox. `programs`: those of them that are in PATH; packages may be installed there, but none may
    shadow a program elsewhere.
    """

    root: str
    cwd: str
    home: str = ""
    edits: Edits = "off"
    read_only: bool = False
    boxed: bool = False
    trouble: str = ""
    container: bool = False
    free: tuple[str, ...] = ()
    roots: dict[str, str] = {}
    instructions: tuple[str, ...] = INSTRUCTION_FILES
    runs: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    real: Callable[[str], str] = real_path

    def joined(self, path: str, tool: str = "") -> str:
        """The path that the model means, from the tool's own folder. Raises Mistake for an impossible file name."""
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
        """The path that would really be touched. Not normalized first: `link/..` is above the link's target."""
        return self.real(self.joined(path, tool))

    def inside(self, real: str, tool: str = "") -> str | None:
        """The path relative to the project, None outside it (or outside the folder that the tool is confined to)."""
        root = self.real(self.root)
        held_to = self.real(self.roots.get(tool, root))
        if real != held_to and not real.startswith(held_to.rstrip(os.sep) + os.sep):
            return None
        return os.path.relpath(real, root)

    def runs_from(self, path: str) -> bool:
        """Whether ra would run this file."""
        return any(path == run or path.startswith(run.rstrip(os.sep) + os.sep) for run in self.runs)


def program(name: str, root: str) -> str | None:
    """The path of a program that ra itself starts. Never in the project, where a sandboxed command could plant one.

    A project's environment is often the first entry of PATH, and may have been written only by the model.
    """
    import shutil  # start-up time: 2 ms, only for a search or a command

    below = os.path.realpath(root).rstrip(os.sep) + os.sep
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    outer = [path for path in folders if os.path.isabs(path) and not f"{os.path.realpath(path)}/".startswith(below)]
    return shutil.which(name, path=os.pathsep.join(outer)) if outer else None


def shown(path: str) -> str:
    """A path on one line of text: quoted if it contains a control character, invalid bytes replaced."""
    clean = re.sub("[\ud800-\udfff]", "\ufffd", path)
    return msgspec.json.encode(clean).decode() if any(ord(c) < 32 or ord(c) == 127 for c in clean) else clean


def relative_to(path: str, base: str) -> str:
    """A short form for people: relative below `base`, otherwise absolute."""
    return os.path.relpath(path, base) if Path(path).is_relative_to(base) else path
