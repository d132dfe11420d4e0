"""Which commands are there? One table: name, argument, help, and the function that does it."""

import difflib
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from ra.cli.repl import changing, looking, sessions, settings
from ra.cli.repl.complete import Offer, fixed
from ra.context.settings import STRATEGIES
from ra.core.errors import UsageError
from ra.costs import ledger

if TYPE_CHECKING:
    from ra.cli.repl.core import Repl


class Command(msgspec.Struct, frozen=True):
    """`argument` as the help shows it: "" takes none, [X] may be left out. `at_once`: a run need not end first."""

    name: str
    argument: str
    help: str
    run: Callable[["Repl", str], Awaitable[None]]
    at_once: bool = False
    offers: Callable[["Repl", str], Iterable[Offer]] | None = None

    @property
    def usage(self) -> str:
        return f"/{self.name} {self.argument}".rstrip()


async def _help(repl: "Repl", argument: str) -> None:
    await looking.help_(repl, argument, TABLE)


async def _quit(repl: "Repl", argument: str) -> None:
    repl.leave(0)


TABLE: tuple[Command, ...] = (
    Command("help", "[COMMAND]", "the commands and keys", _help, at_once=True, offers=lambda r, a: names()),
    Command(
        "context",
        "[all|diff]",
        "what the next request holds, by source; diff: what broke the cached prefix",
        looking.context,
        at_once=True,
        offers=fixed("all", "diff"),
    ),
    Command("compact", "[FOCUS]", "shorten what the model sees, after a preview and a question", changing.compact),
    Command("recall", "QUERY|REF", "search or read back anything that was said", looking.recall, at_once=True),
    Command("pin", "TEXT", "keep a text in every request, after compactions too", changing.pin),
    Command("entries", "", "what is pinned", looking.entries, at_once=True),
    Command("forget", "ID", "take a pinned text away", changing.forget, offers=changing.entry_offers),
    Command("drop", "[@PATH]", "take an attached file out of the context", changing.drop, offers=changing.drop_offers),
    Command("undo", "", "put back the files that the last turn changed", changing.undo),
    Command("model", "[NAME]", "show or change the model", settings.model, offers=settings.model_offers),
    Command(
        "thinking",
        "[LEVEL]",
        "show or change how hard the model thinks",
        settings.thinking,
        offers=fixed(*settings.LEVELS),
    ),
    Command(
        "strategy",
        "[NAME]",
        "show or change the context strategy",
        settings.strategy,
        offers=fixed(*STRATEGIES),
    ),
    Command(
        "cost",
        "[session|model|source|tool|day]",
        "what this session has cost, and on what",
        looking.cost,
        at_once=True,
        offers=fixed(*ledger.BYS),
    ),
    Command("sessions", "", "the sessions of this project", sessions.list_, at_once=True),
    Command(
        "resume", "[ID]", "go on with another session; first what that costs", sessions.resume, offers=sessions.offers
    ),
    Command("fork", "", "go on in a copy of this session", sessions.fork),
    Command("clear", "", "begin a new session; this one stays stored", sessions.clear),
    Command("attach", "PATH", "attach a file to the next prompt", changing.attach, offers=changing.path_offers),
    Command("tools", "[NUMBER]", "what the last tool calls gave, unfolded (Ctrl-O)", looking.tools, at_once=True),
    Command("config", "", "the configuration in force, with origins", looking.config, at_once=True),
    Command("quit", "", "leave (Ctrl-D)", _quit),
)


def names() -> list[Offer]:
    return [(command.name, command.help) for command in TABLE]


def find(text: str) -> Command | None:
    name = text.strip().partition(" ")[0].partition("\n")[0].removeprefix("/")
    return next((command for command in TABLE if command.name == name), None)


async def run(repl: "Repl", text: str) -> None:
    """Do what a line says that begins with a slash. Raises UsageError, in one line."""
    command = find(text)
    word, *rest = text.strip().split(None, 1)
    argument = rest[0].strip() if rest else ""
    if command is None:
        near = difflib.get_close_matches(word.removeprefix("/"), [c.name for c in TABLE], n=1, cutoff=0.5)
        hint = f"did you mean /{near[0]}?" if near else "/help lists them."
        raise UsageError(f"There is no command {word}; {hint}")
    if argument and not command.argument:
        raise UsageError(f"/{command.name} takes no argument.")
    if not argument and command.argument and not command.argument.startswith("["):
        raise UsageError(f"Write {command.usage}: {command.help}.")
    await command.run(repl, argument)
