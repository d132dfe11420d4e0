"""Checks the arguments of an Agent, as a type checker would, and converts them to our own types."""

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ra.core.asking import Answer, Asker, Question
from ra.core.errors import UsageError
from ra.core.messages import Message, say
from ra.core.ports import Provider
from ra.tools.policy.rules import BUILTIN, parse_rule
from ra.tools.tool import Tool

HistoryMessage = Message | Mapping[str, str]
"""A message of ra, or a plain `{"role": "user", "content": "…"}`."""


def name_of(provider: Provider) -> str:
    methods = (getattr(provider, name, None) for name in ("stream", "close"))
    if isinstance(provider, type) or not all(map(callable, methods)):  # like a type checker, for programs without one
        what = f"the class {provider.__name__}" if isinstance(provider, type) else type(provider).__name__
        raise UsageError(f"Agent: provider must be a name, or an object with `stream` and `close`, not {what}.")
    return str(getattr(provider, "name", "") or type(provider).__name__)


def tools_of(tools: bool | Sequence[Callable[..., Any] | Tool]) -> tuple[Tool, ...]:  # noqa: FBT001 - the library's own
    if isinstance(tools, bool):
        return ()
    from ra.tools.functions import function_tool

    brought: list[Tool] = []
    if isinstance(tools, str | bytes | Mapping) or not isinstance(tools, Sequence):
        raise UsageError(f"Agent: tools must be a list of functions, True or False, not {type(tools).__name__}.")
    for tool in tools:
        if not isinstance(tool, Tool) and not callable(tool):
            raise UsageError(
                f"Agent: tools must be functions, or another agent's as_tool(), not {type(tool).__name__}."
            )
        brought.append(tool if isinstance(tool, Tool) else function_tool(tool))
    names = [tool.name for tool in brought]
    for place, name in enumerate(names):
        if name in BUILTIN:
            raise UsageError(f"Agent: tools holds {name}, which is the name of a built-in tool; rename the function.")
        if name in names[:place]:
            raise UsageError(f"Agent: tools has two functions named {name}; rename one.")
    return tuple(brought)


def check_choices(**given: tuple[object, Sequence[str]]) -> None:
    """Raises UsageError for a value that a type checker would reject: a misspelling must not pass as another choice."""
    for name, (value, choices) in given.items():
        if value is not None and value not in choices:
            raise UsageError(f"Agent: {name} is {value!r}; use one of {', '.join(map(repr, choices))}.")


def check_kinds(**given: tuple[object, type]) -> None:
    """Raises UsageError for a value of the wrong type, which would otherwise be silently misunderstood."""
    for name, (value, kind) in given.items():
        if value is not None and not isinstance(value, kind):
            word = {bool: "True or False", str: "text"}.get(kind, "a mapping")
            raise UsageError(f"Agent: {name} is {str(value)[:100]!r}; it must be {word}.")


def check_rules(allow: Sequence[str], deny: Sequence[str]) -> None:
    """Raises ConfigError for an invalid rule, which would otherwise be reported only at the first prompt."""
    for rule in allow:
        parse_rule(rule, "allow")
    for rule in deny:
        parse_rule(rule, "deny")


def asker_of(ask: Asker | Callable[[Question], Answer] | None) -> Asker | None:
    """The program's `ask` as a coroutine: a plain function runs in a thread. Only an Answer is accepted."""
    if ask is None:
        return None
    if not callable(ask):
        raise UsageError(f"Agent: ask must be `async def ask(question) -> Answer`, not {type(ask).__name__}.")

    async def asked(question: Question) -> Answer:
        returned: Any = ask(question) if inspect.iscoroutinefunction(ask) else await asyncio.to_thread(ask, question)
        answer = await returned if inspect.isawaitable(returned) else returned
        if not isinstance(answer, Answer):
            raise TypeError(
                f"ask= returned {str(answer)[:100]!r}; return an Answer, such as Answer('once') or Answer('no')"
            )
        return answer

    return asked


def check_lists(**given: object) -> None:
    """Raises UsageError for a text instead of a list of texts: it would be read letter by letter."""
    for name, value in given.items():
        if isinstance(value, str | bytes | Path):
            raise UsageError(f"Agent: {name} is {str(value)[:100]!r}; use a list, such as [{str(value)[:100]!r}].")


def left_out(names: bool | Sequence[str]) -> list[str]:  # noqa: FBT001 - the library's own
    if isinstance(names, bool):
        return [] if names else list(BUILTIN)
    if unknown := sorted(set(names) - set(BUILTIN)):
        raise UsageError(f"Agent: builtin_tools names {unknown[0]!r}; built in are {', '.join(BUILTIN)}.")
    return [name for name in BUILTIN if name not in names]


def message_of(message: HistoryMessage) -> Message:
    if isinstance(message, Message):
        return message
    plain: Any = message  # of any type, if the program has no type checker
    role, content = (plain.get("role"), plain.get("content")) if isinstance(plain, Mapping) else (None, None)
    if role in ("system", "user", "assistant") and isinstance(content, str):
        return say(role, content)
    form = "{'role': 'user' or 'assistant', 'content': text}"
    raise UsageError(f"Agent: history holds {str(plain)[:100]!r}; use Messages, or {form}.")
