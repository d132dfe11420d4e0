"""How is a person asked for permission on a plain terminal? With exactly what would run, by a key not typed ahead."""

import asyncio
import contextlib
import sys

from ra.cli.output import Streams
from ra.cli.safe import visible
from ra.core.ports import Answer, Asker, Question

_WORDS = {"y": "once", "s": "session", "p": "project", "n": "no"}


def ask_on_terminal(streams: Streams) -> Asker:
    lock = asyncio.Lock()  # parallel calls ask one after the other

    async def ask(question: Question) -> Answer:
        async with lock:
            streams.err(f"\n{visible(question.preview)}\n{visible(question.reason)}\n")
            return await asyncio.to_thread(_read_answer, streams)

    return ask


def _read_answer(streams: Streams) -> Answer:
    forget_typed_ahead()
    while True:
        streams.err("Run it?  y once · s this session · p this project · n no: ")
        line = sys.stdin.readline()
        if not line:  # Ctrl-D
            return Answer("no")
        match _WORDS.get(line.strip().lower()[:1]):
            case "once":
                return Answer("once")
            case "session":
                return Answer("session")
            case "project":
                return Answer("project")
            case "no":
                return Answer("no")
            case _:
                streams.err("Please answer y, s, p or n.\n")


def forget_typed_ahead() -> None:
    """Keys that were pressed or pasted before the question are not an answer to it."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
