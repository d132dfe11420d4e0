"""The agents that are served: one App for each agent and set of tools, created on demand."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ra.app import App
from ra.config import paths, trust
from ra.config.load import Resolved
from ra.config.options import Options
from ra.context.settings import STRATEGIES
from ra.core.errors import RaError, Refused
from ra.server.log import Log
from ra.server.task import Refusal, Task

if TYPE_CHECKING:
    from ra.session.telemetry import Telemetry

ReadConfiguration = Callable[[str | None], Resolved]
"""Resolves the configuration for a named agent, or for the default one."""


class Agents:
    """Follows the configuration: a changed file applies from the next task on, a broken one is reported."""

    def __init__(self, read: ReadConfiguration, options: Options, *, env: Mapping[str, str], log: Log) -> None:
        self._read = read
        self._options = options
        self._env = env
        self._log = log
        self._apps: dict[tuple[str, str], App] = {}
        self._resolved = self._read_all()
        self._seen = self._signature()

    @property
    def base(self) -> Resolved:
        return self._resolved[""]

    @property
    def telemetry(self) -> "Telemetry | None":
        """Raises UserError if telemetry is configured and cannot be loaded."""
        if not self._env.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
            return None
        from ra.session.telemetry import telemetry  # start-up time: only for those who export

        return telemetry(self._env)

    def check(self, task: Task) -> None:
        """Raises Refusal: 404 for an unknown agent, 400 for an unknown strategy."""
        self._follow_files()
        agents = self.base.config.agents
        if task.agent and task.agent not in agents:
            close = get_close_matches(task.agent, agents, n=1)
            hint = f" Did you mean {close[0]}?" if close else f" Known agents: {', '.join(sorted(agents)) or 'none'}."
            raise Refusal(404, f"No agent is named {task.agent[:100]!r}.{hint}", field="agent")
        if task.strategy is not None and task.strategy not in STRATEGIES:
            # A file could contain any code: only the configuration may name one.
            close = get_close_matches(task.strategy, STRATEGIES, n=1)
            hint = f"did you mean {close[0]}?" if close else f"use {', '.join(STRATEGIES)}."
            raise Refusal(400, f"Unknown contextStrategy {task.strategy[:100]!r}; {hint}", field="contextStrategy")

    def app(self, task: Task) -> App:
        """Raises RaError if the agent's configuration is invalid."""
        key = (task.agent, task.tools)
        if key not in self._apps:
            self._apps[key] = self._build(task)
        return self._apps[key]

    def _build(self, task: Task) -> App:
        resolved = self._resolved[task.agent]
        options = msgspec.structs.replace(self._options, served=True, agent=task.agent)
        if task.tools == "none":
            options = msgspec.structs.replace(options, tools=False)
        elif task.tools == "read-only":
            options = msgspec.structs.replace(options, read_only=True)
        app = App(resolved, options, env=self._env, warn=self._log.warn, log=self._log)
        app.check()
        return app

    def _follow_files(self) -> None:
        now = self._signature()
        if now == self._seen:
            return
        self._seen = now
        try:
            changed = self._read_all()
            news = set(changed[""].untrusted) - set(self.base.untrusted)
            if news:
                raise Refused(f"{min(item.line for item in news)} is not trusted; look at it and run `ra trust`.")
        except RaError as error:
            self._log.say(
                "configuration", f"The changed configuration is not used, because it is wrong: {error}", level="error"
            )
            return
        self._resolved = changed
        self._apps.clear()
        self._log.say("configuration", "The configuration has changed and is used from now on.")

    def _read_all(self) -> dict[str, Resolved]:
        """Reads all agents at once, so that no task sees half of a change. Raises RaError."""
        base = self._read(None)
        return {"": base} | {name: self._read(name) for name in base.config.agents}

    def _signature(self) -> tuple[object, ...]:
        base = self.base
        files = {
            base.data_dir / trust.FILE,
            paths.user_file(self._env),
            *(folder / name for folder in (base.root, base.cwd) for name in (paths.FILE_NAME, paths.AGENTX_NAME)),
            *base.files,
        }
        return tuple(_stamp(file) for file in sorted(files))


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
