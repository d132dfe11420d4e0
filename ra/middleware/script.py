"""How does a program hook in? It reads the ctx as JSON on stdin and may answer with JSON on stdout."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ra.core.errors import HookFailed, UserError
from ra.middleware.context import Context

MAX_OUTPUT_BYTES = 16_000_000
MAX_WARNINGS = 20
KEYS = '"stop", "deny", "context"'

# The first program that is installed runs the script, unless the file is executable and says itself what runs it.
INTERPRETERS: dict[str, tuple[str, ...]] = {
    ".sh": ("bash", "sh"),
    ".bash": ("bash",),
    ".zsh": ("zsh",),
    ".js": ("node", "bun", "deno"),
    ".mjs": ("node", "bun", "deno"),
    ".cjs": ("node", "bun"),
    ".ts": ("bun", "deno", "node"),
    ".rb": ("ruby",),
    ".pl": ("perl",),
    ".php": ("php",),
    ".lua": ("lua",),
}


def command_for(script: Path) -> tuple[str, ...]:
    """How to run a script, by its executable bit or its extension. Raises UserError."""
    programs = INTERPRETERS.get(script.suffix.lower())
    if os.access(script, os.X_OK) and (programs is None or _says_what_runs_it(script)):
        return (str(script),)
    if programs is None:
        raise UserError(
            f"{script} is no hook: use a .py file, {', '.join(INTERPRETERS)}, or make it executable (chmod +x)."
        )
    import shutil  # 4 ms, for scripts that do not say what runs them

    found = next((path for path in map(shutil.which, programs) if path), None)
    if found is None:
        raise UserError(f"{script} needs {' or '.join(programs)}, which is not installed.")
    return (found, str(script))


def _says_what_runs_it(script: Path) -> bool:
    with script.open("rb") as file:
        return file.read(2) == b"#!"


class Script:
    """One program of a chain."""

    def __init__(self, name: str, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> None:
        self.name = name
        self.argv = argv
        self.cwd = cwd
        self.env = env

    async def run(self, ctx: Context, *, timeout_s: float) -> list[str]:
        """Run it and apply its answer. What it wrote to stderr comes back as warnings. Raises HookFailed."""
        out, err = await self._output(ctx, timeout_s)
        answer = self._answer(out, ctx)
        context = answer.pop("context", None)
        try:
            if context is not None:
                ctx.apply(msgspec.convert(context, dict[str, Any]))
            if reason := answer.pop("stop", None):
                ctx.stop("" if reason is True else str(reason))
            if reason := answer.pop("deny", None):
                ctx.deny("" if reason is True else str(reason))
        except (TypeError, msgspec.ValidationError) as error:
            raise HookFailed(f"{self.name}: {ctx.hook} failed: {error}.") from error
        if answer:
            raise HookFailed(f"{self.name}: {ctx.hook} failed: unknown key {next(iter(answer))!r}; use {KEYS}.")
        return [f"{self.name}: {line}" for line in err.splitlines()[-MAX_WARNINGS:]]

    def _answer(self, out: bytes, ctx: Context) -> dict[str, Any]:
        if not out.strip():
            return {}
        try:
            return msgspec.json.decode(out, type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            shown = out[:80].decode(errors="replace").strip()
            raise HookFailed(
                f"{self.name}: {ctx.hook} failed: its output is no JSON object with {KEYS}: {shown!r}. "
                "What is meant for people belongs on stderr."
            ) from error

    async def _output(self, ctx: Context, timeout_s: float) -> tuple[bytes, str]:
        sent = msgspec.json.encode(ctx.to_json())
        env = {**self.env, "RA_HOOK": str(ctx.hook), "RA_SESSION": ctx.loop.session}
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *self.argv, stdin=pipe, stdout=pipe, stderr=pipe, cwd=self.cwd, env=env, start_new_session=True
            )
        except OSError as error:
            raise HookFailed(f"{self.name}: {ctx.hook} could not be started: {error}.") from error
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            async with asyncio.timeout(timeout_s):
                _, out, err = await asyncio.gather(
                    _feed(process.stdin, sent), _read(process.stdout), _read(process.stderr)
                )
                code = await process.wait()
        except TimeoutError as error:
            raise HookFailed(f"{self.name}: {ctx.hook} took longer than {timeout_s:g} s.") from error
        except OverflowError as error:
            raise HookFailed(f"{self.name}: {ctx.hook} wrote more than {MAX_OUTPUT_BYTES // 1_000_000} MB.") from error
        finally:
            await _end(process)
        told = err.decode(errors="replace")
        if code != 0:
            last = told.strip().splitlines()[-1:] or ["it said nothing on stderr"]
            raise HookFailed(f"{self.name}: {ctx.hook} failed with exit {code}: {last[0]}")
        return out, told


async def _feed(stdin: asyncio.StreamWriter, data: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # a script need not read what it is told
        stdin.write(data)
        await stdin.drain()
    stdin.close()


async def _read(stream: asyncio.StreamReader) -> bytes:
    """All of it. Raises OverflowError when there is too much."""
    data = bytearray()
    while piece := await stream.read(65536):
        data += piece
        if len(data) > MAX_OUTPUT_BYTES:
            raise OverflowError
    return bytes(data)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Nothing that the script started outlives it, and a pipe that a stray child holds open is not waited for."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process._transport.close()  # type: ignore[attr-defined]  # there is no public way to close the pipes
    await process.wait()
