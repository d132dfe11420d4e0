"""Compares this version with another one in the same run: RA_BEFORE names the other one's `ra`."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.server import InstantModel

RA = str(Path(sys.executable).parent / "ra")
RUNS = 11
STEPS = 60


def main() -> None:
    before = os.environ.get("RA_BEFORE")
    if not before:
        print("another version            not compared: RA_BEFORE=/path/to/its/ra measures both in turn")
        return
    programs = {"before": before, "now": RA}
    rows = {
        "start to first request, ms": lambda ra: first_request(ra) * 1000,
        "one step with a tool, ms": lambda ra: step(ra) * 1000,
        "peak memory of 60 steps, MB": memory,
    }
    for name, measure in rows.items():
        figures: dict[str, list[float]] = {version: [] for version in programs}
        for _ in range(RUNS if name.startswith("start") else 3):  # in turn, so that a busy moment hits both
            for version, ra in programs.items():
                figures[version].append(measure(ra))
        old, new = (statistics.median(figures[version]) for version in programs)
        print(f"{name:27}{old:7.1f} before, {new:.1f} now: {new / old:.2f} ×   (aim ≤ 1.10 ×)")


def first_request(ra: str) -> float:
    with tempfile.TemporaryDirectory() as folder, InstantModel() as model:
        began = time.monotonic()
        run([ra], folder, model)
        return model.arrivals[0] - began


def step(ra: str) -> float:
    """The median time between two requests of a run that reads a small file again and again."""
    with tempfile.TemporaryDirectory() as folder, InstantModel(STEPS) as model:
        (Path(folder) / "a.txt").write_text("hello\n" * 300)
        run([ra], folder, model)
        return statistics.median(b - a for a, b in zip(model.arrivals, model.arrivals[1:], strict=False))


def memory(ra: str) -> float:
    """Started by a small process: a child's peak includes that of the process it was forked from."""
    measured = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], capture_output=True, check=True)"
    measured += "; print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    with tempfile.TemporaryDirectory() as folder, InstantModel(STEPS) as model:
        (Path(folder) / "a.txt").write_text("hello\n" * 300)
        printed = run([sys.executable, "-S", "-c", measured, ra], folder, model)
        return int(printed) / 1024


def run(command: list[str], folder: str, model: InstantModel) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": folder, "RA_HOME": f"{folder}/data"}
    env |= {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": model.url}
    done = subprocess.run(
        [*command, "hi"], env=env, cwd=folder, check=True, capture_output=True, stdin=subprocess.DEVNULL, text=True
    )
    return done.stdout
