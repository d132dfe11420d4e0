"""The table of slash commands: name, argument, help, and the function that runs each."""

from collections.abc import Awaitable, Callable, Iterable

import msgspec

from ra.cli import flags, other_programs, spelling
from ra.cli.repl.commands import change, sessions, settings, show, window
from ra.cli.repl.core import Repl
from ra.cli.repl.offers import Offer
from ra.context.settings import STRATEGIES
from ra.core.errors import UsageError
from ra.core.text import visible_line
from ra.costs import ledger


class Command(msgspec.Struct, frozen=True):
    """`argument` is as in the help: "" takes none, [X] is optional. `at_once`: it may run beside a prompt.

    Tab offers `words`, or the result of `offers`.
    """

    name: str
    argument: str
    help: str
    run: Callable[[Repl, str], Awaitable[None]]
    at_once: bool = False
    offers: Callable[[Repl, str], Iterable[Offer]] | None = None
    words: tuple[str, ...] = ()

    def completions(self, repl: Repl, begun: str) -> Iterable[Offer]:
        return self.offers(repl, begun) if self.offers is not None else [(word, "") for word in self.words]

    @property
    def needs_argument(self) -> bool:
        return bool(self.argument) and not self.argument.startswith("[")

    @property
    def usage(self) -> str:
        return f"/{self.name} {self.argument}".rstrip()


KEYS = {
    "Enter": "send; while the model works, queue the prompt",
    "Alt-Enter, Ctrl-J, \\ Enter": "new line",
    "Tab": "complete commands, @paths, session ids",
    "Up, Ctrl-R": "history, and search in it",
    "Ctrl-C": "stop the turn; pressed twice: leave",
    "Shift-Tab": "edits: ask, auto, off",
    "Ctrl-O": "unfold the last tool calls",
    "Ctrl-Z, Ctrl-D": "suspend, leave",
    "@path, url:…": "attach a file, a folder, a page",
    "status line": "hit: share of the last call that came from the cache; warm: how long the cache lasts",
    "!command": "run it in your shell; its output is sent with the next prompt",
}


async def _help(repl: Repl, argument: str) -> None:
    name = argument.removeprefix("/")
    commands = [command for command in TABLE if not name or command.name == name]
    if not commands:
        raise UsageError(f"There is no command /{visible_line(name, 40)}; /help lists them.")
    text = show.columns(repl.paper, ["", ""], [[command.usage, command.help] for command in commands])
    if not name:
        text += "\n" + show.columns(repl.paper, ["", ""], [[key, what] for key, what in KEYS.items()])
    repl.show(text)


def _names(repl: Repl, begun: str) -> list[Offer]:
    return names()


async def _context(repl: Repl, argument: str) -> None:
    await (window.browse(repl) if argument == "messages" else show.context(repl, argument))


async def _quit(repl: Repl, argument: str) -> None:
    repl.leave(0)


TABLE: tuple[Command, ...] = (
    Command("help", "[COMMAND]", "the commands and keys", _help, at_once=True, offers=_names),
    Command(
        "context",
        "[all|diff|messages]",
        "what the model sees, by source; diff: what broke the cache; messages: read, omit, keep or pin",
        _context,
        words=("all", "diff", "messages"),
        at_once=True,
    ),
    Command(
        "omit",
        "#N",
        "hide one message or result from the model, with the price first",
        window.omit,
        offers=window.offers,
    ),
    Command(
        "keep",
        "#N",
        "bring it back, and keep it through compactions, with the price first",
        window.keep,
        offers=window.offers,
    ),
    Command("rewind", "[N|#N]", "go back before an earlier prompt: the conversation, files, or both", window.rewind),
    Command("compact", "[FOCUS]", "hide old messages from the model, after a preview and a question", change.compact),
    Command("recall", "QUERY|REF", "search or read back anything that was said", show.recall, at_once=True),
    Command("said", "", "your rules and decisions, and whether the model still sees them", show.said, at_once=True),
    Command("pin", "TEXT", "keep a text in every request, across compactions and restarts", change.pin),
    Command("entries", "", "what is pinned", show.entries, at_once=True),
    Command("forget", "ID", "take a pinned text away", change.forget, offers=change.entry_offers),
    Command("drop", "[@PATH]", "take an attached file out of the context", change.drop, offers=change.drop_offers),
    Command("undo", "", "put back the files that the last turn changed", change.undo),
    Command("model", "[NAME]", "show or change the model", settings.model, offers=settings.model_offers),
    Command(
        "thinking",
        "[LEVEL]",
        "show or change how hard the model thinks",
        settings.thinking,
        words=(*settings.LEVELS,),
    ),
    Command(
        "edits",
        "[ask|auto|off]",
        "changes to files: ask first, make them, or refuse them (Shift-Tab)",
        settings.edits,
        at_once=True,
        words=settings.EDITS,
    ),
    Command(
        "strategy",
        "[NAME]",
        "show or change the context strategy",
        settings.strategy,
        words=(*STRATEGIES,),
    ),
    Command(
        "cost",
        "[session|model|source|tool|day]",
        "what this session has cost, and on what",
        show.cost,
        at_once=True,
        words=(*ledger.BYS,),
    ),
    Command("sessions", "", "the sessions of this project", sessions.list_, at_once=True),
    Command(
        "resume", "[ID]", "continue another session, with the price first", sessions.resume, offers=sessions.offers
    ),
    Command("fork", "", "go on in a copy of this session", sessions.fork),
    Command("clear", "", "start a new session; this one is kept", sessions.clear),
    Command("attach", "PATH", "attach a file to the next prompt", change.attach, offers=change.path_offers),
    Command("tools", "[NUMBER]", "the whole output of the last tool calls (Ctrl-O)", show.tools, at_once=True),
    Command("permissions", "", "what is allowed, asked about and denied", show.permissions, at_once=True),
    Command("config", "", "the configuration, and where each value comes from", show.config, at_once=True),
    Command("quit", "", "leave (Ctrl-D)", _quit),
)


ALONE = ("/context messages",)  # read-only as such, but its list can change the messages: not beside a run


def names() -> list[Offer]:
    return [(command.name, command.help) for command in TABLE]


def find(text: str) -> Command | None:
    name = text.strip().partition(" ")[0].partition("\n")[0].removeprefix("/").lower()
    return next((command for command in TABLE if command.name == name), None)


async def run(repl: Repl, text: str) -> None:
    """Runs a line that begins with a slash. Raises UsageError with a one-line message."""
    command = find(text)
    word, *arguments = text.strip().split(None, 1)
    argument = arguments[0].strip() if arguments else ""
    if command is None:
        raise UsageError(f"There is no command {word}; {_meant(word, argument)}")
    if argument in flags.BY_FLAG:
        raise UsageError(f"/{command.name} takes no flags: {command.usage}, {command.help}.")
    if argument and not command.argument:
        raise UsageError(f"/{command.name} takes no argument: {INSTEAD.get(command.name, command.help)}.")
    if command.needs_argument and not argument:
        raise UsageError(f"Write {command.usage}: {command.help}.")
    await command.run(repl, argument)


INSTEAD = {
    "config": "to set a key: ra --set KEY=VALUE for one run, or ra.yaml",
    "permissions": "to allow more: ra --allow RULE for one run, or ra.yaml",
    "sessions": "/resume ID continues one",
    "undo": "it puts back what the last turn changed; /rewind N goes back further",
}
"""What to do if a command has an argument that it does not take."""


def _meant(word: str, argument: str) -> str:
    """What to type instead of an unknown command."""
    name = word.removeprefix("/").lower()
    begun = argument.partition(" ")[0].lower()
    own = [command.name for command in TABLE]
    if not name and begun in own:
        return f"type /{begun}, without the space."
    slashes = {other: row.slash for other, row in other_programs.BY_WORD.items() if row.slash}
    for part in (name, *name.replace("_", "-").split("-")):  # auto-edit concerns edits
        if part in slashes:
            return f"type {slashes[part]}."
        if near := spelling.nearest(part, own):
            return f"did you mean /{near}?"
    if near := spelling.one_slip(name, slashes):
        return f"type {slashes[near]}."
    return "/help lists them."
