"""Runs `!command` in the user's own shell and attaches its output to the next prompt."""

import os
import subprocess
import sys
from functools import partial

from ra.cli.repl.terminal import Terminal
from ra.core.errors import UsageError
from ra.core.messages import Text
from ra.core.text import label, visible
from ra.core.value import Value

MOST = 200_000  # characters that are attached: both ends of a longer output


class ShellOutput(Value, frozen=True):
    """The output of a user's command: data for the model, never a call by it."""

    command: str
    code: int
    text: str

    @property
    def block(self) -> Text:
        half = MOST // 2
        cut = len(self.text) - MOST
        text = f"{self.text[:half]}\n[{cut} characters left out]\n{self.text[-half:]}" if cut > 0 else self.text
        return Text(label("command-output", text, command=self.command, exit=str(self.code)))


async def run(command: str, terminal: Terminal, shell: str) -> ShellOutput:
    """Needs neither sandbox nor question: the user typed it. The output is shown as it arrives."""
    if not command:
        raise UsageError("Write a command after the exclamation mark: !git status")
    pieces: list[str] = []
    code = await terminal.lend(partial(_run, command, shell, pieces))
    return ShellOutput(command, code, "".join(pieces))


def _run(command: str, shell: str, pieces: list[str]) -> int:
    """Runs in the foreground, so that Ctrl-C reaches the command and not ra."""
    process = subprocess.Popen(
        [shell or "/bin/sh", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ,
    )
    assert process.stdout is not None
    with process.stdout:
        while chunk := os.read(process.stdout.fileno(), 65536):
            text = chunk.decode("utf-8", "replace").replace("\r\n", "\n")
            pieces.append(text)
            sys.stdout.write(visible(text))
            sys.stdout.flush()
    code = process.wait()
    return code if code >= 0 else 128 - code  # a shell's exit code for death by a signal
