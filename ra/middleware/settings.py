"""Settings of hooks: `agent.middleware`."""

from ra.core.settings import Settings


class ShellHook(Settings, frozen=True, kw_only=True):
    shell: str


HookList = tuple[str | ShellHook, ...]


class MiddlewareSettings(Settings, frozen=True, kw_only=True):
    before_loop_begin: HookList = ()
    on_context_build: HookList = ()
    before_model_call: HookList = ()
    on_stream_chunk: HookList = ()
    after_model_response: HookList = ()
    before_tool_execution: HookList = ()
    after_tool_execution: HookList = ()
    after_loop_iteration: HookList = ()
    after_loop_complete: HookList = ()
    before_compaction: HookList = ()
    after_compaction: HookList = ()
    on_error: HookList = ()
