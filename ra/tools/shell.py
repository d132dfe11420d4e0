"""Runs the commands of a session, in a sandbox or outside it, at once or as background jobs."""

import asyncio
import os
import re
from typing import Annotated

import msgspec
from msgspec import Meta

from ra.core.text import one_line
from ra.system.files import stable_path
from ra.system.process import Ended, Running, start
from ra.tools.policy.paths import Project, shown
from ra.tools.sandbox.box import IN_THE_BOX, Access, Box
from ra.tools.sandbox.find import Launcher
from ra.tools.tool import Mistake, Output, Say, text_output

MAX_JOBS = 8
MAX_TIMEOUT_S = 3600
_READ_ONLY = re.compile(r"Read-only file system|Device or resource busy")
_READ_ONLY_HINT = (
    "[in the sandbox protected files, git's configuration and what lies outside the project are read-only; "
    "outside: true asks the user to run a command without it]"
)
MAX_TRIES = 3  # to start the command: a file that the sandbox masks, such as a socket, may vanish during the set-up


class BashArgs(msgspec.Struct):
    command: str
    timeout: Annotated[float, Meta(description="Seconds", gt=0)] | None = None
    background: Annotated[bool, Meta(description="Return at once with a number for Job")] = False
    outside: Annotated[bool, Meta(description="Leave the sandbox (needs network, other folders): asks the user")] = (
        False
    )


class Shell:
    """The commands of one session: their working directory, their sandbox and the background jobs."""

    def __init__(self, place: Project, env: dict[str, str], launcher: Launcher, *, timeout_s: float) -> None:
        self.cwd = place.cwd
        self.jobs: dict[int, tuple[str, Running]] = {}
        self._place = place
        self._env = env
        self._launcher = launcher
        self._timeout_s = timeout_s
        self._last_job = 0

    @property
    def box(self) -> Box | None:
        """The sandbox, detected and tested on first use."""
        return self._launcher.box

    async def run(self, args: BashArgs, say: Say, access: Access = IN_THE_BOX) -> Output:
        """Runs a command. `access` is what the rules or the user allow; by default nothing leaves the sandbox."""
        if not args.command.strip():
            raise Mistake("Bash needs a command. Job reads and stops what runs in the background.")
        if "\0" in args.command:
            raise Mistake("A command cannot hold a NUL character.")
        if args.background:
            return await self._start_job(args.command, access)
        timeout_s = min(args.timeout or self._timeout_s, MAX_TIMEOUT_S)
        running, ended, moved = await self._whole(args, say, timeout_s, access)
        for _ in range(MAX_TRIES - 1):
            if not ended.began:
                running, ended, moved = await self._whole(args, say, timeout_s, access)
        text = running.output.text()
        boxed = not access.outside and self._launcher.box is not None
        hint = [_READ_ONLY_HINT] if boxed and _READ_ONLY.search(text) else []
        return _result(text, ended, [*ended.notes, *moved, *hint], timeout_s)

    async def _whole(
        self, args: BashArgs, say: Say, timeout_s: float, access: Access
    ) -> tuple[Running, Ended, list[str]]:
        """Runs a command to its end, and adopts its final working directory."""
        reader, writer = os.pipe()
        try:
            # On the first line, so that line numbers in error messages stay correct.
            script = f"trap 'pwd -P >&{writer}' EXIT; {args.command}"
            running = await self._start(script, say, access, fds=(writer,))
            os.close(writer)
            writer = -1
            ended = await running.wait(timeout_s)
            return running, ended, self._move(_drain(reader))
        finally:
            os.close(reader)
            if writer >= 0:
                os.close(writer)

    async def close(self) -> list[str]:
        """Ends all background jobs. Returns a line for each notice about them that the model has not seen."""
        notes = []
        for number, (command, running) in self.jobs.items():
            was_read = running.notes is not None
            await running.kill()
            if not was_read:
                notes += [f"Job {number} ({one_line(command, 60)}): {note}" for note in running.notes or ()]
        self.jobs.clear()
        self._launcher.close()
        return notes

    async def _start(self, script: str, say: Say, access: Access, *, fds: tuple[int, ...] = ()) -> Running:
        # A command could replace the folder by a symlink: the next one, perhaps outside, would run at its target.
        if not os.path.isdir(self.cwd) or self._place.inside(os.path.realpath(self.cwd)) is None:
            self.cwd = self._place.cwd
        with stable_path(os.path.realpath(self.cwd)) as folder:
            launch = await asyncio.to_thread(self._launcher.launch, script, self.cwd, access)
            return await start(launch, cwd=folder, env=self._env, say=say, fds=fds)

    def _move(self, reported: str) -> list[str]:
        """Follows the command's `cd` as long as it stays in the project."""
        if not reported or reported == self.cwd:
            return []
        if self._place.inside(self._place.real(reported)) is not None and os.path.isdir(reported):
            self.cwd = reported
            return []
        return [f"The working directory is {shown(self.cwd)} again: {shown(reported)} lies outside the project."]

    async def _start_job(self, command: str, access: Access) -> Output:
        if sum(not running.ended for _, running in self.jobs.values()) >= MAX_JOBS:
            raise Mistake(f"{MAX_JOBS} background jobs are running; stop one first, with Job.")
        running = await self._start(command, lambda text: None, access)
        self._last_job += 1
        self.jobs[self._last_job] = (command, running)
        return text_output(f"Job {self._last_job} runs in the background. Job(job={self._last_job}) reads its output.")

    async def read_job(self, number: int, *, stop: bool) -> Output:
        """A job's output since the last reading, and its state; `stop` ends the job first."""
        if number not in self.jobs:
            job_numbers = ", ".join(map(str, self.jobs)) or "none"
            raise Mistake(f"There is no job {number}; jobs: {job_numbers}.")
        _, running = self.jobs[number]
        if stop:
            await running.kill()
        text = running.take_unread()
        if not running.ended:
            return text_output(f"{text}\n[job {number} is running]".lstrip("\n"))
        ended = await running.wait()
        state = "was stopped" if stop else f"ended with exit code {ended.code}"
        return text_output("\n".join([text, *ended.notes, f"[job {number} {state}]"]).lstrip("\n"))


def _drain(reader: int) -> str:
    os.set_blocking(reader, False)
    try:
        return os.fsdecode(os.read(reader, 8192)).removesuffix("\n")
    except BlockingIOError:
        return ""


def _result(text: str, ended: Ended, notes: list[str], timeout_s: float) -> Output:
    if ended.timed_out:
        notes.append(f"[timed out after {timeout_s:g} s; killed]")
    elif ended.code:
        code = ended.code if ended.code > 0 else 128 - ended.code
        notes.append(f"[exit code {code}]")
    body = text.rstrip("\n")
    lines = [*([body] if body else []), *notes]
    return text_output("\n".join(lines) or "(no output)", is_error=bool(ended.timed_out or ended.code))
