"""Turns what the user typed into the message that the model sees: references are resolved, once."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ra.context.settings import ResolverSettings
from ra.core.errors import ConfigError
from ra.core.messages import Content, Message, Text
from ra.core.text import label
from ra.core.value import Value
from ra.resolvers.resolver import AskOutside, Resolver
from ra.system import plugins

if TYPE_CHECKING:
    from ra.context.commands import CommandPrompt
    from ra.tools.mcp.servers import Servers


class Prepared(Value, frozen=True):
    """A prompt with its references resolved and its files attached; `references` says what came from where.

    `failed` are the warnings of references that brought nothing: worth a question before anything is paid.
    """

    message: Message
    warnings: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class ConfiguredResolvers:
    """The resolvers of the configuration: the built-in ones that are on, the user's own, and one for MCP servers.

    Loaded when a prompt first needs one. `custom`: some are the user's, whose references may look like anything.
    `servers` are the MCP servers whose resources can be referred to.
    """

    def __init__(
        self, settings: Sequence[ResolverSettings], root: Path, worker: plugins.Worker, servers: "Servers | None"
    ) -> None:
        self.custom = any(resolver.path for resolver in settings)
        self._settings = settings
        self._root = root
        self._worker = worker
        self._servers = servers

    def load(self) -> Sequence[Resolver]:
        from ra.resolvers.custom import Custom
        from ra.resolvers.expand import builtin

        chosen: dict[str, Resolver] = {resolver.name: resolver for resolver in builtin()}
        if self._servers is not None:
            from ra.tools.mcp.references import References

            chosen["mcp"] = References(self._servers)
        for settings in self._settings:
            name = settings.name
            if not settings.enabled:
                chosen.pop(name, None)
            elif settings.path:
                loaded = plugins.load(settings.path, base=self._root)
                chosen[name] = Custom(loaded, call=self._worker.call, name=name)
            elif name not in chosen:
                raise ConfigError(f"agent.context.resolvers: {name!r} needs a path; built in are file and url.")
        return tuple(chosen.values())


class SlashFiles(Protocol):
    """The commands and skills that a prompt such as `/review src/` may mean. They are found above this package."""

    def expand(self, text: str) -> "CommandPrompt | None":
        """The prompt that a command stands for, None when there is none of that name. Raises UserError."""
        ...


class Prompts:
    """Prepares prompts. Nothing of the resolvers is loaded for one that cannot hold a reference."""

    def __init__(
        self, root: Path, cwd: Path, resolvers: ConfiguredResolvers, commands: SlashFiles | None = None
    ) -> None:
        self._root = root
        self._cwd = cwd
        self._resolvers = resolvers
        self._commands = commands

    async def prepare(
        self, text: str, *, piped: str = "", files: Sequence[Path] = (), ask_outside: AskOutside | None = None
    ) -> Prepared:
        """What the user typed, expanded; what was piped in is data, and is not."""
        blocks: list[Content] = [Text(label("stdin", piped))] if piped else []
        warnings: list[str] = []
        references: list[str] = []
        failed: list[str] = []
        command = self._commands.expand(text) if self._commands and text.lstrip().startswith("/") else None
        if command is not None:
            warnings += command.notes
            text = command.text
        if files or self._resolvers.custom or "@" in text or "url:" in text:
            from ra.resolvers.expand import attach, expand  # pathspec and friends: 20 ms that most prompts do not need

            resolvers = self._resolvers.load()
            if command is not None and command.origin == "project":  # a project's words reach files, and nothing else
                resolvers = [resolver for resolver in resolvers if resolver.name == "file"]
            sent: set[str] = set()
            expansion = await expand(
                text, root=self._root, cwd=self._cwd, resolvers=resolvers, ask_outside=ask_outside, sent=sent
            )
            text = expansion.text
            for attached in (expansion, *(attach(str(file), cwd=self._cwd, sent=sent) for file in files)):
                blocks.extend(attached.blocks)
                warnings.extend(attached.warnings)
                failed.extend(attached.failed)
                references.extend(f"{ref.text} → {', '.join(ref.names)}" for ref in attached.references)
        typed = (Text(text),) if text or not blocks else ()
        return Prepared(Message("user", (*typed, *blocks)), tuple(warnings), tuple(references), tuple(failed))
