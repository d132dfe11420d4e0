"""`ra` in a terminal, and a model on the loopback behind it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from ra.providers.script import Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import RA, Shell
from tests.cli.repl.pty_terminal import PtyTerminal

Start = Callable[..., PtyTerminal]


class Model:
    """A server whose answers a test may change at any time."""

    def __init__(self, server: LoopbackServer) -> None:
        self.server = server
        self.answer: Callable[[dict[str, Any]], Step] = lambda body: Step(text="Hello, world.")

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return self.server.bodies

    def said(self, request: int = -1) -> str:
        """All text of the messages of a request."""
        return "\n".join(
            block.get("text", "")
            for message in self.bodies[request]["messages"]
            for block in message["content"]
            if isinstance(block, dict)
        )


@pytest.fixture
def model(shell: Shell) -> Iterator[Model]:
    made: list[Model] = []
    with LoopbackServer("anthropic", lambda body: made[0].answer(body), count=lambda text: len(text) // 4) as server:
        made.append(Model(server))
        shell.serve(server)
        yield made[0]


@pytest.fixture
def start(shell: Shell, model: Model) -> Iterator[Start]:
    """Start `ra` on a terminal and wait until it can be typed into."""
    with ExitStack() as open_terminals:

        def begin(*args: str, env: dict[str, str] | None = None, **kwargs: Any) -> PtyTerminal:
            terminal = PtyTerminal([RA, *args], env=shell.env | (env or {}), cwd=shell.project, **kwargs)
            open_terminals.enter_context(terminal)
            terminal.wait(lambda: any(line.startswith((">", "›")) for line in terminal.text.splitlines()))
            return terminal

        yield begin
