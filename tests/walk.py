"""Traces one real prompt, and lists the files that it runs through for docs/architecture.md."""

import ast
import json
import os
import subprocess
import sys
import tempfile
from itertools import groupby
from pathlib import Path

from ra.providers.script import Step
from ra.testing.server import LoopbackServer

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- the walk: written by python -m tests.regenerate -->\n", "<!-- the walk ends -->\n"

# Only the main thread: what other threads load meanwhile (prices, token ranks) is not on the way to the answer.
_TRACED = """
import json, sys
root, out, *argv = sys.argv[1:]
files = {}
def heard(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(root) and code.co_name != "<module>":
        above = frame
        while above is not None:
            if above.f_code.co_name == "<module>" and above.f_code.co_filename.startswith(root):
                return  # a class body or a decorator at import
            above = above.f_back
        files.setdefault(code.co_filename[len(root):])
from ra.cli.main import start
sys.setprofile(heard)
try:
    start(argv, program="ra")
finally:
    sys.setprofile(None)
    open(out, "w").write(json.dumps(list(files)))
"""


def files() -> list[str]:
    """The files of `ra/` whose functions answer `ra "explain @a.py"`, in the order in which they are first needed."""
    with (
        tempfile.TemporaryDirectory() as folder,
        LoopbackServer("anthropic", [Step(text="It prints hello.")]) as server,
    ):
        home = Path(folder)
        (home / "project").mkdir()
        (home / "project/a.py").write_text("print('hello')\n")
        env = {"PATH": os.environ["PATH"], "HOME": folder, "RA_HOME": f"{folder}/data", "LANG": "C.UTF-8"}
        env |= {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k"}
        command = [sys.executable, "-c", _TRACED, f"{ROOT}/ra/", f"{folder}/files.json", "explain @a.py"]
        subprocess.run(
            command,
            cwd=home / "project",
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=60,
        )
        traced: list[str] = json.loads((home / "files.json").read_text())
        return traced


def listed(paths: list[str]) -> str:
    """The files by package, with the sentence that each opens with; packages in the order of the walk."""
    packages = list(dict.fromkeys(package(path) for path in paths))
    ordered = sorted(sorted(paths), key=lambda path: packages.index(package(path)))
    lines = [f"{len(paths)} files:", ""]
    for name, members in groupby(ordered, key=package):
        lines.append(f"- `{name}`")
        lines += [f"  - `{Path(path).name}`: {sentence(ROOT / 'ra' / path)}" for path in members]
    return "\n".join(lines) + "\n"


def package(path: str) -> str:
    return f"{Path(path).parent}/".replace("./", "") or "."


def sentence(file: Path) -> str:
    """The first line of the module's docstring."""
    return (ast.get_docstring(ast.parse(file.read_text())) or "").partition("\n")[0]


def written(page: str) -> str:
    """The page with the list as it is now."""
    head, _, rest = page.partition(BEGIN)
    return head + BEGIN + listed(files()) + END + rest.partition(END)[2]
