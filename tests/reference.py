"""What is generated from the program itself? The configuration's reference, and the commands'."""

import importlib
import importlib.util
import json
import re
from collections.abc import Iterator
from typing import Any

import typer

from ra.cli import flags
from ra.cli.commands import MODULES
from ra.config import reference

CONFIGURATION = """\
# Configuration

Generated from the program by `python -m tests.regenerate`; [`ra.yaml.example`](../ra.yaml.example) shows the same keys
as a file that you can copy from.

Later settings override earlier ones: defaults < your file (`$XDG_CONFIG_HOME/ra/ra.yaml`) < the project's `ra.yaml`,
from the git root down to the working directory < `--config FILE` < `--set key=value` and flags. `ra --show-config`
prints the result, and where each value comes from. Keys are in camelCase; `ra` reads snake_case too. `${VAR}` is
replaced by an environment variable, which must be set; `${VAR:-default}` has a default. A wrong value is an error that
names the key, the value, the file and the line. For an unknown key `ra` suggests the nearest one.

"""

COMMANDS = """\
# Commands

Generated from the program by `python -m tests.regenerate`.

## ra [flags] [prompt]

If the first word is a command, `ra` runs it. Anything else is the prompt, and so is everything after `--`. On a
terminal, `ra` without a prompt starts [a conversation](repl.md). Piped text follows the prompt as a separate block.

"""

EXIT_CODES = """\
## Exit codes

| code | meaning |
|---|---|
| 0 | answered |
| 1 | failed: an error of the provider, a tool or `ra` itself |
| 2 | wrong usage or configuration |
| 3 | stopped by a limit or by middleware |
| 4 | refused: a permission or trust is missing |
| 5 | the model gave no answer, or refused to answer |
| 75 | the session is in use by another process |
| 130, 143 | SIGINT, SIGTERM |
"""


def configuration() -> str:
    return CONFIGURATION + reference.table()


def commands() -> str:
    rows = "".join(_flags())
    known = [name for name in flags.COMMANDS if importlib.util.find_spec(MODULES[name])]
    return COMMANDS + rows + EXIT_CODES + "".join("\n" + _command(name) for name in known)


def _flags() -> Iterator[str]:
    for group, members in flags.GROUPS.items():
        yield f"**{group}**\n\n| flag | meaning |\n|---|---|\n"
        for flag in members:
            value = " " + ("\\|".join(flag.choices) if flag.strict else flag.value) if flag.kind != "switch" else ""
            yield f"| `{', '.join(flag.names)}{value}` | {flag.help} |\n"
        yield "\n"


def _command(name: str) -> str:
    made: Any = typer.main.get_command(importlib.import_module(MODULES[name]).app)
    return f"## ra {name}\n\n" + "\n".join(_described(f"ra {name}", made, top=True))


def _described(path: str, command: Any, *, top: bool = False) -> Iterator[str]:
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    options = [param for param in command.params if param.param_type_name == "option" and param.name != "help"]
    options = [param for param in options if not param.hidden]
    inner = getattr(command, "commands", {})
    words = [_named(param) if param.required else f"[{_named(param)}]" for param in arguments]
    usage = " ".join([path, *(["[flags]"] if options else []), *words, *(["COMMAND …"] if inner else [])])
    if not top:
        yield f"### {path}\n"
    yield f"`{usage}`\n"
    yield " ".join((command.help or "").split()) + "\n"
    rows = [(_named(param), param) for param in arguments]
    rows += [(", ".join([*param.opts, *param.secondary_opts]), param) for param in options]
    if rows:
        yield "| | |\n|---|---|\n" + "".join(f"| `{_cell(name)}` | {_meaning(param)} |\n" for name, param in rows)
    for name, one in inner.items():
        yield from _described(f"{path} {name}", one)


def _named(argument: Any) -> str:
    return (argument.metavar or argument.name.upper()) + "…" * (argument.nargs == -1)


def words() -> str:
    """The subcommands and options of every command, for the shell's completion."""
    table: dict[str, dict[str, str]] = {}
    for name in flags.COMMANDS:
        made: Any = typer.main.get_command(importlib.import_module(MODULES[name]).app)
        for path, command in ((name, made), *((f"{name} {n}", c) for n, c in getattr(made, "commands", {}).items())):
            inner = {n: (c.help or "").partition("\n")[0] for n, c in getattr(command, "commands", {}).items()}
            options = {o: p.help or "" for p in command.params if p.param_type_name == "option" for o in p.opts}
            # Words that an argument takes as they stand are in its metavar in lower case: [SESSION|show|diff].
            arguments = {
                word: p.help or ""
                for p in command.params
                if p.param_type_name == "argument"
                for word in re.findall(r"\b[a-z]+\b", p.metavar or "")
            }
            table[path] = inner | arguments | options
    return json.dumps(table, indent=1, ensure_ascii=False) + "\n"


def _meaning(param: Any) -> str:
    shown = param.default not in (None, False, True, "", [], ()) and not callable(param.default)
    return _cell(f"{param.help or ''}" + (f" (default {param.default})" if shown else ""))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
