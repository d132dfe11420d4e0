"""Runs a program as a hook: it reads the ctx as JSON on stdin and may answer with JSON on stdout."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ra.core.errors import HookFailed, UserError
from ra.middleware.context import Context
from ra.system.files import open_resolved
from ra.system.process import end_piped, start_piped

MAX_OUTPUT_BYTES = 16_000_000
MAX_WARNINGS = 20
NODE_HOOK = str(Path(__file__).with_name("node_hook.mjs"))
UNSET = (None, False)  # any other value is a decision: an empty reason still refuses
KEYS = '"stop", "deny", "compact", "context"'

# The first installed program runs the script, unless the file is executable and has a #! line.
INTERPRETERS: dict[str, tuple[str, ...]] = {
    ".sh": ("bash", "sh"),
    ".bash": ("bash",),
    ".zsh": ("zsh",),
    ".js": ("node",),
    ".mjs": ("node",),
    ".cjs": ("node",),
    ".ts": ("node",),
    ".mts": ("node",),
    ".rb": ("ruby",),
    ".pl": ("perl",),
    ".php": ("php",),
    ".lua": ("lua",),
}


def command_for(script: Path) -> tuple[str, ...]:
    """The command that runs a script, by its executable bit or its extension. Raises UserError."""
    programs = INTERPRETERS.get(script.suffix.lower())
    if os.access(script, os.X_OK) and (programs is None or _has_shebang(script)):
        return (str(script),)
    if programs is None:
        raise UserError(
            f"{script} is not a hook: use a .py file, {', '.join(INTERPRETERS)}, or make it executable (chmod +x)."
        )
    import shutil  # 4 ms, only for scripts without a #! line

    program = next((path for path in map(shutil.which, programs) if path), None)
    if program is None:
        raise UserError(f"{script} needs {' or '.join(programs)}, which is not installed.")
    if programs == ("node",):  # calls the default export of the module, like a Python function
        return (program, "--no-warnings", NODE_HOOK, str(script))
    return (program, str(script))


def _has_shebang(script: Path) -> bool:
    with open_resolved(script) as file:
        return file.read(2) == b"#!"


class HookProgram:
    """One program of a chain."""

    def __init__(self, name: str, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> None:
        self.name = name
        self.argv = argv
        self.cwd = cwd
        self.env = env

    async def run(self, ctx: Context, *, timeout_s: float) -> list[str]:
        """Runs the program and applies its answer. Returns the lines of its stderr as warnings. Raises HookFailed."""
        out, err = await self._output(ctx, timeout_s)
        answer = self._answer(out, ctx)
        context = answer.pop("context", None)
        try:
            if context is not None:
                ctx.apply(msgspec.convert(context, dict[str, Any]))
            if (reason := answer.pop("stop", None)) not in UNSET:
                ctx.stop("" if reason is True else str(reason))
            if answer.pop("compact", None):
                ctx.compact()
            if (reason := answer.pop("deny", None)) not in UNSET:
                ctx.deny("" if reason is True else str(reason))
        except (TypeError, msgspec.ValidationError) as error:
            raise HookFailed(f"{self.name}: {ctx.hook} failed: {str(error).rstrip('.')}.") from error
        if answer:
            raise HookFailed(f"{self.name}: {ctx.hook} failed: unknown key {next(iter(answer))!r}; use {KEYS}.")
        return [f"{self.name}: {line}" for line in err.splitlines()[-MAX_WARNINGS:]]

    def _answer(self, out: bytes, ctx: Context) -> dict[str, Any]:
        if not out.strip():
            # The node wrapper always answers, unless the file ended the process: then nothing may pass.
            if NODE_HOOK in self.argv:
                raise HookFailed(f"{self.name}: {ctx.hook} ended the process before it returned.")
            return {}
        try:
            return msgspec.json.decode(out, type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            excerpt = out[:80].decode(errors="replace").strip()
            raise HookFailed(
                f"{self.name}: {ctx.hook} failed: its output is not a JSON object with {KEYS}: {excerpt!r}. "
                "Write messages for people to stderr."
            ) from error

    async def _output(self, ctx: Context, timeout_s: float) -> tuple[bytes, str]:
        from ra.system.launch import under_reaper  # loads ctypes and tempfile, which only a program needs

        stdin_json = msgspec.json.encode(ctx.to_json())
        env = {**self.env, "RA_HOOK": str(ctx.hook), "RA_SESSION": ctx.loop.session}
        try:
            process = await start_piped(under_reaper(self.argv, cwd=str(self.cwd)), cwd=self.cwd, env=env)
        except OSError as error:
            raise HookFailed(f"{self.name}: {ctx.hook} could not be started: {error}.") from error
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            async with asyncio.timeout(timeout_s):
                _, out, err = await asyncio.gather(
                    _feed(process.stdin, stdin_json), _read(process.stdout), _read(process.stderr)
                )
                code = await process.wait()
        except TimeoutError as error:
            raise HookFailed(f"{self.name}: {ctx.hook} took longer than {timeout_s:g} s.") from error
        except OverflowError as error:
            raise HookFailed(f"{self.name}: {ctx.hook} wrote more than {MAX_OUTPUT_BYTES // 1_000_000} MB.") from error
        finally:
            await asyncio.shield(asyncio.create_task(end_piped(process)))
        stderr_text = err.decode(errors="replace")
        if code != 0:
            last = stderr_text.strip().splitlines()[-1:] or ["nothing on stderr"]
            raise HookFailed(f"{self.name}: {ctx.hook} failed with exit {code}: {last[0]}")
        return out, stderr_text


async def _feed(stdin: asyncio.StreamWriter, data: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # a script need not read its stdin
        stdin.write(data)
        await stdin.drain()
    stdin.close()


async def _read(stream: asyncio.StreamReader) -> bytes:
    """The whole stream. Raises OverflowError beyond MAX_OUTPUT_BYTES."""
    data = bytearray()
    while piece := await stream.read(65536):
        data += piece
        if len(data) > MAX_OUTPUT_BYTES:
            raise OverflowError
    return bytes(data)
