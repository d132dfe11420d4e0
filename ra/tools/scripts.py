"""Turns a user's script into a tool."""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ra.core.errors import ConfigError
from ra.core.model import ToolSpec
from ra.system.launch import under_reaper
from ra.system.process import start
from ra.tools.functions import TOOL_NAME
from ra.tools.tool import Output, Say, Tool, schema_of, text_output

_TYPES = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict}
_INTERPRETERS = {".py": sys.executable, ".sh": "bash", ".js": "node", ".mjs": "node", ".rb": "ruby", ".pl": "perl"}
_HEADER = """# tool: one sentence on what it does
# arg NAME (string|integer|number|boolean|array|object[, optional]): what it means"""


def script_tool(path: str, *, cwd: str, env: Mapping[str, str], timeout_s: float) -> Tool:
    """A tool from a script: JSON arguments on stdin, the result on stdout; a non-zero exit code means an error.

    Comments at its head describe the tool and its arguments. Raises ConfigError that shows their form.
    """
    name = Path(path).stem
    where = f"Custom tool {path!r}"
    if not TOOL_NAME.fullmatch(name):
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


def _head(path: str, where: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(8192).splitlines()
    except OSError as error:
        raise ConfigError(f"{where} cannot be read: {error.strerror}.") from error


def _described(path: str, where: str) -> str:
    for line in _head(path, where):
        if match := re.match(r"\s*(?:#|//|--)\s*tool:\s*(\S.*)", line):
            return match[1].strip()
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
