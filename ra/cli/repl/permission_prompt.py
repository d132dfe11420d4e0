"""Asks in the interactive prompt whether a call may run."""

import os
from functools import partial

from rich.text import Text

from ra.cli import changes
from ra.cli.permission_prompt import (
    IN_EDITOR,
    VERDICTS,
    WHY,
    asked,
    edit_in_editor,
    editable,
    edited,
    editor_command,
)
from ra.cli.render import Paper
from ra.cli.repl.terminal import Terminal
from ra.core.asking import Answer, FieldValue, Question, field_label, read_field
from ra.core.messages import ToolCall
from ra.core.text import visible


async def ask(question: Question, terminal: Terminal, paper: Paper) -> Answer:
    terminal.show(_subject(question, paper))
    words, keys = asked(question)
    while True:
        key = await terminal.choose(words, keys)
        if key == "y" and question.fields:
            return await _filled_in(question, terminal, paper)
        if key == "n" and question.form:
            return Answer("no")
        if key == "n":
            return Answer("no", why=(await terminal.line(WHY + "› ") or "").strip())
        if key != "e":
            return Answer(VERDICTS.get(key, "no"))
        typed = await _edited_text(question.call, terminal)
        if not typed or not typed.strip():
            continue
        changed = edited(question.call, typed)
        if changed is not None:
            return Answer("once", changed)
        terminal.show(paper.line("This is not a JSON object.", "red"))


async def _filled_in(question: Question, terminal: Terminal, paper: Paper) -> Answer:
    """The user's answer for each field; a refusal if the user dismissed the question."""
    values: dict[str, FieldValue] = {}
    for field in question.fields:
        while field.name not in values:
            line = await terminal.line(visible(field_label(field)))
            if line is None:
                return Answer("no")
            try:
                values[field.name] = read_field(field, line)
            except ValueError as error:
                terminal.show(paper.line(str(error), "red"))
    return Answer("once", values=values)


def _subject(question: Question, paper: Paper) -> str:
    reason, change = visible(question.reason), question.change
    if change is None:
        head = Text.assemble((f"{question.call.name} ", "bold yellow"), (reason, "yellow"))
        return "\n" + paper.rendered(head) + paper.rendered(*(Text("  " + visible(line)) for line in _lines(question)))
    head = Text.assemble((f"{question.call.name} {changes.head(change)} ", "bold yellow"), (f"({reason})", "yellow"))
    return "\n" + paper.rendered(head) + changes.shown(change, paper, most=changes.ASKED)


def _lines(question: Question) -> list[str]:
    return question.preview.split("\n")


async def _edited_text(call: ToolCall, terminal: Terminal) -> str | None:
    """A command is edited in the input line; a multi-line text in the user's editor, if one is configured."""
    editor = editor_command(os.environ)
    if not editor or call.name not in IN_EDITOR:
        return await terminal.line("edit › ", editable(call))
    texts: list[str] = []
    await terminal.lend(partial(_in_editor, editor, call, texts))
    return texts[0]


def _in_editor(editor: str, call: ToolCall, texts: list[str]) -> int:
    texts.append(edit_in_editor(editor, call))
    return 0
