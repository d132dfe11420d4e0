from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ra.providers.script import Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def model(shell: Shell) -> Iterator[Callable[..., LoopbackServer]]:
    """Start a model that says these steps, one per request of a run, and `done` ever after."""
    with ExitStack() as running:

        def start(*steps: Step) -> LoopbackServer:
            waiting = list(steps)
            server = LoopbackServer("anthropic", lambda body: waiting.pop(0) if waiting else Step(text="done"))
            shell.serve(running.enter_context(server))
            return server

        yield start
