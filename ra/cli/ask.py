"""How is a person asked for permission? With exactly what would run, by a key that was not typed ahead."""

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

import msgspec

from ra.cli.output import Streams
from ra.cli.safe import visible
from ra.core.asking import Answer, Asker, Question
from ra.core.messages import ToolCall
from ra.core.text import clean

Verdict = Literal["once", "session", "project", "no"]

VERDICTS: dict[str, Verdict] = {"y": "once", "s": "session", "p": "project", "n": "no"}
KEYS = {"y": "once", "s": "this session", "p": "this project", "n": "no", "e": "edit"}


def ask_on_terminal(streams: Streams) -> Asker:
    lock = asyncio.Lock()  # parallel calls ask one after the other

    async def ask(question: Question) -> Answer:
        async with lock:
            streams.err(f"\n{visible(question.preview)}\n{visible(question.reason)}\n")
            return await asyncio.to_thread(_read_answer, question, streams)

    return ask


def ask_outside(streams: Streams) -> Callable[[Path], Awaitable[bool]]:
    """May a reference read something outside the project?"""

    async def ask(path: Path) -> bool:
        forget_typed_ahead()
        streams.err(f"{visible(str(path))} lies outside this project. Attach it?  y yes · n no: ")
        line = await asyncio.to_thread(sys.stdin.readline)
        return line.strip().lower() in ("y", "yes")

    return ask


def _read_answer(question: Question, streams: Streams) -> Answer:
    forget_typed_ahead()
    while True:
        streams.err(f"Run it?  {' · '.join(f'{key} {word}' for key, word in KEYS.items())}: ")
        line = sys.stdin.readline()
        if not line:  # Ctrl-D
            return Answer("no")
        key = line.strip().lower()[:1]
        if key in VERDICTS:
            return Answer(VERDICTS[key])
        if key == "e":
            streams.err(f"Instead of: {visible(editable(question.call))}\nrun: ")
            typed = sys.stdin.readline().rstrip("\n")
            changed = edited(question.call, typed) if typed.strip() else None
            if changed is not None:
                return Answer("once", changed)
        streams.err("Please answer y, s, p, n or e.\n")


# The one argument of a call that people want to change; a call without it is edited as JSON.
_EDITED = {"Bash": "command", "WebFetch": "url", "Read": "path", "LS": "path", "Glob": "pattern"}


def editable(call: ToolCall) -> str:
    """The text that a user edits: the command itself, or the arguments as JSON."""
    key = _EDITED.get(call.name, "")
    value = call.args.get(key)
    return value if isinstance(value, str) else msgspec.json.encode(call.args).decode()


def edited(call: ToolCall, text: str) -> ToolCall | None:
    """The call with that text in its place; None when it is no JSON object where one is needed."""
    text = clean(text)
    key = _EDITED.get(call.name, "")
    if isinstance(call.args.get(key), str):
        return msgspec.structs.replace(call, args={**call.args, key: text})
    try:
        args = msgspec.json.decode(text, type=dict)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return msgspec.structs.replace(call, args=args)


def forget_typed_ahead() -> None:
    """Keys that were pressed or pasted before the question are not an answer to it."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
