"""Fires the user's hooks for a session, and records what they change before the run goes on."""

from collections.abc import Sequence

import msgspec

from ra.context.compose.strategy import Composed, SessionView
from ra.context.engine import Engine
from ra.context.render import missing
from ra.core.errors import HookFailed, Stopped
from ra.core.events import Delta
from ra.core.facts import Checkpointed, Edited
from ra.core.messages import Message, Text, ToolCall, ToolResult
from ra.core.model import Reply, Request
from ra.middleware import context
from ra.middleware.context import Context, Edits, Hook
from ra.middleware.hooks import Hooks
from ra.middleware.views import LoopView, Spending, request_fault
from ra.session.journal import Journal, Progress


class SessionHooks:
    """The hooks of one session. Without hooks for a point nothing is built and nothing is awaited."""

    def __init__(self, hooks: Hooks, journal: Journal, engine: Engine, progress: Progress, *, model: str) -> None:
        self._hooks = hooks
        self._journal = journal
        self._engine = engine
        self._progress = progress
        self._model = model
        self._compaction_wanted = False
        self._editor = ""  # who last changed the conversation, until a request stood on it

    def take_compaction(self) -> bool:
        """Whether a hook asked for a compaction since this was last called."""
        was_asked, self._compaction_wanted = self._compaction_wanted, False
        return was_asked

    async def before_loop_begin(self, message: Message) -> Message:
        if not self._hooks.wants("beforeLoopBegin"):
            return message
        edits = await self._fire("beforeLoopBegin", context.LoopBegin(self._look(), message))
        return edits.message or message

    async def on_context_build(self, composed: Composed, view: SessionView) -> Composed:
        """What the strategy composed, with other sections; or what the hooks' slots render in its place."""
        if not self._hooks.wants("onContextBuild"):
            return composed
        from ra.context.compose.composed import rendered_to, strategy_context  # only for such a hook

        parts = strategy_context(view)
        edits = await self._fire("onContextBuild", context.ContextBuild(self._look(), composed.sections, parts=parts))
        sections = composed.sections if edits.sections is None else tuple(edits.sections)
        rendered = parts.slots.render()
        if not rendered.messages:
            return msgspec.structs.replace(composed, sections=sections)
        prompt = rendered_to(view, rendered, sections)
        return msgspec.structs.replace(prompt, warnings=(*composed.warnings, *prompt.warnings), log=composed.log)

    async def before_model_call(self, request: Request) -> Request:
        editor, self._editor = self._editor, ""
        if self._hooks.wants("beforeModelCall"):
            edits = await self._fire("beforeModelCall", context.ModelCall(self._look(), request))
            if edits.request is not None:
                editor, request = f"{edits.by}: beforeModelCall", edits.request
        if editor and (fault := request_fault(request)):
            raise HookFailed(f"{editor} left a request that no provider would accept: {fault}.")
        return request

    async def on_stream_chunk(self, delta: Delta) -> Sequence[str]:
        if not self._hooks.wants("onStreamChunk"):
            return ()
        return await self._hooks.fire("onStreamChunk", context.StreamChunk(self._look(), delta))

    async def after_model_response(self, reply: Reply) -> Reply:
        if not self._hooks.wants("afterModelResponse"):
            return reply
        edits = await self._fire("afterModelResponse", context.ModelResponse(self._look(), reply))
        return reply if edits.response is None else msgspec.structs.replace(reply, message=edits.response)

    async def before_tool_execution(self, call: ToolCall) -> ToolCall | ToolResult:
        """The call to run, or the result that says why it must not."""
        if not self._hooks.wants("beforeToolExecution"):
            return call
        edits = await self._fire("beforeToolExecution", context.ToolStart(self._look(), call))
        if edits.denied is not None:
            return ToolResult(call.id, call.name, (Text(f"Denied: {edits.denied}"),), is_error=True)
        return edits.tool_call or call

    @property
    def edit_results(self) -> bool:
        """Whether the user's hooks have a say in what the model sees of a tool's result."""
        return self._hooks.wants("afterToolExecution")

    async def after_tool_execution(self, call: ToolCall, result: ToolResult) -> ToolResult:
        if not self._hooks.wants("afterToolExecution"):
            return result
        edits = await self._fire("afterToolExecution", context.ToolEnd(self._look(), call, result))
        return edits.result or result

    async def after_loop_iteration(self) -> None:
        if self._hooks.wants("afterLoopIteration"):
            await self._fire("afterLoopIteration", Context(self._look()))

    async def after_loop_complete(self, reply: Reply) -> None:
        if self._hooks.wants("afterLoopComplete"):
            await self._fire("afterLoopComplete", context.LoopComplete(self._look(), reply))

    async def before_compaction(self, checkpoint: Checkpointed) -> None:
        if self._hooks.wants("beforeCompaction"):
            ctx = context.CompactionStart(
                self._look(), strategy=checkpoint.strategy, reason=checkpoint.reason, tokens=checkpoint.before
            )
            await self._fire("beforeCompaction", ctx)

    async def after_compaction(self, checkpoint: Checkpointed) -> None:
        if self._hooks.wants("afterCompaction"):
            await self._fire("afterCompaction", context.CompactionEnd(self._look(), checkpoint))

    async def on_error(self, error: BaseException) -> Sequence[str]:
        if not self._hooks.wants("onError"):
            return ()
        return await self._hooks.fire("onError", context.RunError(self._look(), error))

    def _look(self) -> LoopView:
        """What hooks see of the run."""
        spent = self._progress.spent
        return LoopView(
            self._said(),
            iteration=self._progress.iteration,
            usage=Spending.of(spent.usage, float(spent.dollars) if spent.priced else None),
            session=self._journal.session,
            model=self._model,
        )

    def _said(self) -> tuple[Message, ...]:
        """The conversation. What stands in for a result that is still to come is no part of it: a hook that changes
        the conversation would record it as the result."""
        view = self._engine.view
        stand_ins = [missing(call) for call in view.open_calls()]
        return tuple(message for message in view.messages if message not in stand_ins) if stand_ins else view.messages

    async def _fire(self, hook: Hook, ctx: Context) -> Edits:
        try:
            for warning in await self._hooks.fire(hook, ctx):
                self._progress.warn(warning)
        except Stopped:
            self._record(hook, ctx)  # it stopped the run; what it did to the conversation holds
            raise
        return self._record(hook, ctx)

    def _record(self, hook: Hook, ctx: Context) -> Edits:
        edits = ctx.edits()
        if edits.messages is not None:
            self._journal.record(Edited(edits.by, ctx.loop.rebased(edits.messages, self._said())))
            self._editor = f"{edits.by}: {hook}"
        self._compaction_wanted = self._compaction_wanted or edits.compact
        return edits
