"""Turn a user's own function or script into a tool."""

import asyncio
import inspect
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ra.core.errors import ConfigError
from ra.core.model import ToolSpec
from ra.system.launch import under_reaper
from ra.system.process import start
from ra.tools.tool import Mistake, Output, Say, Tool, schema_of, text_output

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_TYPES = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict}
_INTERPRETERS = {".py": sys.executable, ".sh": "bash", ".js": "node", ".mjs": "node", ".rb": "ruby", ".pl": "perl"}
_HEADER = """# tool: one sentence on what it does
# arg NAME (string|integer|number|boolean|array|object[, optional]): what it means"""


def function_tool(function: Callable[..., Any]) -> Tool:
    """A tool from a function with type hints and a docstring. Raises ConfigError that says what is missing."""
    name = getattr(function, "__name__", "")
    where = f"Custom tool {name!r}"
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{where}: a tool is a function with a name of letters, digits and _.")
    words, notes = _docstring(function)
    if not words:
        raise ConfigError(f"{where} needs a docstring: the model reads it to know when to use the tool.")
    args = _args_of(function, notes, where)

    async def run(given: msgspec.Struct, say: Say) -> Output:
        arguments = {field: value for field in args.__struct_fields__ if (value := getattr(given, field)) is not UNSET}
        try:
            if inspect.iscoroutinefunction(function):
                answer = await function(**arguments)
            else:
                answer = await asyncio.to_thread(function, **arguments)
        except Exception as error:  # the user's code may raise anything; the model hears of it, the run goes on
            raise Mistake(f"{name} failed: {type(error).__name__}: {error}") from error
        return _answer(answer)

    return Tool(ToolSpec(name, words, schema_of(args)), run, args)


def script_tool(path: str, *, cwd: str, env: Mapping[str, str], timeout_s: float) -> Tool:
    """A tool from a script: arguments as JSON on its stdin, the result on its stdout; an exit code means an error.

    What it does and takes is told by comments at its head. Raises ConfigError that shows them.
    """
    name = Path(path).stem
    where = f"Custom tool {path!r}"
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{where}: the file's name without its ending becomes the tool's name: letters, digits, _ and -."
        )
    command = _command(path, where)
    args = _declared(path, where)
    words = _described(path, where)

    async def run(given: msgspec.Struct, say: Say) -> Output:
        with tempfile.TemporaryFile() as stdin:
            stdin.write(msgspec.json.encode(given))
            stdin.seek(0)
            running = await start(under_reaper(command, cwd=cwd), cwd=cwd, env=dict(env), say=say, stdin=stdin.fileno())
        ended = await running.wait(timeout_s)
        text = running.output.text()
        if ended.timed_out:
            return text_output(f"{text}\n[timed out after {timeout_s:g} s; killed]", is_error=True)
        return text_output(text or "(no output)", is_error=ended.code != 0)

    return Tool(ToolSpec(name, words, schema_of(args)), run, args, own_timeout=True)


def _args_of(function: Callable[..., Any], notes: dict[str, str], where: str) -> type[msgspec.Struct]:
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise ConfigError(f"{where}: its type hints cannot be read: {error}.") from error
    fields: list[Any] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ConfigError(f"{where}: {parameter} cannot be described to a model; name each parameter.")
        if parameter.name not in hints:
            raise ConfigError(
                f"{where}: parameter {parameter.name!r} needs a type hint, such as {parameter.name}: str."
            )
        hint = hints[parameter.name]
        if note := notes.get(parameter.name):
            hint = Annotated[hint, Meta(description=note)]
        if parameter.default is not parameter.empty:
            fields.append((parameter.name, hint | UnsetType, UNSET))
        else:
            fields.append((parameter.name, hint))
    try:
        args = msgspec.defstruct("Args", fields, kw_only=True)
        schema_of(args)
        msgspec.json.Decoder(args)  # refuses types that no JSON can become
    except TypeError as error:
        raise ConfigError(f"{where}: {error}.") from error
    return args


def _docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The words before the parameters, and a line for each `name: text` or `name (type): text` among them."""
    text = inspect.getdoc(function) or ""
    head = re.split(r"\n\s*(?:Args|Arguments|Parameters|Returns|Raises)\s*:?\s*\n", text)[0]
    names = inspect.signature(function).parameters
    notes = {
        m[1]: m[2].strip() for m in re.finditer(r"^[ \t]*(?::param )?(\w+)(?: \([^)]*\))?: (.+)$", text, re.MULTILINE)
    }
    lines = [line for line in head.splitlines() if not re.match(r"\s*:(param|return)", line)]
    return " ".join(" ".join(lines).split()), {name: note for name, note in notes.items() if name in names}


def _answer(value: Any) -> Output:
    if isinstance(value, Output):
        return value
    if value is None:
        return text_output("Done.")
    if isinstance(value, str):
        return text_output(value)
    try:
        return text_output(msgspec.json.encode(value).decode())
    except (TypeError, ValueError):
        return text_output(str(value))


def _head(path: str, where: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(8192).splitlines()
    except OSError as error:
        raise ConfigError(f"{where} cannot be read: {error.strerror}.") from error


def _described(path: str, where: str) -> str:
    for line in _head(path, where):
        if found := re.match(r"\s*(?:#|//|--)\s*tool:\s*(\S.*)", line):
            return found[1].strip()
    raise ConfigError(f"{where} has no header. Put this at its top:\n{_HEADER}")


def _declared(path: str, where: str) -> type[msgspec.Struct]:
    required: list[Any] = []
    optional: list[Any] = []
    for line in _head(path, where):
        if not re.match(r"\s*(?:#|//|--)\s*arg\b", line):
            continue
        match = re.match(r"\s*(?:#|//|--)\s*arg\s+(\w+)\s*\((\w+)(,\s*optional)?\)\s*:?\s*(.*)", line)
        if not match or match[2] not in _TYPES:
            raise ConfigError(f"{where}: this line cannot be read: {line.strip()!r}. It should look like:\n{_HEADER}")
        hint: Any = Annotated[_TYPES[match[2]], Meta(description=match[4] or None)]
        if match[3]:
            optional.append((match[1], hint | UnsetType, UNSET))
        else:
            required.append((match[1], hint))
    return msgspec.defstruct("Args", required + optional, kw_only=True)


def _command(path: str, where: str) -> list[str]:
    if os.access(path, os.X_OK):
        return [os.path.abspath(path)]
    interpreter = _INTERPRETERS.get(Path(path).suffix)
    if interpreter is None or not shutil.which(interpreter):
        suffixes = ", ".join(_INTERPRETERS)
        raise ConfigError(
            f"{where} cannot be run: make it executable (chmod +x), or end its name with one of {suffixes}."
        )
    return [interpreter, os.path.abspath(path)]
