"""Runs the user's hooks: twelve points of a run, each with a chain of functions and programs, in list order.

A hook that raises or takes too long ends the run: when a guard fails, nothing may pass. Only for `onStreamChunk` and
`onError`, the run continues with a warning.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any

from ra.core.errors import HookFailed, Stopped, UserError
from ra.core.functions import CallPlugin
from ra.core.settings import snake
from ra.middleware.context import HOOKS, Context, Hook
from ra.middleware.script import HookProgram, command_for
from ra.middleware.settings import MiddlewareSettings, ShellHook

TIMEOUT_S = 30.0
LOGGED: tuple[Hook, ...] = ("onStreamChunk", "onError")

Load = Callable[..., Any]
"""`plugins.load`: (ref, *, base) → the module, or what `path.py:name` names."""


class Hooks:
    """All hooks of a configuration, loaded. Raises UserError for a file that is not a hook."""

    def __init__(
        self,
        settings: MiddlewareSettings,
        *,
        base: Path,
        load: Load,
        call: CallPlugin,
        timeout_s: float = TIMEOUT_S,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._timeout_s = timeout_s
        self._env = os.environ if env is None else env
        self._base = base
        self._load = load
        self._call = call
        self._steps = {
            hook: steps
            for hook in HOOKS
            if (steps := tuple(self._step(hook, item) for item in getattr(settings, snake(hook))))
        }

    def wants(self, hook: Hook) -> bool:
        """Whether this point has a hook: if not, the loop need not create a ctx."""
        return hook in self._steps

    async def fire(self, hook: Hook, ctx: Context) -> tuple[str, ...]:
        """Runs the chain of one point and returns warnings; the changes are in `ctx.edits()`, also after Stopped.

        Raises HookFailed when a hook fails, and Stopped after the whole chain when a hook requested it.
        """
        ctx.hook = hook
        ctx.seal()
        warnings: list[str] = []
        for step in self._steps.get(hook, ()):
            ctx.file = step.name
            ctx.ran.append(step.name)
            try:
                warnings += await step.run(ctx, timeout_s=self._timeout_s)
                _check(ctx)
            except HookFailed as failure:
                if hook not in LOGGED:
                    raise
                warnings.append(str(failure))
        if ctx.stopped is not None and hook != "onError":  # onError: the run is already over
            raise Stopped(f"Stopped by middleware: {ctx.stopped}")
        return tuple(warnings)

    def _step(self, hook: Hook, item: str | ShellHook) -> "_Function | HookProgram":
        if isinstance(item, ShellHook):
            if not item.shell.strip():
                raise UserError(f"agent.middleware.{hook}: shell is empty; write the command that runs.")
            return HookProgram(item.shell, ("/bin/sh", "-c", item.shell), cwd=self._base, env=self._env)
        if re.search(r"\.py(:\w+)?$", item):
            return self._function(hook, item)
        path = (self._base / Path(item).expanduser()).resolve()
        if not path.is_file():
            raise UserError(f"agent.middleware.{hook}: there is no file {path}. (Write a command as `shell: …`.)")
        return HookProgram(self._display_name(item), command_for(path), cwd=self._base, env=self._env)

    def _function(self, hook: Hook, item: str) -> "_Function":
        ref, _, name = item.partition(".py:")
        path = (self._base / Path(f"{ref.removesuffix('.py')}.py").expanduser()).resolve()
        function = self._load(item, base=self._base)
        if not name:
            function = getattr(function, snake(hook), None) or getattr(function, "middleware", None)
        if not callable(function):
            raise UserError(f"{path} has no function {name or snake(hook)!r}{'' if name else ' (or middleware)'}.")
        return _Function(self._display_name(item), path, function, self._call)

    def _display_name(self, item: str) -> str:
        """The name in messages: relative to the project, even if the configuration made it absolute."""
        return os.path.relpath(item, self._base) if Path(item).is_relative_to(self._base) else item


class _Function:
    """One Python function of a chain."""

    def __init__(self, name: str, file: Path, function: Callable[[Context], Any], call: CallPlugin) -> None:
        self.name = name
        self.file = file
        self.function = function
        self._call = call

    async def run(self, ctx: Context, *, timeout_s: float) -> list[str]:
        answer = await self._call(self.function, ctx, timeout_s=timeout_s, file=self.file, what=str(ctx.hook))
        if not ctx.accepts(answer):
            # `return False`, or a body with a `yield` that never ran: when a guard is misunderstood, nothing may pass.
            line = self.function.__code__.co_firstlineno if isinstance(self.function, FunctionType) else 0
            raise HookFailed(
                f"{self.file}:{line}: {ctx.hook} returned {type(answer).__name__}; a hook returns nothing: "
                "it changes ctx, or calls ctx.stop(reason) or ctx.deny(reason)."
            )
        return []


def _check(ctx: Context) -> None:
    """Blames a value of the wrong type on the hook that assigned it. Raises HookFailed."""
    try:
        ctx.edits()
    except TypeError as error:
        raise HookFailed(f"{ctx.file}: {ctx.hook} left an invalid value: {error}.") from error
