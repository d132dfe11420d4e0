"""Where in a run do hooks fire, and what becomes of their edits? They are recorded before the run goes on."""

from collections.abc import Callable, Sequence

import msgspec

from ra.agent.journal import Journal
from ra.core.errors import Stopped
from ra.core.events import Delta
from ra.core.facts import Checkpointed, Edited
from ra.core.messages import Message, Text, ToolCall, ToolResult
from ra.core.model import Reply, Request, Section
from ra.middleware import context
from ra.middleware.context import Context, Edits, Hook
from ra.middleware.hooks import Hooks
from ra.middleware.views import LoopView


class Hooked:
    """Fires hooks for the loop. Without hooks for a point nothing is built and nothing is awaited."""

    def __init__(self, hooks: Hooks, journal: Journal, look: Callable[[], LoopView]) -> None:
        self.hooks = hooks
        self.journal = journal
        self.look = look
        self.compact = False  # a hook asked for a compaction before the next call

    async def before_loop_begin(self, message: Message) -> Message:
        edits = await self._fire("beforeLoopBegin", lambda loop: context.LoopBegin(loop, message))
        return edits.message or message

    async def on_context_build(self, sections: Sequence[Section]) -> Sequence[Section]:
        edits = await self._fire("onContextBuild", lambda loop: context.ContextBuild(loop, sections))
        return sections if edits.sections is None else edits.sections

    async def before_model_call(self, request: Request) -> Request:
        edits = await self._fire("beforeModelCall", lambda loop: context.ModelCall(loop, request))
        return edits.request or request

    async def on_stream_chunk(self, delta: Delta) -> Sequence[str]:
        if not self.hooks.wants("onStreamChunk"):
            return ()
        return await self.hooks.fire("onStreamChunk", context.StreamChunk(self.look(), delta))

    async def after_model_response(self, reply: Reply) -> Reply:
        edits = await self._fire("afterModelResponse", lambda loop: context.ModelResponse(loop, reply))
        return reply if edits.response is None else msgspec.structs.replace(reply, message=edits.response)

    async def before_tool_execution(self, call: ToolCall) -> ToolCall | ToolResult:
        """The call to run, or the result that says why it must not."""
        edits = await self._fire("beforeToolExecution", lambda loop: context.ToolStart(loop, call))
        if edits.denied is not None:
            return ToolResult(call.id, call.name, (Text(f"Denied: {edits.denied}"),), is_error=True)
        return edits.tool_call or call

    async def after_tool_execution(self, call: ToolCall, answer: ToolResult) -> ToolResult:
        edits = await self._fire("afterToolExecution", lambda loop: context.ToolEnd(loop, call, answer))
        return edits.result or answer

    async def after_loop_iteration(self) -> None:
        await self._fire("afterLoopIteration", Context)

    async def after_loop_complete(self, reply: Reply) -> None:
        await self._fire("afterLoopComplete", lambda loop: context.LoopComplete(loop, reply))

    async def before_compaction(self, strategy: str, reason: str, tokens: int) -> None:
        await self._fire(
            "beforeCompaction",
            lambda loop: context.CompactionStart(loop, strategy=strategy, reason=reason, tokens=tokens),
        )

    async def after_compaction(self, checkpoint: Checkpointed) -> None:
        await self._fire("afterCompaction", lambda loop: context.CompactionEnd(loop, checkpoint))

    async def on_error(self, error: BaseException) -> Sequence[str]:
        if not self.hooks.wants("onError"):
            return ()
        return await self.hooks.fire("onError", context.RunError(self.look(), error))

    async def _fire(self, hook: Hook, make: Callable[[LoopView], Context]) -> Edits:
        if not self.hooks.wants(hook):
            return Edits()
        ctx = make(self.look())
        try:
            for warning in await self.hooks.fire(hook, ctx):
                self.journal.warn(warning)
        except Stopped:
            self._keep(ctx.edits())  # it stopped the run; what it did to the conversation holds
            raise
        return self._keep(ctx.edits())

    def _keep(self, edits: Edits) -> Edits:
        if edits.messages is not None:
            self.journal.record(Edited(edits.by, edits.messages))
        self.compact = self.compact or edits.compact
        return edits
