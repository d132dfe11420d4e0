"""What does `!command` do? It runs in the user's own shell, and what it printed goes along with the next prompt."""

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from ra.cli.safe import visible
from ra.core.errors import UsageError
from ra.core.messages import Text
from ra.core.value import Value
from ra.resolvers.label import label

if TYPE_CHECKING:
    from ra.cli.repl.core import Repl

MOST = 200_000  # characters that are attached; both ends of more


class Output(Value, frozen=True):
    """What a command of the user printed: data for the model, never a call of it."""

    command: str
    code: int
    text: str

    @property
    def block(self) -> Text:
        half = MOST // 2
        cut = len(self.text) - MOST
        text = f"{self.text[:half]}\n[{cut} characters left out]\n{self.text[-half:]}" if cut > 0 else self.text
        return Text(label("command-output", text, command=self.command, exit=str(self.code)))


async def run(repl: "Repl", command: str) -> None:
    """No sandbox and no question: the user typed it. The output is shown as it comes."""
    if not command:
        raise UsageError("Write a command after the exclamation mark: !git status")
    pieces: list[str] = []
    code = await repl.terminal.lend(lambda: _run(command, repl.app.env.get("SHELL", ""), pieces))
    output = Output(command, code, "".join(pieces))
    repl.outputs.append(output)
    ended = f"exit {code}; " if code else ""
    lines = output.text.count("\n")
    repl.say(
        f"{ended}{lines} line{'s' * (lines != 1)} will go along with your next prompt; /drop takes them back", "dim"
    )


def _run(command: str, shell: str, pieces: list[str]) -> int:
    """In the foreground, so that Ctrl-C reaches it and not us."""
    process = subprocess.Popen(
        [shell or "/bin/sh", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ,
    )
    assert process.stdout is not None
    with process.stdout:
        while data := os.read(process.stdout.fileno(), 65536):
            text = data.decode("utf-8", "replace").replace("\r\n", "\n")
            pieces.append(text)
            sys.stdout.write(visible(text))
            sys.stdout.flush()
    code = process.wait()
    return code if code >= 0 else 128 - code  # as a shell says that a signal ended it
