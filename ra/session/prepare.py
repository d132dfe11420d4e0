"""Turns what the user typed into the message that the model sees: references are resolved, once."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ra.core.messages import Content, Message, Text
from ra.core.value import Value
from ra.resolvers.label import label
from ra.resolvers.resolver import AskOutside, Resolver

if TYPE_CHECKING:
    from ra.context.commands import CommandPrompt


class Prepared(Value, frozen=True):
    """A prompt with its references resolved and its files attached; `references` says what came from where.

    `failed` are the warnings of references that brought nothing: worth a question before anything is paid.
    """

    message: Message
    warnings: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class Resolvers(Protocol):
    """The resolvers of the configuration. `custom`: some are the user's, whose references may look like anything."""

    custom: bool

    def load(self) -> Sequence[Resolver]: ...


class SlashFiles(Protocol):
    """The commands and skills that a prompt such as `/review src/` may mean. They are found above this package."""

    def expand(self, text: str) -> "CommandPrompt | None":
        """The prompt that a command stands for, None when there is none of that name. Raises UserError."""
        ...


class Prompts:
    """Prepares prompts. Nothing of the resolvers is loaded for one that cannot hold a reference."""

    def __init__(self, root: Path, cwd: Path, resolvers: Resolvers, commands: SlashFiles | None = None) -> None:
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
            expansion = await expand(text, root=self._root, cwd=self._cwd, resolvers=resolvers, ask_outside=ask_outside)
            text = expansion.text
            for attached in (expansion, *(attach(str(file), cwd=self._cwd) for file in files)):
                blocks.extend(attached.blocks)
                warnings.extend(attached.warnings)
                failed.extend(attached.failed)
                references.extend(f"{ref.text} → {', '.join(ref.names)}" for ref in attached.references)
        typed = (Text(text),) if text or not blocks else ()
        return Prepared(Message("user", (*typed, *blocks)), tuple(warnings), tuple(references), tuple(failed))
