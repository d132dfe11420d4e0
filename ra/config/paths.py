"""Find the project's root, the user's configuration and the data directory."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from ra.system.files import open_resolved

FILE_NAME = "ra.yaml"
AGENTX_NAME = "agentx.json"  # the same keys as JSON, below ra.yaml
_CONFIG_BYTES = 1_000_000


def git_root(cwd: Path) -> Path | None:
    """The nearest folder upwards that holds `.git` (a folder, or a file in a worktree).

    Not one that a stranger put there, be it a link: with a `/tmp/.git` everything in /tmp would be the project.
    """
    ours = {os.geteuid(), 0, _owner(cwd)}
    return next((folder for folder in (cwd, *cwd.parents) if _is_ours(folder / ".git", ours)), None)


def _is_ours(path: Path, ours: set[int | None]) -> bool:
    """Both what stands there and what it leads to, if it is a link."""
    return {_owner(path, follow=False), _owner(path)} <= ours - {None}


def _owner(path: Path, *, follow: bool = True) -> int | None:
    try:
        return path.stat(follow_symlinks=follow).st_uid
    except OSError:
        return None


def project_files(cwd: Path) -> list[Path]:
    """Every agentx.json, then every ra.yaml, from the git root down to the working directory: the last one wins.

    Also one that is no plain file: reading it says so, where passing it over would say nothing. A socket stands for no
    file: the box holds the name with it while a command runs, and a ra that was killed leaves it behind.
    """
    files = [folder / name for name in (AGENTX_NAME, FILE_NAME) for folder in project_folders(cwd)]
    return [file for file in files if os.path.lexists(file) and not file.is_socket()]


def project_folders(cwd: Path) -> list[Path]:
    """The folders from the git root down to the working directory; without git, the working directory."""
    root = git_root(cwd)
    folders = [cwd] if root is None else [cwd, *cwd.parents][: len(cwd.parts) - len(root.parts) + 1]
    return folders[::-1]


def mcp_files(folders: list[Path], settings_folder: Path) -> list[Path]:
    """Where other programs' lists of MCP servers would be."""
    user_files = [settings_folder / name for name in (".mcp.json", "mcp.json")]
    return [*(folder / ".mcp.json" for folder in folders), *user_files]


def home(env: Mapping[str, str]) -> Path | None:
    """The user's home directory, if there is one."""
    return Path(env["HOME"]) if env.get("HOME") and Path(env["HOME"]).is_absolute() else None


def user_file(env: Mapping[str, str]) -> Path:
    return _user_dir(env, variable="XDG_CONFIG_HOME", unix=".config", kind="config") / FILE_NAME


def data_dir(env: Mapping[str, str], configured: str | None = None) -> Path:
    if configured:
        return Path(configured).expanduser()
    if home := env.get("RA_HOME"):
        return Path(home).expanduser()
    return _user_dir(env, variable="XDG_DATA_HOME", unix=".local/share", kind="data")


def programs(env: Mapping[str, str], root: Path) -> list[str]:
    """The folders of PATH that lie in the project: what stands there runs under any name that somebody types.

    One that is not there yet is one as well: a command could make it.
    """
    below = os.path.realpath(root)
    folders = [os.path.realpath(name) for name in env.get("PATH", "").split(os.pathsep) if Path(name).is_absolute()]
    return [name for name in dict.fromkeys(folders) if Path(below) in Path(name).parents]


def git_configs(root: Path, env: Mapping[str, str]) -> list[tuple[str, str]]:
    """The git configurations that hold in a project and may name a file of it, each with its text.

    Of the user's own ones only those that say where hooks lie: that may be a folder in each project.
    """
    own_home = home(env)
    folder = Path(env["XDG_CONFIG_HOME"]) if env.get("XDG_CONFIG_HOME") else (own_home or Path("/")) / ".config"
    of_user = [folder / "git" / "config", *([own_home / ".gitconfig"] if own_home else [])]
    texts = [(str(path), _config_text(path)) for path in of_user]
    found = [(path, text) for path, text in texts if "hookspath" in text.casefold()]
    own = _repository(root) / "config"
    text = _config_text(own)
    if not all(_is_plain(line.strip()) for line in text.splitlines()):
        found.append((str(own), text))
    return found


PLAIN_KEYS = (
    *("repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks"),
    *("url", "pushurl", "fetch", "remote", "merge", "rebase", "name", "email", "active", "defaultbranch"),
    *("vscode-merge-base", "gk-last-accessed", "ignorerevsfile", "excludesfile", "template"),
)
"""Keys of a git configuration that name no program, and no file that says what runs."""


def _is_plain(line: str) -> bool:
    if not line or line[0] in "#;":
        return True
    return line.endswith("]") if line[0] == "[" else line.partition("=")[0].strip().casefold() in PLAIN_KEYS


def start_files(root: Path) -> list[str]:
    """What direnv and mise read when somebody enters the project."""
    return [path for name in _START_FILES if os.path.isfile(path := os.path.join(root, name))]  # noqa: PTH113, PTH118 - text


_START_FILES = (
    *(".envrc", "mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml"),
    *(".config/mise.toml", ".config/mise/config.toml", ".mise/config.toml", "mise/config.toml"),
)


def _repository(root: Path) -> Path:
    """Where the repository's configuration lies: of a worktree or a submodule elsewhere."""
    git = root / ".git"
    if not git.is_file():
        return git
    folder = root / _config_text(git).removeprefix("gitdir:").strip()
    common = _config_text(folder / "commondir").strip()
    return folder / common if common else folder


def _config_text(path: Path) -> str:
    """Empty when there is no such file."""
    try:
        with open_resolved(path) as file:
            return file.read(_CONFIG_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def _user_dir(env: Mapping[str, str], *, variable: str, unix: str, kind: str) -> Path:
    if (named := env.get(variable)) and Path(named).is_absolute():
        return Path(named) / "ra"
    if sys.platform in {"darwin", "win32"}:  # pragma: no cover - other systems have other places
        import platformdirs  # 20 ms, and Linux does not need it

        return Path(platformdirs.user_config_dir("ra") if kind == "config" else platformdirs.user_data_dir("ra"))
    return (home(env) or _account_home()) / unix / "ra"


def _account_home() -> Path:
    """Where the system says that the user lives: HOME may be unset, empty, or a name in the working directory."""
    import pwd  # for those without HOME

    try:
        return Path(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:  # a container's user whom no list names: writing there fails, and the message names RA_HOME
        return Path("/")
