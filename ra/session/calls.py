"""Runs the tool calls of an answer: each gets exactly one result, recorded before anything goes on."""

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ra.context.engine import Engine
from ra.core.asking import Asker
from ra.core.errors import Stopped
from ra.core.events import Event, ToolEnded, ToolOutput, ToolStarted
from ra.core.facts import Noticed, Said
from ra.core.messages import Message, ToolCall, ToolResult, result
from ra.core.value import encode
from ra.session.hooks import SessionHooks
from ra.session.journal import Journal, Progress
from ra.session.recipe import InstructionFiles, Recipe
from ra.tools.toolbox import Done, Toolbox

PRINTED_CHARS = 64 * 1024  # of a running call's output, kept in case the call is stopped
SAME_CALLS = 3  # this many identical calls in a row end the run


class Calls:
    """Runs the tool calls of one session."""

    def __init__(
        self,
        *,
        engine: Engine,
        journal: Journal,
        hooks: SessionHooks,
        instructions: InstructionFiles,
        progress: Progress,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._journal = journal
        self._hooks = hooks
        self._instructions = instructions
        self._progress = progress
        self._clock = clock
        self._last: list[tuple[str, bytes]] = []
        self._printed: dict[str, str] = {}  # output so far, by call id: the last part of it

    def begin(self) -> None:
        """Start a new run: earlier calls do not count as repeated."""
        self._last = []

    async def run(self, calls: Sequence[ToolCall], toolbox: Toolbox, recipe: Recipe, ask: Asker | None) -> None:
        """Run the calls: adjacent read-only calls in parallel, others one by one. Raises Stopped and HookFailed."""
        await self._journal.durable()
        self._check_repeats([call for call in calls if not toolbox.polls(call)])
        for batch in _batches(calls, toolbox, parallel=recipe.parallel_calls):
            tasks = [asyncio.create_task(self._run(call, toolbox, recipe, ask)) for call in batch]
            try:
                await asyncio.gather(*tasks)
            except BaseException:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                raise

    def close(self, text: str) -> None:
        """Give every call without a result one, so that no provider refuses this session.

        The result begins with the call's output so far, unless hooks edit results: they have not seen it.
        """
        for call in self._engine.view.open_calls():
            printed = "" if self._hooks.edit_results else self._printed.get(call.id, "").rstrip()
            self._journal.record(Said(result(call, f"{printed}\n[{text}]" if printed else text, is_error=True)))
        self._printed.clear()

    def _check_repeats(self, calls: Sequence[ToolCall]) -> None:
        for call in calls:
            self._last = [*self._last, (call.name, encode(call.args))][-SAME_CALLS:]
        if calls and len(self._last) == SAME_CALLS and len(set(self._last)) == 1 and not calls[0].broken:
            raise Stopped(f"Stopped: the model made the same call to {calls[0].name} {SAME_CALLS} times.")

    async def _run(self, call: ToolCall, toolbox: Toolbox, recipe: Recipe, ask: Asker | None) -> None:
        progress = self._progress
        began = self._clock()
        progress.emit(ToolStarted(call))
        allowed = await self._hooks.before_tool_execution(call)
        if isinstance(allowed, ToolResult):
            outcome = Done(allowed)
        else:
            outcome = await toolbox.run(allowed, ask=ask, emit=self._hear)
        answer = await self._hooks.after_tool_execution(call, outcome.result)
        self._journal.record(Said(Message("tool", (answer,))), *outcome.facts, *self._touched(call, recipe))
        self._printed.pop(call.id, None)
        progress.count(*outcome.facts)
        progress.emit(ToolEnded(call, answer, self._clock() - began, outcome.change))

    def _hear(self, event: Event) -> None:
        """Pass an event on, and keep the output of running calls in case they are stopped."""
        if isinstance(event, ToolOutput):
            self._printed[event.call_id] = (self._printed.get(event.call_id, "") + event.text)[-PRINTED_CHARS:]
        self._progress.emit(event)

    def _touched(self, call: ToolCall, recipe: Recipe) -> list[Noticed]:
        """The instruction files of a subdirectory that a tool touches for the first time."""
        path = call.args.get("path")
        if not isinstance(path, str):
            return []
        sections = (*recipe.sections, *self._engine.view.notices().values())
        return [Noticed(section) for section in self._instructions.nested(Path(path), sections)]


def _batches(calls: Sequence[ToolCall], toolbox: Toolbox, *, parallel: bool) -> list[list[ToolCall]]:
    batches: list[list[ToolCall]] = []
    for call in calls:
        together = parallel and toolbox.reads_only(call)
        if together and batches and toolbox.reads_only(batches[-1][0]):
            batches[-1].append(call)
        else:
            batches.append([call])
    return batches
