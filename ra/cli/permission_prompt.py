"""Asks a person for permission: shows exactly what would run, and ignores keys that were typed ahead."""

import asyncio
import contextlib
import os
import select
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from ra.cli.output import Streams
from ra.cli.repl.wrap import question_rows
from ra.core.asking import Answer, Asker, FieldValue, Question, field_label, read_field
from ra.core.messages import ToolCall
from ra.core.text import clean, visible

T = TypeVar("T")
Verdict = Literal["once", "session", "project", "no"]

VERDICTS: dict[str, Verdict] = {"y": "once", "s": "session", "a": "session", "p": "project", "n": "no"}
KEYS = {"n": "no", "y": "once", "s": "this session", "p": "this project", "e": "edit"}
FORM_KEYS = {"n": "no", "y": "answer"}
EDIT_KEYS = {"n": "no", "y": "yes", "a": "all edits this session", "e": "edit"}
WHY = "No. Why, for the model? (Enter: no reason) "


LOOK_S = 0.1  # interval of the checks whether the run was stopped


def asked(question: Question) -> tuple[str, Mapping[str, str]]:
    """The text of a question, and the keys that answer it, the refusing one first."""
    if question.edits and question.change is not None:
        return f"{question.call.name} {visible(question.change.path)}?", EDIT_KEYS
    if question.form:
        return "Answer?" if question.fields else "Agree?", FORM_KEYS
    return "Run it?", KEYS


def ask_on_terminal(streams: Streams) -> Asker:
    lock = asyncio.Lock()  # parallel calls ask one after the other

    async def ask(question: Question) -> Answer:
        async with lock:
            await asyncio.sleep(0)  # earlier events are shown before the question
            with streams.asked(question.call.id):
                streams.err(_subject(question, streams))
                return await _until_stopped(partial(_read_answer, question, streams))

    return ask


async def choose(question: str, keys: Mapping[str, str], streams: Streams) -> str:
    """`choose_on_terminal` in a thread, so that Ctrl-C ends the question."""
    return await _until_stopped(partial(choose_on_terminal, question, keys, streams))


async def _until_stopped(read: Callable[[threading.Event], T]) -> T:
    """Reads in a thread. After a stop the thread still waits for a key, which must not delay the end."""
    stop = threading.Event()
    try:
        return await asyncio.to_thread(read, stop)
    finally:
        stop.set()


def ask_outside(streams: Streams) -> Callable[[Path], Awaitable[bool]]:
    """Asks whether a reference may read something outside the project."""

    async def ask(path: Path) -> bool:
        question = f"{visible(str(path))} lies outside this project. Attach it?"
        return await choose(question, {"n": "no", "y": "yes"}, streams) == "y"

    return ask


def _subject(question: Question, streams: Streams) -> str:
    """What would run, and the reason for the question; a change of a file as its difference."""
    if question.change is None:
        return f"\n{visible(question.preview)}\n{visible(question.reason)}\n"
    from ra.cli import changes  # start-up time: Rich, while a person reads
    from ra.cli.render import Paper, light_background

    width = shutil.get_terminal_size().columns
    paper = Paper(colour=streams.colour, plain=streams.plain, width=width, light=light_background(os.environ))
    head = paper.line(f"{question.call.name} {changes.head(question.change)} ({visible(question.reason)})", "bold")
    return "\n" + head + changes.shown(question.change, paper, most=changes.ASKED)


def _read_answer(question: Question, streams: Streams, stop: threading.Event) -> Answer:
    forget_typed_ahead()
    words, keys = asked(question)
    while True:
        streams.err(wrapped(words, keys) + ": ")
        key = _read_key(stop)
        streams.err(f"{key}\n" if key.isprintable() else "\n")
        if key in ("", "\x04", "\x1b"):  # stopped, Ctrl-D, Escape
            return Answer("no")
        if key == "y" and question.fields:
            return _filled_in(question, streams, stop)
        if key == "n" and question.form:
            return Answer("no")
        if key == "n":
            streams.err(WHY)
            return Answer("no", why=clean(_read_line(stop).strip()))
        if key in keys and key in VERDICTS:
            return Answer(VERDICTS[key])
        if key == "e":
            typed = _edited_text(question.call, streams, stop)
            changed = edited(question.call, typed) if typed.strip() else None
            if changed is not None:
                return Answer("once", changed)
        streams.err(f"Please answer {', '.join(keys)}.\n")


def _filled_in(question: Question, streams: Streams, stop: threading.Event) -> Answer:
    """The user's answer for each field; a refusal if the input ended or the run was stopped."""
    values: dict[str, FieldValue] = {}
    for field in question.fields:
        while field.name not in values:
            streams.err(visible(field_label(field)))
            line = _read_line(stop)
            if not line:
                return Answer("no")
            try:
                values[field.name] = read_field(field, clean(line))
            except ValueError as error:
                streams.err(f"{error}\n")
    return Answer("once", values=values)


def wrapped(words: str, keys: Mapping[str, str]) -> str:
    """A question with its keys, wrapped between words."""
    return "\n".join(question_rows(words, keys, max(20, shutil.get_terminal_size().columns - 2)))


def _edited_text(call: ToolCall, streams: Streams, stop: threading.Event) -> str:
    if (editor := editor_command(os.environ)) and call.name in IN_EDITOR:
        return edit_in_editor(editor, call)
    streams.err(f"Instead of: {visible(editable(call))}\nrun: ")
    return _read_line(stop).rstrip("\n")


def editor_command(env: Mapping[str, str]) -> str:
    return env.get("VISUAL") or env.get("EDITOR") or ""


def edit_in_editor(editor: str, call: ToolCall) -> str:
    """The text of a call after the user's editor; "" if the editor failed."""
    suffix = Path(str(call.args.get("path", ""))).suffix
    with tempfile.NamedTemporaryFile("w+", suffix=suffix, encoding="utf-8") as file:
        file.write(editable(call))
        file.flush()
        # Through a shell, because the variable may hold arguments: `code --wait`.
        if subprocess.run(["/bin/sh", "-c", f'{editor} "$1"', "sh", file.name], check=False).returncode:
            return ""
        return Path(file.name).read_text(encoding="utf-8", errors="replace")


def choose_on_terminal(
    question: str, keys: Mapping[str, str], streams: Streams, stop: threading.Event | None = None
) -> str:
    """One of the keys; "" for none of them, Escape, the end of input, or if `stop` is set."""
    forget_typed_ahead()
    streams.err(wrapped(question, keys) + ": ")
    key = _read_key(stop or threading.Event())
    streams.err(f"{key}\n" if key.isprintable() else "\n")
    return key if key in keys else ""


def _read_line(stop: threading.Event) -> str:
    """A line; "" if `stop` is set first."""
    while not stop.is_set():
        if select.select([sys.stdin.fileno()], [], [], LOOK_S)[0]:
            return sys.stdin.readline()
    return ""


def _read_key(stop: threading.Event) -> str:
    """One key, without Enter; "" if the input ended or `stop` is set. Without termios, the first key of a line."""
    try:
        import termios
        import tty
    except ImportError:  # Windows
        return sys.stdin.readline().strip().lower()[:1]
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        # Ctrl-C remains a signal; a key that was pressed since the question appeared is an answer, and is kept.
        tty.setcbreak(descriptor, termios.TCSADRAIN)
        while not stop.is_set():
            if select.select([descriptor], [], [], LOOK_S)[0]:
                return os.read(descriptor, 1).decode("utf-8", "replace").lower()
        return ""
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


# The argument of a call that people want to change; other calls are edited as JSON.
_EDITED = {
    "Bash": "command",
    "WebFetch": "url",
    "Read": "path",
    "LS": "path",
    "Glob": "pattern",
    "Write": "content",
    "Edit": "new_string",
}
IN_EDITOR = ("Write", "Edit")  # multi-line texts


def _edited_key(call: ToolCall) -> str:
    return "" if call.args.get("edits") else _EDITED.get(call.name, "")


def editable(call: ToolCall) -> str:
    """The text for the user to edit: the command itself, or the arguments as JSON."""
    key = _edited_key(call)
    value = call.args.get(key)
    return value if isinstance(value, str) else msgspec.json.encode(call.args).decode()


def edited(call: ToolCall, text: str) -> ToolCall | None:
    """The call with that text; None if the text must be a JSON object and is not."""
    text = clean(text)
    key = _edited_key(call)
    if isinstance(call.args.get(key), str):
        return msgspec.structs.replace(call, args={**call.args, key: text})
    try:
        args = msgspec.json.decode(text, type=dict)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return msgspec.structs.replace(call, args=args)


def forget_typed_ahead() -> None:
    """Discards keys that were pressed or pasted before the question: they do not answer it."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
