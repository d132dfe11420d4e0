"""`python -m tests.cli.repl.pictures`: takes the pictures of docs/repl.md and the README of the real program."""

import io
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.style import Style
from rich.text import Text

from ra.providers.script import Call, Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import RA, Shell
from tests.cli.repl.pty_terminal import PtyTerminal
from tests.pages import ROOT

COLUMNS, ROWS = 92, 26
START = [RA, "--set", "agent.compaction.contextWindow=20000"]

# No fonts from the network: a picture must not tell anybody that it was looked at.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}\n|<!--.*?-->", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)

SOURCE = "def greet(name):\n    return 'Hello ' + name\n" + "".join(
    f"\n\ndef step_{n}(value):\n    return value * {n} + {n * 7}\n" for n in range(60)
)

ANSWER = """\
`greet` joins strings by hand; an **f-string** reads better:

```python
def greet(name: str) -> str:
    return f"Hello {name}"
```

- the parameter has a type now
- the tests still pass
"""


def model(body: dict[str, Any]) -> Step:
    """Reads, edits, answers; later asks for something that needs a word."""
    blocks = [block for message in body["messages"] for block in message["content"]]
    results = sum(block["type"] == "tool_result" for block in blocks)
    prompts = [block["text"] for block in blocks if block["type"] == "text"]
    if any("publish" in prompt for prompt in prompts):
        return Step(calls=(Call("Write", {"path": "AGENTS.md", "content": "Run the tests.\n"}),))
    if results == 0:
        return Step(thinking="Look first.", calls=(Call("Read", {"path": "hello.py"}),))
    if results == 1:
        edit = {"path": "hello.py", "old_string": "'Hello ' + name", "new_string": 'f"Hello {name}"'}
        return Step(calls=(Call("Edit", edit),))
    return Step(text=ANSWER)


class Cache:
    """What the request before held is read, the rest is written."""

    def __init__(self) -> None:
        self._held = 0

    def __call__(self, body: dict[str, Any]) -> tuple[int, int]:
        size = len(str(body)) // 4
        held, self._held = self._held, size - 200
        return held, size - 200 - held


def talk(terminal: PtyTerminal) -> None:
    terminal.enter("improve @hello.py")
    terminal.wait("Edit hello.py?")
    terminal.look(1)  # a key that comes with the question answers nothing
    terminal.type("y")
    terminal.wait("the tests still pass")


def context(terminal: PtyTerminal) -> None:
    terminal.enter("/context")
    terminal.wait("next input about")


def permission(terminal: PtyTerminal) -> None:
    terminal.enter("write down how to publish")
    terminal.wait("Run it?")


def resume(terminal: PtyTerminal) -> None:
    terminal.look(0.3)
    terminal.type("n\x03")
    terminal.wait("kept")
    terminal.enter("/clear")
    terminal.enter("/resume")
    terminal.wait("Which session?")


SCENES: dict[str, Callable[[PtyTerminal], None]] = {
    "repl": talk,
    "repl-context": context,
    "repl-permission": permission,
    "repl-resume": resume,
}


# What is pressed in `ra tour`, what then appears, and for how many seconds it is shown.
TOUR = (
    ("", "1 of 6", 3),
    ("\r", "2 of 6", 4),
    ("\r", "Edit cart.py?", 4),
    ("y", "3 of 6", 3),
    ("\r", "What fills the window", 4),
    ("\r", "4 of 6", 5),
    ("\r", "Compact?", 6),
    ("y", "5 of 6", 4),
    ("\r", "6 of 6", 5),
    ("\r", "Press Enter to continue", 5),
)


def tour(terminal: PtyTerminal) -> Iterator[tuple[str, int]]:
    for number, (keys, text, seconds) in enumerate(TOUR):
        terminal.type(keys)
        terminal.wait(text)
        terminal.look(1)
        yield re.sub(r"ra-tour-\w+", "ra-tour", svg(terminal, f"tour{number}", whole=True)), seconds


def moving(frames: list[tuple[str, int]]) -> str:
    """One picture that shows one frame after another; the last one alone to those who want nothing to move."""
    total = sum(seconds for _, seconds in frames)
    style, pictures, start = [".frame {opacity: 0}"], [], 0
    for number, (picture, seconds) in enumerate(frames):
        on, off = 100 * start / total, 100 * (start + seconds) / total
        times = f"0% {{opacity: {int(not start)}}} {on:.2f}% {{opacity: 1}} {off:.2f}% {{opacity: 0}}"
        style.append(f"@keyframes f{number} {{{times}}} #f{number} {{animation: f{number} {total}s step-end infinite}}")
        pictures.append(f'<g class="frame" id="f{number}">{picture}</g>')
        start += seconds
    style.append(f"@media (prefers-reduced-motion) {{.frame {{animation: none}} #f{len(frames) - 1} {{opacity: 1}}}}")
    box = re.search(r'viewBox="[^"]+"', frames[0][0])
    assert box is not None
    inner = f"<style>{' '.join(style)}</style>{''.join(pictures)}"
    return f'<svg {box[0]} xmlns="http://www.w3.org/2000/svg">{inner}</svg>\n'


def svg(terminal: PtyTerminal, name: str, *, whole: bool = False) -> str:
    """The screen as it is, without the empty rows at its end unless it is wanted whole."""
    rows = [_row(terminal, number) for number in range(ROWS)]
    while rows and not whole and not rows[-1].plain.strip():
        rows.pop()
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    for row in rows:
        console.print(row, no_wrap=True, crop=False)
    return console.export_svg(title="ra", code_format=FORMAT, unique_id=name)


def _row(terminal: PtyTerminal, number: int) -> Text:
    row = terminal.screen.buffer[number]
    runs = groupby(range(COLUMNS), key=lambda column: _style(row[column]))
    return Text.assemble(*(("".join(row[column].data for column in columns), style) for style, columns in runs))


def _style(char: Any) -> Style:
    colour = None if char.fg == "default" else char.fg.replace("brown", "yellow").replace("bright", "bright_")
    if colour and re.fullmatch(r"[0-9a-f]{6}", colour):
        colour = f"#{colour}"
    return Style(color=colour, bold=char.bold, italic=char.italics, underline=char.underscore, reverse=char.reverse)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, LoopbackServer("anthropic", model, cache=Cache()) as server:
        shell = Shell(Path(folder))
        shell.serve(server)
        (shell.project / "hello.py").write_text(SOURCE)
        with PtyTerminal(START, env=shell.env, cwd=shell.project, columns=COLUMNS, rows=ROWS) as terminal:
            terminal.wait("/help")
            for name, play in SCENES.items():
                play(terminal)
                terminal.look(0.3)
                target = ROOT / "docs" / "img" / f"{name}.svg"
                target.write_text(svg(terminal, name).replace(folder, "~"))
                if "-v" in sys.argv:
                    print(terminal.text)
                print(f"wrote {target.relative_to(ROOT)}")
        with PtyTerminal([RA, "tour"], env=shell.env, cwd=shell.project, columns=COLUMNS, rows=ROWS) as terminal:
            (ROOT / "docs/img/tour.svg").write_text(moving(list(tour(terminal))))


if __name__ == "__main__":
    main()
