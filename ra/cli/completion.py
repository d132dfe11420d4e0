"""Completes words for the shell on every Tab, and imports nothing that this does not need.

`ra --show-completion SHELL` prints a script that calls `ra --complete WORD…`, which prints a line `word<Tab>meaning`
for each match, and none if the shell should offer files.
"""

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from ra.cli import flags
from ra.cli.output import Streams
from ra.config import paths
from ra.core.errors import RaError, UsageError, UserError
from ra.core.text import visible_line

Word = tuple[str, str]
"""A word and its meaning."""

WORDS = Path(__file__).with_name("words.json")
"""The subcommands and options of each command. Generated, because reading them from Typer would take 100 ms."""

SCRIPTS = {
    "bash": """\
# ra completion for bash
_ra() {
    local word
    COMPREPLY=()
    while IFS=$'\\t' read -r word _; do
        COMPREPLY+=("$word")
    done < <("${COMP_WORDS[0]}" --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _ra ra agentx
""",
    "zsh": """\
#compdef ra agentx
# ra completion for zsh
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }
_ra() {
    local -a matches plain
    local line
    for line in "${(@f)$("${words[1]}" --complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        [[ -n "$line" ]] && matches+=("${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}") plain+=("${line%%$'\\t'*}")
    done
    if [[ "${words[CURRENT]}" == @* ]] && (( $#plain )); then compadd -U -a plain  # it need not begin as typed
    elif (( $#matches )); then _describe 'ra' matches; else _files; fi
}
compdef _ra ra agentx
""",
    "fish": """\
# ra completion for fish
function __ra_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l matches ($words[1] --complete $words[2..-1] 2>/dev/null)
    if test (count $matches) -gt 0
        printf '%s\\n' $matches
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c ra -f -a '(__ra_complete)'
complete -c agentx -f -a '(__ra_complete)'
""",
}

_WITH_SESSION = {"sessions show", "sessions export", "sessions rm", "sessions fork"}


def complete(words: Sequence[str], env: Mapping[str, str], cwd: Path) -> list[Word]:
    """The completions of the last of `words`, which are all words after the program's name."""
    *before, last = [word for word in words if word != "="] or [""]  # bash splits --flag=value
    if before and before[-1] == "@":  # bash splits at @, and completes file names itself
        return _references(last, cwd) if last and not _is_begun(last, cwd) else []
    if last.startswith("@") and not last.startswith("@@"):
        return [(f"@{path}", meaning) for path, meaning in _references(last[1:], cwd)]
    index = flags.command_in(before)
    previous = before[-1] if before else ""
    name, equals, begun = last.partition("=")
    if equals and name.startswith("--"):  # zsh and fish do not split it
        return [(f"{name}={value}", meaning) for value, meaning in _values(name, env, cwd) if value.startswith(begun)]
    if index is not None:
        return _of_command(before[index:], last, env, cwd)
    if flags.may_take_value(previous):
        return _fitting(_values(previous, env, cwd), last)
    offered = [(option, flag.help) for flag in flags.ALL for option in flag.names]
    if not list(flags.prompt_words(before)) and "--" not in before:  # no word of a prompt precedes it
        offered += flags.COMMANDS.items()
    return _fitting(offered, last)


def _of_command(words: Sequence[str], last: str, env: Mapping[str, str], cwd: Path) -> list[Word]:
    """Subcommands and options of a command, and the values of those that a run has, too."""
    previous = words[-1]
    if previous.startswith("-") and (values := _values(previous, env, cwd)):
        return _fitting(values, last)
    if flags.takes_value(previous):
        return []
    if " ".join(words) in _WITH_SESSION and not last.startswith("-"):
        return _fitting(_sessions(env, cwd), last)
    table = _table()
    name = flags.ALIASES.get(words[0], words[0])
    inner = " ".join([name, *words[1:2]])
    return _fitting((table.get(inner) or table.get(name) or {}).items(), last)


def subcommands(command: str) -> set[str]:
    return {word for word in _table().get(command, {}) if not word.startswith("-")}


def _table() -> dict[str, dict[str, str]]:
    return msgspec.json.decode(WORDS.read_bytes(), type=dict[str, dict[str, str]])


def install(shell: str, env: Mapping[str, str]) -> tuple[Path, Path | None]:
    """Writes the script, and for bash and zsh a line in their start-up file. Returns both paths. Raises UserError."""
    shell = shell or Path(env.get("SHELL", "")).name
    text = script(shell)
    home = Path(env.get("HOME") or "~").expanduser()
    if shell == "fish":
        folder = Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "fish/completions"
        _write(folder / "agentx.fish", text)
        return _write(folder / "ra.fish", text), None
    file = _write(paths.user_file(env).with_name(f"completion.{shell}"), text)
    start = home / ".bashrc" if shell == "bash" else Path(env.get("ZDOTDIR") or home) / ".zshrc"
    line = f'[ -f "{file}" ] && source "{file}"  # ra completion\n'
    try:
        text = start.read_text(errors="surrogateescape") if start.exists() else ""
        if line not in text:
            with start.open("a") as rc:
                rc.write(("\n" if text and not text.endswith("\n") else "") + line)
    except OSError as error:
        raise UserError(f"{start} cannot be written: {error.strerror}. Add this line yourself: {line}") from error
    return file, start


def script(shell: str) -> str:
    if shell not in SCRIPTS:
        named = f"{shell!r} is not one of them" if shell else "SHELL is not set"
        raise UsageError(
            f"Completion is there for {', '.join(flags.SHELLS)}; {named}. Name one: --install-completion bash"
        )
    return SCRIPTS[shell]


def _write(file: Path, text: str) -> Path:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    except OSError as error:
        raise UserError(
            f"{file} cannot be written: {error.strerror}. --show-completion SHELL prints the script."
        ) from error
    return file


def _is_begun(path: str, cwd: Path) -> bool:
    from ra.cli.repl.offers import paths as begun_so  # start-up time: only to complete files

    return any(True for _ in begun_so(path, cwd))


def _references(begun: str, cwd: Path) -> list[Word]:
    """The completions after an @, without paths that the shell would have to quote."""
    from ra.cli.project_files import ProjectFiles, insertable  # start-up time: only to complete files
    from ra.cli.repl.offers import references

    meanings = dict(references(begun, cwd, ProjectFiles(root=paths.git_root(cwd) or cwd, cwd=cwd)))
    plain = [path for path in meanings if not any(char.isspace() for char in path)]
    return [(path, meanings[path]) for path in insertable(begun, plain)]


def _fitting(words: Iterable[Word], begun: str) -> list[Word]:
    return [(word, meaning) for word, meaning in words if word.startswith(begun) and (begun or word[:1] != "-")]


def _values(name: str, env: Mapping[str, str], cwd: Path) -> list[Word]:
    """The values of a flag; none if it takes any text, or a file."""
    flag = flags.BY_FLAG.get(name)
    lookup = "session" if name == "--session" else flag.lookup if flag is not None else ""
    match lookup:
        case "session":
            return _sessions(env, cwd)
        case "model":
            from ra.providers import catalog

            return [(row.info.id, row.provider) for row in catalog.rows()]
        case "agent":
            from ra.config.load import resolve

            return [(agent, "") for agent in resolve(cwd=cwd, env=env).config.agents]
        case _:
            return [(value, "") for value in flag.choices] if flag is not None else []


def _sessions(env: Mapping[str, str], cwd: Path) -> list[Word]:
    """The latest sessions of this project."""
    from ra.timeline.sqlite import SqliteStore

    project = str(paths.git_root(cwd) or cwd)
    latest = SqliteStore(paths.data_dir(env) / "ra.db").sessions(project, 20)
    return [(session.id, visible_line(session.title, 60)) for session in latest]


def run(argv: Sequence[str]) -> int:
    """Answers `--complete WORD…`. Never reports an error, since nobody would see it."""
    matches: list[Word] = []
    with contextlib.suppress(RaError, OSError):
        matches = complete([flags.clean(word) for word in argv], os.environ, Path.cwd())
    Streams(os.environ).out("".join(f"{visible_line(word)}\t{visible_line(meaning)}\n" for word, meaning in matches))
    return 0
