"""Commands, background jobs, two processes and the user's editor at once: guarded files are the user's alone."""

# A table is read by the line.
# ruff: noqa: E501

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ra.system.process import Launch
from ra.tools.policy.paths import Project
from ra.tools.sandbox import bubblewrap
from ra.tools.sandbox.box import Host

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")

OLD = ("AGENTS.md", "sub/CLAUDE.md", ".vscode/settings.json", ".git/config", "ra.yaml")
ALONE = ("AGENTS.md", "sub/CLAUDE.md", "ra.yaml")  # in folders that commands may write
NEW = (
    "new/AGENTS.md",
    "sub/.envrc",
    ".mcp.json",
    ".git/hooks/pre-commit",
    ".git/commondir",
    "CLAUDE.md",
    "sub/.idea/x",
)
PLANT = "mkdir -p $(dirname {0}) && echo planted > {0}; echo planted >> {0}; ln -sf /etc/passwd {0}2; mv {0} {0}.x && echo planted > {0}"
TRICKS = ("mv sub sub2; mkdir sub; echo planted > sub/CLAUDE.md", "rm -rf .vscode; mkdir .vscode; echo planted > .vscode/settings.json",
          "mkdir -p d && mv sub/CLAUDE.md d/; mv .git g; cp -r g .git; echo planted >> .git/config", "echo hello > free.txt")  # fmt: skip


class Guarded(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.base = Path(tempfile.mkdtemp(prefix="ra-machine-"))
        self.project = self.base / "project"
        self.project.mkdir()
        subprocess.run(["git", "init", "-q", self.project], check=True)
        shutil.rmtree(self.project / ".git/hooks")
        for name in OLD:
            (self.project / name).parent.mkdir(exist_ok=True)
            (self.project / name).write_text("the user's\n")
        self.texts = dict.fromkeys(OLD, "the user's\n")
        place = Project(str(self.project), str(self.project), str(self.base / "home"))
        boxes = [bubblewrap.find(place, Host()) for _ in range(2)]  # as two processes have them
        self.boxes = [box for box in boxes if box]
        self.exposed: dict[str, set[int]] = {}
        self.jobs: list[tuple[Launch, subprocess.Popen[bytes]]] = []

    def start(self, box: int, command: str) -> tuple[Launch, "subprocess.Popen[bytes]"]:
        launch = self.boxes[box].launch(["bash", "--norc", "-c", command], str(self.project))
        env = {"PATH": os.environ["PATH"], **launch.env}
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(launch.argv, pass_fds=launch.fds, env=env, stdin=quiet, stdout=quiet, stderr=quiet)
        for descriptor in launch.fds:
            os.close(descriptor)
        return launch, process

    @rule(box=st.integers(0, 1), command=st.sampled_from([*(PLANT.format(name) for name in (*OLD, *NEW)), *TRICKS]))
    def run(self, box: int, command: str) -> None:
        launch, process = self.start(box, command)
        process.wait(20)
        launch.finish()

    @precondition(lambda self: len(self.jobs) < 3)
    @rule(box=st.integers(0, 1), command=st.sampled_from([PLANT.format(name) for name in (*OLD, *NEW)]))
    def start_job(self, box: int, command: str) -> None:
        begun = self.project / f"begun{len(self.jobs)}"
        begun.unlink(missing_ok=True)
        job = self.start(box, f"touch {begun.name}; {command}; sleep 0.05; {command}; sleep 60")
        until = time.monotonic() + 20
        while not begun.exists() and time.monotonic() < until:
            time.sleep(0.005)
        self.jobs.append(job)

    @precondition(lambda self: self.jobs)
    @rule(which=st.integers(0, 2))
    def end_job(self, which: int) -> None:
        launch, process = self.jobs.pop(which % len(self.jobs))
        end(process)
        self.is_told(process, launch.finish())

    @rule(name=st.sampled_from(OLD), number=st.integers(0, 9), whole=st.booleans())
    def edit(self, name: str, number: int, *, whole: bool) -> None:
        """In place, or as editors do it: a new file takes the old one's place.

        Such a file is not mounted in the boxes of jobs that already run, which then have to tell of it. In a folder
        that is protected as a whole nothing can be written, whatever comes there.
        """
        path = self.project / name
        self.texts[name] = f"the user's, version {number}\n"
        if whole:
            swap = self.base / "swap"
            swap.write_text(self.texts[name])
            swap.rename(path)
            if name in ALONE:
                self.exposed.setdefault(name, set()).update(process.pid for _, process in self.jobs)
        elif not self.exposed.get(name):
            path.write_text(self.texts[name])

    @invariant()
    def what_the_user_wrote_stands(self) -> None:
        for name, text in getattr(self, "texts", {}).items():
            assert self.exposed.get(name) or (self.project / name).read_text() == text, name

    def is_told(self, process: "subprocess.Popen[bytes]", notes: Sequence[str]) -> None:
        """A job that could write a file which replaced a protected one names it at its end; the user then looks."""
        for name, jobs in self.exposed.items():
            if process.pid in jobs:
                assert any(f"{self.project / name} is protected and was replaced" in note for note in notes), notes
                jobs.remove(process.pid)
                if not jobs:
                    (self.project / name).unlink(missing_ok=True)
                    (self.project / name).write_text(self.texts[name])

    @precondition(lambda self: hasattr(self, "jobs") and not self.jobs)
    @invariant()
    def nothing_planted_is_obeyed(self) -> None:
        assert [name for name in NEW if os.path.lexists(self.project / name)] == []

    def teardown(self) -> None:
        for launch, process in getattr(self, "jobs", []):
            end(process)
            self.is_told(process, launch.finish())
        if hasattr(self, "jobs"):
            self.jobs.clear()
            self.nothing_planted_is_obeyed()
            for box in self.boxes:
                box.close()
            shutil.rmtree(self.base)


def end(process: "subprocess.Popen[bytes]") -> None:
    """Kill a box and wait until everything in it is gone, as ra's reaper does."""
    inner = [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    process.kill()
    process.wait()
    until = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in inner) and time.monotonic() < until:
        time.sleep(0.005)


def test_guarded_files_are_the_users_alone() -> None:
    run_state_machine_as_test(
        Guarded,
        settings=settings(
            max_examples=8, stateful_step_count=10, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
