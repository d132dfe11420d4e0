"""Reads the content of the sources in ra.yaml: files, commands, Python functions and the conversation."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ra.context.compose.sources import Content, Source
from ra.context.compose.strategy import SessionView
from ra.core.errors import RaError
from ra.system import plugins
from ra.system.environment import clean
from ra.system.files import open_resolved
from ra.system.launch import under_reaper
from ra.system.process import start

COMMAND_S = 30.0
PLUGIN_S = 30.0  # for one call of the user's code
MAX_BYTES = 1_000_000  # the largest window holds about four times as many characters


class SourceFailed(RaError):
    """A source could not be read. The prompt gets a marker, the user a warning, and the run goes on."""


class SourceContents:
    """Reads sources for one prompt of one session."""

    def __init__(self, root: Path, env: Mapping[str, str], session: SessionView) -> None:
        self._root = root
        self._env = env
        self._session = session

    def file(self, path: str) -> str:
        """The text of a regular file, at most a megabyte."""
        try:
            with open_resolved(self._root / path) as file:
                return file.read(MAX_BYTES).decode("utf-8", "replace")
        except (OSError, ValueError) as error:
            raise SourceFailed(f"{path}: {getattr(error, 'strerror', None) or error}") from error

    async def command(self, command: str) -> str:
        """The output of a command. It runs in the project's root with a clean environment; its children end with it."""
        try:
            launch = under_reaper(["bash", "--noprofile", "--norc", "-c", command], cwd=str(self._root))
            running = await start(launch, cwd=str(self._root), env=clean(self._env), say=_unheard)
        except OSError as error:
            raise SourceFailed(f"{command}: {error.strerror or error}") from error
        ended = await running.wait(COMMAND_S)
        output = running.output.text()
        if ended.timed_out:
            raise SourceFailed(f"{command}: did not finish within {COMMAND_S:g} s")
        if ended.code:
            last_line = (output.strip().splitlines() or ["no output"])[-1]
            raise SourceFailed(f"{command}: exit {ended.code}: {last_line[:200]}")
        return output.rstrip("\n")

    def python(self, place: str) -> Callable[[], Awaitable[Content]]:
        path, _, name = place.rpartition(":") if ".py:" in place else (place, "", "content")
        file = plugins.locate(path, base=self._root)
        function = plugins.load(str(file), base=self._root, name=name)
        return partial(call_alone, function, timeout_s=PLUGIN_S, file=file, what=name)

    def timeline(self) -> Sequence[Any]:
        return self._session.timeline_messages()


async def call_alone(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """As `Worker.call`, in a new thread: sources are read concurrently, and a blocking one does not stop the others."""
    worker = plugins.Worker()
    try:
        return await worker.call(function, *args, **options)
    finally:
        worker.close()


def guard_sources(sources: Mapping[str, Source], *, file: Path, timeout_s: float = PLUGIN_S) -> dict[str, Source]:
    """The sources, with their functions run where they can be abandoned when they take too long."""
    guarded = {}
    for name, source in sources.items():
        if not isinstance(source.content, str):
            read = partial(call_alone, source.content, timeout_s=timeout_s, file=file, what=f"source {name!r}")
            source = msgspec.structs.replace(source, content=read)
        guarded[name] = source
    return guarded


def _unheard(text: str) -> None:
    """Ignore the output: nobody watches a source while it is read."""
