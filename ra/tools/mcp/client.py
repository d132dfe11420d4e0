"""Represents a session towards MCP servers: while they work on its calls, they may ask its user and its model."""

import asyncio
import contextlib
from collections.abc import Iterator

import msgspec

from ra.core.asking import Asker, FieldValue, Question
from ra.core.errors import RaError
from ra.core.events import Warned
from ra.core.functions import Emit
from ra.core.messages import ToolCall
from ra.core.model import Reply
from ra.tools.approvals import refuse
from ra.tools.mcp.naming import server_name
from ra.tools.policy.paths import shown
from ra.tools.policy.permissions import Allow, Ask, Deny
from ra.tools.port import Form, SideCall
from ra.tools.tool import Mistake
from ra.tools.workspace import Workspace


class RunningCall:
    """A call with a `deadline`, which is suspended while its server waits for the user or the model."""

    def __init__(self, call: ToolCall, deadline: asyncio.Timeout, ask: Asker | None, emit: Emit) -> None:
        self.call = call
        self.ask = ask
        self.emit = emit
        self._deadline = deadline
        self._seconds_left: float | None = None
        self._pauses = 0

    def is_of(self, server: str) -> bool:
        return self.call.name.startswith(f"{server_name(server)}__")

    def pause(self) -> None:
        self._pauses += 1
        end = self._deadline.when()
        if self._pauses == 1 and end is not None:
            self._seconds_left = end - asyncio.get_running_loop().time()
            self._deadline.reschedule(None)

    def go_on(self) -> None:
        self._pauses -= 1
        if self._pauses == 0 and self._seconds_left is not None:
            self._deadline.reschedule(asyncio.get_running_loop().time() + self._seconds_left)


class ServerClient:
    """Answers the requests of MCP servers on behalf of one session, according to its rules and its user."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._calls: list[RunningCall] = []

    @contextlib.contextmanager
    def working(self, call: ToolCall, deadline: asyncio.Timeout, ask: Asker | None, emit: Emit) -> Iterator[None]:
        """Accepts requests of the call's server for as long as the call runs."""
        running = RunningCall(call, deadline, ask, emit)
        self._calls.append(running)
        try:
            yield
        finally:
            self._calls.remove(running)

    async def fill_in(self, server: str, form: Form) -> dict[str, FieldValue] | None:
        """The user's values for a server's form; None if the user declines or nobody can be asked."""
        approvals = self._workspace.approvals
        call = ToolCall("", f"{server_name(server)}__elicitation", {})
        running = self._latest(server)
        if running is None or isinstance(approvals.decide(call, self._workspace.project), Deny):
            return None
        if running.ask is None:
            words = f"The MCP server {server} asks: {shown(form.message)[:200]}"
            running.emit(Warned(f"{words} It was told no: run ra on a terminal to answer."))
            return None
        reason = f"the MCP server {server} asks you, and gets the answer"
        words = "\n".join(filter(None, (form.message, form.url)))
        with self._paused(server):
            question = Question(call, reason, words, form=True, fields=form.fields)
            answer = await approvals.answer(question, running.ask)
        if answer.verdict == "no":
            return None
        filled = ((field.name, answer.values.get(field.name, field.default)) for field in form.fields)
        values: dict[str, FieldValue] = {name: value for name, value in filled if value is not None}
        return None if any(field.required and field.name not in values for field in form.fields) else values

    async def ask_model(self, server: str, call: SideCall) -> Reply:
        """The model's answer to a server. A rule or the user must allow it, as if it were a tool call.

        Raises Mistake if the user or the budget forbids it, or if the model gives no answer.
        """
        running, session = self._latest(server), self._workspace.session
        if running is None or session is None:
            raise Mistake("There is no model to ask.")
        approvals, project = self._workspace.approvals, self._workspace.project
        args = {"prompt": call.messages[-1].text, "system": call.system, "max_tokens": call.max_output}
        sampling = ToolCall("", f"{server_name(server)}__sampling", {name: arg for name, arg in args.items() if arg})
        decision = approvals.decide(sampling, project)
        with self._paused(server):
            if isinstance(decision, Ask) and running.ask is not None:
                why = f"the MCP server {server} wants to ask your model something, which you pay for"
                decision = msgspec.structs.replace(decision, reason=why)
                consent = await approvals.ask(sampling, decision, project, running.ask)
                if consent.edited:
                    raise Mistake("The user wants another request.")
            elif not isinstance(decision, Allow):
                raise refuse(sampling, decision, project, running.emit)
            try:
                return await session.ask_model(call)
            except RaError as error:
                raise Mistake(f"The model gave no answer: {error}") from error

    def _latest(self, server: str) -> RunningCall | None:
        """The latest running call to a tool of this server."""
        return next((call for call in reversed(self._calls) if call.is_of(server)), None)

    @contextlib.contextmanager
    def _paused(self, server: str) -> Iterator[None]:
        """Suspends the deadlines of a server's calls: the time it waits for us or for a person does not count."""
        calls = [call for call in self._calls if call.is_of(server)]
        for call in calls:
            call.pause()
        try:
            yield
        finally:
            for call in calls:
                if call in self._calls:
                    call.go_on()
