"""How are the pages of docs/ run? Blocks marked `run` are executed in order, in a project of their own, and compared.

```console run     each `$ command` is run by bash; what stands below it is what it prints, stdout and stderr.
```python run      a program; a ```text block right behind it is what it prints.
```python file X   is written to the file X of the project, for the blocks that follow (yaml and bash as well).
```python new X    is written to the file X of a copy of this repository, with which the blocks that follow are run;
```diff X          is applied to the file X of that copy.

`…` stands for anything. `python -m tests.regenerate` writes what is printed into the pages. The model is a script: it
answers prompts with what `ANSWERS` says, so that pages show what ra does and not what a model would like to say.
"""

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from ra.core.value import JsonObject
from ra.providers.script import Call, Step
from ra.testing.server import LoopbackServer

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

PROJECT = {
    "AGENTS.md": "Prices are whole cents, never floats.\n",
    "ra.yaml": "agent:\n  thinking: off\n",
    "src/cart.py": (
        '"""A shopping cart."""\n\n\ndef total(items: list[tuple[str, int]]) -> int:\n'
        '    """The sum in cents."""\n    return sum(price for _, price in items)\n'
    ),
    "src/tax.py": '"""Value added tax."""\n\n\ndef tax(cents: int) -> int:\n    return round(cents * 0.19)\n',
    "app.log": "".join(
        f"12:{minute:02d} {'ERROR payment 7731 timed out' if minute == 41 else f'INFO order {minute} shipped'}\n"
        for minute in range(60)
    ),
} | {
    f"orders/{day}.csv": "order,cents,state\n"
    + "".join(f"{day}{n:02d},{n * 37},shipped\n" if (day, n) != (3, 30) else "4711,1110,refunded\n" for n in range(60))
    for day in range(1, 9)
}

# What a prompt is answered with: each step is one call of the model.
ANSWERS: dict[str, list[Step]] = {
    "capital of France": [Step(text="Paris.")],
    "What does @src/cart.py do": [Step(text="It adds up the prices of a cart, in whole cents.")],
    "commit message": [Step(text="Round the tax to whole cents")],
    "went wrong": [Step(text="Payment 7731 timed out at 12:41; everything else shipped.")],
    "which files": [
        Step(calls=(Call("LS", {"path": "src"}),)),
        Step(calls=(Call("Read", {"path": "src/cart.py"}), Call("Read", {"path": "src/tax.py"}))),
        Step(text="Two: cart.py adds up prices, tax.py computes the tax."),
    ],
    "and the tests": [Step(text="There are none yet.")],
    "Read the log": [
        Step(calls=(Call("Read", {"path": "app.log"}),)),
        Step(calls=(Call("Grep", {"pattern": "ERROR", "path": "app.log"}),)),
        Step(text="One payment timed out: 7731."),
    ],
    "Change the rules": [
        Step(calls=(Call("Write", {"path": "AGENTS.md", "content": "Prices are floats.\n"}),)),
        Step(text="I was not allowed to."),
    ],
    "Read orders": [
        *(Step(calls=(Call("Read", {"path": f"orders/{day}.csv"}),)) for day in range(1, 9)),
        Step(text="Eight days, 480 orders; order 4711 was refunded on day 3."),
    ],
    "Review this change": [Step(text="BLOCK: the rate moved from 19 % to 20 % without a test.")],
    "one word": [Step(text="payment")],
    "Summarize what changed": [Step(text="The tax rate is 20 % now.")],
    "How many words": [
        Step(calls=(Call("Count", {"text": "to be or not to be"}),)),
        Step(text="Six."),
    ],
    "haiku": [Step(text="A cart full of cents / whole numbers, never a float / the total is right")],
}


class Block(NamedTuple):
    """A block that is to be run: where it stands in its page, what to run, and what that is said to print."""

    start: int
    end: int
    kind: str
    text: str
    expected: str


def blocks(text: str) -> list[Block]:
    kinds = r"console run|python run|(?:python|yaml|bash|json) file \S+|python new \S+|diff \S+"
    found = re.finditer(rf"^```({kinds})\n(.*?)^```\n(?:\n?```text\n(.*?)^```\n)?", text, re.M | re.S)
    return [Block(match.start(), match.end(), match[1], match[2], match[3] or "") for match in found]


def replayed(text: str) -> str:
    """The page with what its blocks print now; what still matches stays as it is."""
    # The folder's name is in the requests, and so in their sizes: always about as long.
    with tempfile.TemporaryDirectory() as folder, LoopbackServer("anthropic", answer) as server:
        return _replayed(text, Shop(Path(folder), server))


def _replayed(text: str, shop: "Shop") -> str:
    made, at = "", 0
    for block in blocks(text):
        made += text[at : block.start]
        path = block.kind.split()[-1]
        if " run" not in block.kind:
            if " file " in block.kind:
                (shop.project / path).write_text(block.text)
            elif " new " in block.kind:
                (shop.tree / path).write_text(block.text)
            else:
                (shop.tree / path).write_text(patched((shop.tree / path).read_text(), block.text))
            made += text[block.start : block.end]
        elif block.kind == "python run":
            printed = checked(shop.run([sys.executable, "-c", block.text]))
            kept = block.expected if matches(block.expected, printed) else printed
            made += f"```python run\n{block.text}```\n" + (f"\n```text\n{kept}```\n" if kept else "")
        else:
            made += "```console run\n"
            for command, expected in commands(block.text):
                printed = checked(tidy(shop.run(["bash", "-c", command])))
                made += f"$ {command}\n" + (expected if matches(expected, printed) else printed)
            made += "```\n"
        at = block.end
    return made + text[at:]


def checked(printed: str) -> str:
    """What a block printed, unless a program crashed in it: a page must never show that as if it were meant."""
    assert "Traceback (most recent call last)" not in printed, printed
    return printed


def patched(text: str, diff: str) -> str:
    """The text after a diff of one place, which must be there exactly once."""
    lines = diff.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] in " -")
    after = "".join(line[1:] for line in lines if line[0] in " +")
    assert text.count(before) == 1, f"{text.count(before)} places are {before!r}"
    return text.replace(before, after)


def commands(text: str) -> list[tuple[str, str]]:
    """Each command of a console block, with what stands below it."""
    parts = re.split(r"^\$ ", text, flags=re.M)[1:]
    return [(command, expected) for command, _, expected in (part.partition("\n") for part in parts)]


def tidy(printed: str) -> str:
    """Without the empty lines around tables and the blanks at the ends of lines."""
    lines = [line.rstrip() for line in printed.split("\n")]
    return "".join(f"{line}\n" for line in lines if line)


def answer(body: JsonObject) -> Step:
    """By the newest prompt that it knows, and by how much was said since."""
    said: list[Step] | None = None
    since = 0
    for message in body["messages"]:
        if message["role"] == "assistant":
            since += 1
            continue
        parts = [block.get("text", "") for block in message["content"] if block["type"] == "text"]
        known = [steps for words, steps in ANSWERS.items() if any(words in part for part in parts)]
        if known:
            said, since = known[-1], 0
    return said[since] if said and since < len(said) else Step(text="Hello.")


class Shop:
    """The project that pages work in: a home, a git repository, and a server that plays the model."""

    def __init__(self, folder: Path, server: LoopbackServer) -> None:
        self.project = folder / "shop"
        for name, text in PROJECT.items():
            (self.project / name).parent.mkdir(parents=True, exist_ok=True)
            (self.project / name).write_text(text)
        self.env = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(folder / "home"),
            "RA_HOME": str(folder / "data"),
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "k",
            "TERM": "dumb",
            "COLUMNS": "110",
            "NO_COLOR": "1",
            "LANG": "C.UTF-8",
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        if shutil.which("git"):
            who = ["-c", "user.name=you", "-c", "user.email=you@example.org"]
            for command in (["init", "-q", "-b", "main"], ["add", "."], [*who, "commit", "-q", "-m", "Start"]):
                subprocess.run(["git", *command], cwd=self.project, env=self.env, check=True)

    @cached_property
    def tree(self) -> Path:
        """A copy of the program, which commands run from now on."""
        made = self.project.parent / "tree"
        shutil.copytree(ROOT / "ra", made / "ra", ignore=shutil.ignore_patterns("__pycache__"))
        (made / "bin").mkdir()
        ra = made / "bin/ra"  # the installed one is isolated from PYTHONPATH, and so from the copy
        ra.write_text(f'#!/bin/sh\nPYTHONPATH="{made}" exec "{sys.executable}" -P -m ra "$@"\n')
        ra.chmod(0o755)
        self.env["PATH"] = f"{made / 'bin'}:{self.env['PATH']}"
        return made

    def run(self, command: list[str]) -> str:
        """What a person would see: on a terminal without colours."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 100, 0, 0))
        with subprocess.Popen(
            command, cwd=self.project, env=self.env, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
        ):
            os.close(theirs)
            seen = b""
            while True:
                try:
                    seen += os.read(ours, 65536)
                except OSError:  # the other end is closed
                    break
        os.close(ours)
        return seen.decode().replace("\r\n", "\n")


NUMBER = re.compile(r"\d(?:[\d,]*\d)?(?:\.\d+)?")


def matches(expected: str, printed: str) -> bool:
    """The same words; ids may differ, and numbers by a tenth: paths and clocks are not the same everywhere."""
    ours, theirs = _plain(expected), _plain(printed)
    pattern = "".join("(.*)" if part == "…" else re.escape(part) for part in re.split("(…)", NUMBER.sub("0", ours)))
    if "…" in ours:
        return re.fullmatch(pattern, NUMBER.sub("0", theirs), re.S) is not None
    numbers = [[float(found.replace(",", "")) for found in NUMBER.findall(text)] for text in (ours, theirs)]
    same = NUMBER.sub("0", ours) == NUMBER.sub("0", theirs)
    return same and all(abs(a - b) <= max(3, a / 10) for a, b in zip(*numbers, strict=True))


def _plain(text: str) -> str:
    text = re.sub(r"\b[0-9a-f]{10}\b", "ID", tidy(text))
    text = re.sub(r"\d{4}-\d\d-\d\d( \d\d:\d\d)?", "DATE", text).replace("…0", "…")
    return re.sub(r"[ \t─]+", " ", text).strip()
