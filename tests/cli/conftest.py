"""A real `ra` process, a real home, and a real server where the internet would be."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ra.providers.script import Step
from ra.testing.server import LoopbackServer

RA = str(Path(sys.executable).parent / "ra")


def measured() -> dict[str, str]:
    """What a child needs to count for `make coverage`; nothing in any other run."""
    return {name: value for name, value in os.environ.items() if name == "COVERAGE_PROCESS_CONFIG"}


class Shell:
    """A user's shell: a home, a project, an environment."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.project = folder / "project"
        self.home.mkdir()
        self.project.mkdir()
        (self.project / ".git").mkdir()
        (self.project / ".git/HEAD").write_text("ref: refs/heads/main\n")
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "RA_HOME": str(folder / "data")} | measured()

    def serve(self, server: LoopbackServer) -> None:
        """Point ra at a server that speaks Anthropic."""
        self.env |= {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k"}

    def ra(
        self, *args: str, stdin: str | bytes | None = None, env: dict[str, str] | None = None, **kwargs: Any
    ) -> "subprocess.CompletedProcess[bytes]":
        data = stdin.encode() if isinstance(stdin, str) else stdin
        how: dict[str, Any] = {"stdin": subprocess.DEVNULL} if data is None else {"input": data}
        options = {"cwd": self.project, "env": self.env | (env or {}), "capture_output": True, "timeout": 60}
        return subprocess.run([RA, *args], **(how | options | kwargs))

    def json(self, *args: str, **kwargs: Any) -> dict[str, Any]:
        done = self.ra("--output-format", "json", *args, **kwargs)
        told = json.loads(done.stdout)
        assert isinstance(told, dict)
        return told | {"exit": done.returncode}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def hello(shell: Shell) -> Any:
    """A model that always says hello."""
    with LoopbackServer("anthropic", lambda body: Step(text="Hello, world.")) as server:
        shell.serve(server)
        yield server
