"""May this call run? The REPL's way to ask: what would run, why it asks, and a key."""

from rich.text import Text

from ra.cli.ask import KEYS, VERDICTS, editable, edited
from ra.cli.paper import Paper
from ra.cli.repl.changes import coloured
from ra.cli.repl.terminal import Terminal
from ra.cli.safe import visible
from ra.core.asking import Answer, Question


async def ask(question: Question, terminal: Terminal, paper: Paper) -> Answer:
    head = Text.assemble((f"{question.call.name} ", "bold yellow"), (visible(question.reason), "yellow"))
    terminal.show("\n" + paper.rendered(head) + paper.rendered(*coloured(question.preview.split("\n"), indent="  ")))
    while True:
        key = await terminal.choose("Run it?", KEYS)
        if key != "e":
            return Answer(VERDICTS.get(key, "no"))
        typed = await terminal.line("edit › ", editable(question.call))
        if not typed or not typed.strip():
            continue
        changed = edited(question.call, typed)
        if changed is not None:
            return Answer("once", changed)
        terminal.show(paper.line("That is no JSON object.", "red"))
