"""What does a sandbox cost, and how quick is a search? Against a plain spawn, and against ripgrep where it is there."""

import asyncio
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ra.core.messages import ToolCall
from ra.tools.policy.paths import Project
from ra.tools.sandbox import bubblewrap
from ra.tools.sandbox.box import Box, Host
from tests.tools.kit import toolbox as open_toolbox

FILES = 50_000


def median_ms(work: Callable[[], object], runs: int = 25) -> float:
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


def boxed(box: Box, folder: str) -> None:
    launch = box.launch(["true"], folder)
    subprocess.run(launch.argv, pass_fds=launch.fds, env=launch.env or None, capture_output=True, check=True)
    launch.finish()


def sandboxes(folder: str) -> None:
    plain = median_ms(lambda: subprocess.run(["true"], capture_output=True, check=True))
    place = Project(folder, folder, folder)
    box = bubblewrap.find(place, Host())
    if box is not None:
        taken = median_ms(lambda: boxed(box, folder))
        print(f"{box.name:<27}{taken - plain:7.1f} ms above a plain spawn's {plain:.1f}   (aim ≤ 10)")
        box.close()


def searches(folder: str) -> None:
    for number in range(FILES):
        sub = Path(folder, f"d{number % 250}")
        sub.mkdir(exist_ok=True)
        (sub / f"f{number}.py").write_text(f"def f{number}():\n    return {number}\n")
    calls = {
        "Glob": (ToolCall("c", "Glob", {"pattern": "**/*77.py"}), ["rg", "--files", "-g", "**/*77.py"]),
        "Grep": (ToolCall("c", "Grep", {"pattern": "return 4711"}), ["rg", "return 4711"]),
    }
    toolbox = open_toolbox(Path(folder), env={"PATH": "/usr/bin:/bin"})
    for name, (call, command) in calls.items():
        ours = median_ms(lambda call=call: asyncio.run(toolbox.run(call)), runs=3)
        rival = ""
        if shutil.which("rg"):
            theirs = median_ms(lambda command=command: subprocess.run(command, cwd=folder, capture_output=True), runs=3)
            rival = f"   {ours / theirs:4.1f} × ripgrep   (aim ≤ 2 ×)"
        print(f"{name}, {FILES:,} files{'':<10}{ours:8.0f} ms{rival or '   (ripgrep is not there)'}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sandboxes(folder)
        searches(folder)


if __name__ == "__main__":
    main()
