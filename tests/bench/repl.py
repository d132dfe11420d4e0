"""How quick is the REPL? Key press to first streamed character, and the echo of a key while an answer streams."""

import statistics
import tempfile
import time
from pathlib import Path

from ra.providers.script import Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import RA, Shell
from tests.cli.repl.pty_terminal import PtyTerminal

ANSWER = "Zebra " * 40


def seen_after(terminal: PtyTerminal, what: bytes, start: int) -> float:
    """When the bytes arrive behind position `start` of what the program wrote."""
    while what not in terminal.raw[start:]:
        terminal.look(0.001)
    return time.monotonic()


def first_characters(shell: Shell, rounds: int = 8) -> list[float]:
    """Enter to the first character of the answer, less the time from the request's arrival to its first byte."""
    with LoopbackServer("anthropic", lambda body: Step(text=ANSWER), count=lambda text: len(text) // 4) as server:
        shell.serve(server)
        with PtyTerminal([RA], env=shell.env, cwd=shell.project, emulate=False) as terminal:
            seen_after(terminal, "›".encode(), 0)
            times = []
            for number in range(rounds):
                terminal.type(f"question {number}")
                terminal.look(0.3)
                start, began = len(terminal.raw), time.monotonic()
                terminal.type("\r")
                times.append(seen_after(terminal, b"Zebra", start) - began)
                terminal.look(0.5)
    return times


def echoes(shell: Shell, rounds: int = 40) -> list[float]:
    """A key press to its echo, while an answer streams at about a hundred events a second."""
    slow = Step(text="word " * 4000, pace_s=0.01)
    with LoopbackServer("anthropic", lambda body: slow, count=lambda text: len(text) // 4) as server:
        shell.serve(server)
        with PtyTerminal([RA], env=shell.env, cwd=shell.project, emulate=False) as terminal:
            seen_after(terminal, "›".encode(), 0)
            terminal.type("go\r")
            seen_after(terminal, b"word", len(terminal.raw))
            times = []
            for number in range(rounds):
                key = chr(ord("A") + number % 26)
                start, began = len(terminal.raw), time.monotonic()
                terminal.type(key)
                times.append(seen_after(terminal, key.encode(), start) - began)
                terminal.look(0.03)
    return times


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        one, two = Path(folder, "one"), Path(folder, "two")
        one.mkdir()
        two.mkdir()
        first, *later = first_characters(Shell(one))
        keys = echoes(Shell(two))
    usual, echo, slowest = (1000 * value for value in (statistics.median(later), statistics.median(keys), max(keys)))
    print(f"REPL, key to first word    {usual:7.1f} ms, the first prompt {first * 1000:.1f}   (aim ≤ 30)")
    print(f"REPL, echo while streaming {echo:7.1f} ms, at most {slowest:.1f}   (aim ≤ 20)")


if __name__ == "__main__":
    main()
