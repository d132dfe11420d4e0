"""What could the next word be? For the shell, on every press of Tab: so nothing is imported that is not needed.

`ra --show-completion SHELL` prints a script that calls `ra --complete WORD…`; that answers with a line for each word
that fits, `word<Tab>meaning`, and with none where the shell should offer files.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import get_args

import msgspec

from ra.cli import flags
from ra.cli.output import Streams
from ra.cli.safe import one_line
from ra.config import paths
from ra.context.settings import COMPACTIONS, STRATEGIES
from ra.core.errors import RaError, UsageError, UserError
from ra.core.model import Level
from ra.providers.vendors import BY_NAME, IN_PROCESS

Word = tuple[str, str]
"""A word and what it means."""

SHELLS = ("bash", "zsh", "fish")
WORDS = Path(__file__).with_name("words.json")
"""The subcommands and options of each command, generated: reading them from Typer would take 100 ms."""

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
    local -a found
    local line
    for line in "${(@f)$("${words[1]}" --complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        [[ -n "$line" ]] && found+=("${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}")
    done
    if (( $#found )); then _describe 'ra' found; else _files; fi
}
compdef _ra ra agentx
""",
    "fish": """\
# ra completion for fish
function __ra_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found ($words[1] --complete $words[2..-1] 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c ra -f -a '(__ra_complete)'
complete -c agentx -f -a '(__ra_complete)'
""",
}

_VALUES: dict[str, tuple[str, ...]] = {
    "--provider": (*BY_NAME, *IN_PROCESS),
    "--thinking": get_args(Level),
    "--context-strategy": STRATEGIES,
    "--compaction": COMPACTIONS,
    "--install-completion": SHELLS,
    "--show-completion": SHELLS,
}
_WITH_SESSION = {"sessions show", "sessions export", "sessions rm", "sessions fork"}


def complete(words: Sequence[str], env: Mapping[str, str], cwd: Path) -> list[Word]:
    """What fits the last of `words`, which are all that stand behind the program's name."""
    *before, last = [word for word in words if word != "="] or [""]  # bash takes --flag=value apart
    if before and before[-1] == "@":
        return []
    index = flags.command_in(before)
    known = _of_command(before[index:]) if index is not None else _of_run(before)
    previous = before[-1] if before else ""
    flag, equals, begun = last.partition("=")
    if equals and flag.startswith("--"):  # zsh and fish do not
        return [(f"{flag}={value}", words) for value, words in _values(flag, env, cwd) if value.startswith(begun)]
    if previous.startswith("-") and (index is not None or previous in _takes_value()):
        if values := list(_values(previous, env, cwd)):
            return _fitting(values, last)
        if previous in _takes_value():
            return []
    if index is not None and " ".join(before[index:]) in _WITH_SESSION and not last.startswith("-"):
        return _fitting(_sessions(env, cwd), last)
    return _fitting(known, last)


def install(shell: str, env: Mapping[str, str]) -> tuple[Path, Path | None]:
    """Write the script, and for bash and zsh a line in their start-up file. Where both are. Raises UserError."""
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
        held = start.read_text(errors="surrogateescape") if start.exists() else ""
        if line not in held:
            with start.open("a") as rc:
                rc.write(("\n" if held and not held.endswith("\n") else "") + line)
    except OSError as error:
        raise UserError(f"{start} cannot be written: {error.strerror}. Add this line yourself: {line}") from error
    return file, start


def script(shell: str) -> str:
    if shell not in SCRIPTS:
        named = f"{shell!r} is not one of them" if shell else "SHELL is not set"
        raise UsageError(f"Completion is there for {', '.join(SHELLS)}; {named}. Name one: --install-completion bash")
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


def _fitting(words: Iterable[Word], begun: str) -> list[Word]:
    return [(word, meaning) for word, meaning in words if word.startswith(begun) and (begun or word[:1] != "-")]


def _of_run(before: Sequence[str]) -> list[Word]:
    """Flags; and commands, as long as no word of a prompt has been said."""
    found = [(option, action.help or "") for action in flags.parser()._actions for option in action.option_strings]
    takes = _takes_value()
    prompt = [
        word
        for place, word in enumerate(before)
        if not word.startswith("-") and (place == 0 or before[place - 1] not in takes)
    ]
    return found if prompt or "--" in before else [*found, *flags.COMMANDS.items()]


def _of_command(words: Sequence[str]) -> list[Word]:
    table: dict[str, dict[str, str]] = msgspec.json.decode(WORDS.read_bytes())
    name = "serve" if words[0] == "daemon" else words[0]
    inner = " ".join([name, *words[1:2]])
    return list((table.get(inner) or table.get(name) or {}).items())


def _takes_value() -> set[str]:
    return {option for action in flags.parser()._actions if action.nargs is None for option in action.option_strings}


def _values(flag: str, env: Mapping[str, str], cwd: Path) -> Iterator[Word]:
    """What a flag may be set to; nothing where that could be anything, or a file."""
    chosen = {option: action.choices for action in flags.parser()._actions for option in action.option_strings}
    for value in _VALUES.get(flag) or chosen.get(flag) or ():
        yield value, ""
    if flag in ("--resume", "--session"):
        yield from _sessions(env, cwd)
    elif flag in ("-m", "--model"):
        from ra.providers import catalog

        yield from ((row.info.id, row.provider) for row in catalog.rows())
    elif flag == "--agent":
        from ra.config.load import resolve

        yield from ((name, "") for name in resolve(cwd=cwd, env=env).config.agents)


def _sessions(env: Mapping[str, str], cwd: Path) -> list[Word]:
    """The latest of this project."""
    from ra.timeline.store import Store

    project = str(paths.git_root(cwd) or cwd)
    found = Store(paths.data_dir(env) / "ra.db").sessions(project, 20)
    return [(session.id, one_line(session.title, 60)) for session in found]


def run(argv: Sequence[str]) -> int:
    """`--complete WORD…`: never an error, since nobody would see it."""
    found: list[Word] = []
    with contextlib.suppress(RaError, OSError):
        found = complete([flags.clean(word) for word in argv], os.environ, Path.cwd())
    Streams(os.environ).out("".join(f"{one_line(word)}\t{one_line(meaning)}\n" for word, meaning in found))
    return 0
