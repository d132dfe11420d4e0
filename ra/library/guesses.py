"""Answers a newcomer's first guess, a name from another library, with the name that does the same here.

`Agent(instructions="…")`, `agent.run_sync("…")` and `from ra import Runner` raise errors that say what to write.
"""

import difflib
import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ra.core.events import Event

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_ASK = "agent.ask(…), or `await agent.answer(…)` in async code"
_EVENTS = "`for event in agent.stream(…)`, or `async for event in agent.run(…)` in async code"
_FUNCTIONS = "tools=[function]: any function with type hints and a docstring is a tool"
_BOUND = "a method, a closure or functools.partial in tools=[…]: what is bound to it, the model does not see"
_HISTORY = "history=[…], or session=ID for a conversation that was saved"
_ITERATIONS = "max_iterations="
_LEFT = "leave it out: ra leaves it to the provider; thinking= is there"
_KEYS = "the vendor's usual variables, or settings={'app.providers.NAME': {'baseUrl': …, 'apiKey': …}}"
_SERVERS = "settings={'agent.mcpServers': [{'name': …, 'command': …, 'args': […]}]}"
_HOOKS = "settings={'agent.middleware': {'beforeToolExecution': ['./hook.py']}}, or ask= for permissions"
_AS_TOOL = "tools=[other.as_tool(name=…, description=…)]"
_TYPE = "output_type="
_PROMPT = "system_prompt="
_RETRIES = "leave it out: an answer that does not fit is sent back at most twice, and failed calls are tried again"
_CHECKS = "validators of a pydantic model as output_type="
_RIGHTS = "edits='auto' for changes to files, allow=[…] and deny=[…] for the rest, or ask= to decide in the program"
_ENDED = "agent.ended: the last run's outcome, answer, usage and dollars"
_SCRIPTED = "Agent(provider=ra.testing.ScriptedProvider([…]))"
_CONFIG = "the arguments of Agent(…)"

ARGUMENTS = {
    "allowed_tools": "builtin_tools=[…] for which there are, allow=[…] for what may run unasked",
    "api_base": _KEYS,
    "api_key": _KEYS,
    "base_url": _KEYS,
    "callbacks": _EVENTS,
    "can_use_tool": "ask=",
    "checkpointer": "leave it out: a conversation is saved; session=ID goes on with it",
    "context": _BOUND,
    "deps": _BOUND,
    "deps_type": _BOUND,
    "description": "agent.as_tool(name=…, description=…)",
    "disallowed_tools": "deny=[…]",
    "functions": _FUNCTIONS,
    "guardrails": _HOOKS,
    "handoffs": _AS_TOOL,
    "hooks": _HOOKS,
    "input_guardrails": _HOOKS,
    "instructions": _PROMPT,
    "key": _KEYS,
    "max_budget_usd": "max_cost=",
    "max_output_tokens": "max_tokens=, for input and output of a run together",
    "max_steps": _ITERATIONS,
    "max_thinking_tokens": "thinking=, with settings={'agent.thinkingBudgetCap': N}",
    "max_turns": _ITERATIONS,
    "mcp_servers": _SERVERS,
    "memory": _HISTORY,
    "message_history": _HISTORY,
    "messages": _HISTORY,
    "middleware": _HOOKS,
    "model_name": "model=",
    "model_settings": _LEFT,
    "name": "agent= for a named agent of the configuration, as_tool(name=…) for a tool",
    "output_guardrails": _CHECKS,
    "output_retries": _RETRIES,
    "output_schema": _TYPE,
    "output_validator": _CHECKS,
    "permission_mode": _RIGHTS,
    "permissions": _RIGHTS,
    "prompt": _PROMPT,
    "reasoning": "thinking=",
    "reasoning_effort": "thinking=",
    "recursion_limit": _ITERATIONS,
    "response_format": _TYPE,
    "response_model": _TYPE,
    "response_schema": _TYPE,
    "result_type": _TYPE,
    "resume": "session=ID",
    "retries": _RETRIES,
    "schema": _TYPE,
    "session_id": "session=ID",
    "stream": _EVENTS,
    "streaming": _EVENTS,
    "system": _PROMPT,
    "temperature": _LEFT,
    "thread_id": "session=ID",
    "timeout": "max_duration=, in seconds",
    "toolsets": f"{_SERVERS}, or {_FUNCTIONS}",
    "top_p": _LEFT,
    "usage_limits": "max_cost=, max_tokens=, max_iterations= and max_duration=",
    "verbose": _EVENTS,
    "working_directory": "cwd=",
}
"""Keywords of other libraries' agents and calls, and what Agent(…) takes instead."""

GIVEN_TO_AGENTS = (
    *("model", "provider", "system_prompt", "thinking", "output_type", "tools", "builtin_tools", "history", "settings"),
    *("max_cost", "max_tokens", "max_iterations", "max_duration", "session", "save", "edits", "write", "allow", "deny"),
    *("cwd", "env", "ask", "agent", "handler", "untrusted"),
)

OF_A_PROMPT = {
    **{name: f"Agent({advice}…)" if advice.endswith("=") else advice for name, advice in ARGUMENTS.items()},
    **{name: f"Agent({name}=…)" for name in GIVEN_TO_AGENTS},
    "attachments": "files=[…]",
    "config": _CONFIG,
    "documents": "files=[…]",
    "fragments": "files=[…], or @path in the prompt",
    "image": "files=[…]",
    "images": "files=[…]",
    "options": _CONFIG,
    "run_config": _CONFIG,
}
"""Keywords that other libraries take with a prompt, and what to write here."""

METHODS = {
    "add_tool": _FUNCTIONS,
    "all_messages": "agent.history",
    "batch": "asyncio.gather(*(Agent().answer(prompt) for prompt in …))",
    "bind_tools": _FUNCTIONS,
    "clear": "a new Agent",
    "clone": "Agent(history=agent.history)",
    "conversation": "the agent itself: its prompts follow each other",
    "cost": f"agent.ended.dollars ({_ENDED})",
    "disconnect": "agent.close()",
    "final_output": _ENDED,
    "instructions": "Agent(system_prompt=…)",
    "messages": "agent.history",
    "new_messages": "agent.history",
    "output": _ENDED,
    "output_validator": _CHECKS,
    "override": _SCRIPTED,
    "reset": "a new Agent",
    "result": _ENDED,
    "system_prompt": "Agent(system_prompt=…)",
    "to_input_list": "agent.history",
    "tool": _FUNCTIONS,
    "tool_plain": _FUNCTIONS,
    "usage": f"agent.ended.usage ({_ENDED})",
    "with_structured_output": "Agent(output_type=…)",
    **dict.fromkeys(("astream", "astream_events", "iter", "receive_messages", "receive_response"), _EVENTS),
    **dict.fromkeys(("run_stream", "run_streamed", "stream_events", "stream_text"), _EVENTS),
    **dict.fromkeys(("ainvoke", "arun", "call", "chain", "chat", "complete", "generate", "invoke", "predict"), _ASK),
    **dict.fromkeys(("prompt", "query", "respond", "run_sync", "send"), _ASK),
}
"""Attributes of other libraries' agents and results, and what to write here."""

NAMES = {
    "AIMessage": "ra.say('assistant', …)",
    "AgentOptions": _CONFIG,
    "AssistantMessage": "ra.Message",
    "Attachment": "agent.ask(…, files=[…])",
    "BaseTool": _FUNCTIONS,
    "BinaryContent": "ra.Image, ra.Document, or agent.ask(…, files=[…])",
    "ClaudeAgentOptions": _CONFIG,
    "ClaudeSDKClient": "Agent: its prompts follow each other",
    "Conversation": "Agent: its prompts follow each other",
    "HumanMessage": "ra.say('user', …)",
    "ImageUrl": "url:https://… in the prompt",
    "InMemorySaver": "Agent(save=False)",
    "ModelRetry": "an exception of the function: the model is told what it says",
    "ModelSettings": _LEFT,
    "ResultMessage": "ra.RunEnded",
    "RunContext": _BOUND,
    "RunContextWrapper": _BOUND,
    "RunResult": _ENDED,
    "Runner": _ASK,
    "SQLiteSession": "leave it out: a conversation is saved; Agent(session=ID) goes on with it",
    "Session": "Agent: one conversation, and agent.session is its id",
    "SystemMessage": "Agent(system_prompt=…)",
    "TestModel": _SCRIPTED,
    "TextBlock": "ra.Text",
    "ToolUseBlock": "ra.ToolCall",
    "UsageLimits": "max_cost=, max_tokens=, max_iterations= and max_duration= of Agent(…)",
    "UserMessage": "ra.say('user', …)",
    "chat": "ra.ask(…)",
    "complete": "ra.ask(…)",
    "create_agent": "Agent(…)",
    "create_react_agent": "Agent(…)",
    "create_sdk_mcp_server": _FUNCTIONS,
    "function_tool": _FUNCTIONS,
    "get_async_model": "Agent('MODEL')",
    "get_model": "Agent('MODEL')",
    "handoff": _AS_TOOL,
    "init_chat_model": "Agent('MODEL', tools=False)",
    "prompt": "ra.ask(…)",
    "query": "ra.ask(…), or `async for event in Agent().run(…)`",
    "run": "ra.ask(…), or `async for event in Agent().run(…)`",
    "run_sync": "ra.ask(…)",
    "stream": "`for event in Agent().stream(…)`",
    "tool": _FUNCTIONS,
    **dict.fromkeys(("MCPServer", "MCPServerHTTP", "MCPServerStdio", "MCPServerStreamableHttp"), _SERVERS),
}
"""Names imported from other libraries, and what to write here."""


def instead(name: str, elsewhere: Mapping[str, str], names: Iterable[str]) -> str:
    """What to write instead of a missing name: a clause after a semicolon, "" if unknown."""
    if advice := elsewhere.get(name):
        return f"; {advice}" if advice.startswith("leave") else f"; use {advice}"
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.75)
    return f"; did you mean {near[0]}?" if near else ""


def explains(elsewhere: Mapping[str, str]) -> Callable[[FunctionT], FunctionT]:
    """Makes a function explain unknown keywords. Type checkers see the original signature."""

    def explaining(function: FunctionT) -> FunctionT:
        names = [name for name in inspect.signature(function).parameters if name != "self"]
        title = function.__qualname__.replace(".__init__", "")

        @functools.wraps(function)
        def checked(*args: Any, **options: Any) -> Any:
            if unknown := next((name for name in options if name not in names), None):
                raise TypeError(f"{title}() takes no {unknown!r}{instead(unknown, elsewhere, names)}")
            return function(*args, **options)

        explained: Any = checked
        return explained  # type: ignore[no-any-return]  # the same function for every correct call

    return explaining


class EventStream(AsyncGenerator[Event, None]):
    """The events of a run, for `async for`. An `await` or a plain `for` raises an error that says what to write."""

    def __init__(self, events: AsyncGenerator[Event, None]) -> None:
        self._events = events

    async def __anext__(self) -> Event:
        return await self._events.__anext__()

    async def asend(self, value: None) -> Event:
        return await self._events.asend(value)

    async def athrow(self, *error: Any) -> Event:
        return await self._events.athrow(*error)

    async def aclose(self) -> None:
        await self._events.aclose()

    def __repr__(self) -> str:
        return "<events of agent.run(…), for `async for`; the answer alone is `await agent.answer(…)`>"

    if not TYPE_CHECKING:

        def __await__(self) -> Generator[Any, Any, Any]:
            raise TypeError("`async for event in agent.run(…)` gives what happens; `await agent.answer(…)` the answer")

        def __iter__(self) -> Any:
            raise TypeError("agent.run(…) needs `async for`; a plain `for` takes agent.stream(…)")
