"""A toolbox in a folder, and calls of it."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ra.core.asking import Answer, Asker, Question
from ra.core.events import Event
from ra.core.messages import Text, ToolCall
from ra.tools.toolbox import Done, Toolbox


class Kit:
    """Keeps the events and questions of its calls. `ask` answers each question, None is a face without a user."""

    def __init__(self, root: Path, *, ask: Callable[[Question], Answer] | None = None, **settings: Any) -> None:
        settings.setdefault("edits", "auto")
        settings.setdefault("env", {"PATH": os.environ["PATH"]})
        self.root = root
        self.box = Toolbox(root=str(root), home=str(root.parent / "home"), **settings)
        self.events: list[Event] = []
        self.questions: list[Question] = []
        self._ask = ask

    def done(self, name: str, /, **args: Any) -> Done:
        return asyncio.run(self.run(name, **args))

    async def run(self, name: str, /, **args: Any) -> Done:
        return await self.box.run(ToolCall("c1", name, args), ask=self._asker(), emit=self.events.append)

    def text(self, name: str, /, **args: Any) -> str:
        """The text of a call that must work."""
        done = self.done(name, **args)
        assert not done.result.is_error, words(done)
        return words(done)

    def error(self, name: str, /, **args: Any) -> str:
        """The text of a call that must not work."""
        done = self.done(name, **args)
        assert done.result.is_error, words(done)
        return words(done)

    def _asker(self) -> Asker | None:
        if self._ask is None:
            return None
        answer = self._ask

        async def asked(question: Question) -> Answer:
            self.questions.append(question)
            return answer(question)

        return asked


def words(done: Done) -> str:
    return "\n".join(block.text for block in done.result.content if isinstance(block, Text))
