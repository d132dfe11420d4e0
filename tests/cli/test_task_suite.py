"""Thirty small edits of a real project, on a terminal: each is done, and a person is asked three times."""

# A table is read by the line.
# ruff: noqa: E501

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from tests.cli.conftest import RA, Shell
from tests.cli.repl.pty_terminal import PtyTerminal

QUESTION = "?  n no"
TESTS = "python3 -B -m unittest -q"  # a .pyc of the same second and size would hide an edit

CALC = '''"""Small sums."""


def add(a, b):
    return a + b


def sub(a, b):
    return a + b
'''
TEST_CALC = """import unittest

from calc import add, sub


class Sums(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)

    def test_sub(self):
        self.assertEqual(sub(2, 3), -1)
"""
FILES = {
    "calc.py": CALC,
    "test_calc.py": TEST_CALC,
    "README.md": "# Calc\n\nSmal sums.\n",
    "AGENTS.md": "Use unittest.\n",
    "setup.cfg": "[metadata]\r\nname = calc\r\nversion = 0.1\r\n",
    "src/util/strings.py": "def shout(text):\n    return text.upper()\n",
    "data/rows.csv": "name,amount\nann,1\nbob,2\n",
    "notes.txt": "one\ntwo\nthree",
    ".gitignore": "__pycache__/\n",
}


class Task(NamedTuple):
    """What the model does, and a command that succeeds once it is done."""

    calls: tuple[tuple[str, dict[str, Any]], ...]
    check: str


def bash(command: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return ("Bash", {"command": command, **more})


def edit(path: str, old: str, new: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return ("Edit", {"path": path, "old_string": old, "new_string": new, **more})


def write(path: str, content: str) -> tuple[str, dict[str, Any]]:
    return ("Write", {"path": path, "content": content})


def read(path: str) -> tuple[str, dict[str, Any]]:
    return ("Read", {"path": path})


TASKS = {
    "mend the failing test": Task(
        (bash(TESTS), read("calc.py"), edit("calc.py", "def sub(a, b):\n    return a + b", "def sub(a, b):\n    return a - b"), bash(TESTS)),
        TESTS,
    ),
    "commit it": Task((bash("git add -A && git commit -qm 'Mend sub'"),), "git log -1 --format=%s | grep -qx 'Mend sub'"),
    "correct the typing error": Task(
        (("Grep", {"pattern": "Smal "}), edit("README.md", "Smal sums", "Small sums")), "grep -q 'Small sums' README.md"
    ),
    "add a function": Task(
        (read("calc.py"), bash("printf '\\n\\ndef mul(a, b):\\n    return a * b\\n' >> calc.py"), bash("python3 -c 'import calc; print(calc.mul(2, 3))'")),
        "grep -q 'def mul' calc.py",
    ),
    "add a test for it": Task(
        (edit("test_calc.py", "from calc import add, sub", "from calc import add, mul, sub"),
         bash("printf '\\n    def test_mul(self):\\n        self.assertEqual(mul(2, 3), 6)\\n' >> test_calc.py"), bash(TESTS)),
        TESTS,
    ),
    "a new version, line ends kept": Task(
        (edit("setup.cfg", "version = 0.1", "version = 0.2"),), "grep -q $'version = 0.2\\r$' setup.cfg"
    ),
    "a new module": Task((write("src/util/numbers.py", "def half(n):\n    return n / 2\n"),), "test -s src/util/numbers.py"),
    "rename a file": Task((bash("git mv notes.txt NOTES.txt"),), "test -f NOTES.txt -a ! -e notes.txt"),
    "append a line": Task((bash("printf '\\nfour\\n' >> NOTES.txt"),), "tail -1 NOTES.txt | grep -qx four"),
    "sort the rows": Task(
        (bash("(head -1 data/rows.csv; tail -n +2 data/rows.csv | sort -r) > data/t && mv data/t data/rows.csv"),),
        "sed -n 2p data/rows.csv | grep -q bob",
    ),
    "sum a column": Task((bash("awk -F, 'NR > 1 {s += $2} END {print s}' data/rows.csv > data/sum.txt"),), "grep -qx 3 data/sum.txt"),
    "where is it used": Task((("Grep", {"pattern": "shout"}), ("Glob", {"pattern": "**/*.py"}), ("LS", {"path": "src"})), "true"),
    "rename a function": Task(
        (bash("grep -rl shout src | xargs sed -i s/shout/loud/g"),), "grep -q 'def loud' src/util/strings.py"
    ),
    "an executable script": Task(
        (write("run.sh", "#!/bin/sh\npython3 -B -m unittest -q\n"), bash("chmod +x run.sh && ./run.sh")), "test -x run.sh"
    ),
    "a new branch": Task((bash("git checkout -qb feature && git add -A && git commit -qm Feature"),), "git branch | grep -q feature"),
    "work in a folder": Task((bash("cd src/util"), bash("touch __init__.py"), bash("cd ../..")), "test -e src/util/__init__.py"),
    "type hints": Task(
        (edit("calc.py", "def add(a, b):", "def add(a: float, b: float) -> float:"), bash("python3 -m py_compile calc.py")),
        "grep -q 'a: float' calc.py",
    ),
    "two edits at once": Task(
        (("Edit", {"path": "README.md", "edits": [{"old_string": "# Calc", "new_string": "# Calculator"}, {"old_string": "Small", "new_string": "Tiny"}]}),),
        "grep -q Calculator README.md && grep -q Tiny README.md",
    ),
    "remove what is not needed": Task((bash("rm -r data/sum.txt && git status --short"),), "test ! -e data/sum.txt"),
    "what changed": Task((bash("git diff --stat"), bash("git log --oneline -3")), "true"),
    "commit again": Task((bash("git add -A; git commit -qm 'More'; git tag v0.2"),), "git tag | grep -qx v0.2"),
    "try something and take it back": Task((bash("echo x >> calc.py; git checkout -q calc.py"),), "git diff --quiet calc.py"),
    "back to the main branch": Task((bash("git checkout -q - && git merge -q feature"),), "git log --oneline | grep -q More"),
    "a change over many files": Task(
        (bash("for f in $(git ls-files '*.py'); do sed -i '1i # Calc' $f; done"),), "head -1 calc.py | grep -qx '# Calc'"
    ),
    "a formatter of our own": Task(
        (write("tools/strip.py", "import sys\nfor p in sys.argv[1:]:\n    t = open(p).read()\n    open(p, 'w').write(t.rstrip() + '\\n')\n"),
         bash("python3 tools/strip.py NOTES.txt README.md")),
        "test -s NOTES.txt",
    ),
    "a server in the background": Task(
        (bash("python3 -m http.server 8099 --bind 127.0.0.1", background=True),
         bash("for i in 1 2 3 4 5 6 7 8 9; do sleep 0.2; done; echo waited"), ("Job", {"job": 1, "stop": True})),
        "true",
    ),
    "a temporary file": Task((bash("mktemp > /tmp/name && cat /tmp/name"),), "true"),
    "a build folder": Task((bash("mkdir -p build && tar czf build/calc.tar.gz calc.py README.md"),), "test -s build/calc.tar.gz"),
    "new instructions": Task((edit("AGENTS.md", "Use unittest.", "Use unittest, and type hints."),), "grep -q hints AGENTS.md"),
    "the last commit": Task((bash(TESTS), bash("git add -A && git commit -qm 'All done'")), "test -z \"$(git status --porcelain)\""),
}  # fmt: skip


def project(folder: Path) -> None:
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    done("rm -rf .git; git init -q; git config user.name A; git config user.email a@b.c", folder)
    done("git add -A; git commit -qm First", folder)


def done(command: str, folder: Path) -> str:
    ended = subprocess.run(
        ["bash", "-c", command], cwd=folder, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    return "" if ended.returncode == 0 else f"{command}: {ended.stdout}{ended.stderr}"


def script(path: Path) -> None:
    """What the model says: the calls of each task one by one, then that it is done."""
    steps: list[dict[str, Any]] = []
    for number, task in enumerate(TASKS.values(), 1):
        steps += [{"calls": [{"name": name, "args": args}]} for name, args in task.calls]
        steps.append({"text": f"Task {number} is finished."})
    path.write_text(json.dumps(steps))


def test_thirty_edits_ask_at_most_three_questions(shell: Shell) -> None:
    project(shell.project)
    script(shell.home / "script.json")
    argv = [RA, "--provider", "scripted", "--model", str(shell.home / "script.json")]
    undone: list[str] = []
    asked: list[str] = []
    assert len(TASKS) == 30
    with PtyTerminal(argv, env=shell.env, cwd=shell.project, columns=110) as terminal:
        terminal.wait("›")
        for number, (prompt, task) in enumerate(TASKS.items(), 1):
            terminal.enter(prompt)
            finished = f"Task {number} is finished."
            while finished not in terminal.text:
                terminal.look(0.02)
                if QUESTION in terminal.text:
                    asked.append(prompt)
                    terminal.look(0.3)  # an answer is not typed ahead
                    terminal.type(
                        "a" if "all edits this session" in terminal.text else "s"
                    )  # for the rest of the session
                    terminal.wait(lambda: QUESTION not in terminal.text)
            undone += filter(None, [done(task.check, shell.project)])
    assert (undone, asked) == ([], ["mend the failing test", "commit it", "new instructions"])
