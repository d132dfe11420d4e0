"""Which commands change how the session goes on? Model, thinking and strategy: the same conversation, wired anew."""

import copy
from difflib import get_close_matches
from typing import TYPE_CHECKING, get_args

from ra.app import App
from ra.cli import oneshot
from ra.cli.repl.complete import Offer
from ra.cli.safe import one_line
from ra.context.settings import STRATEGIES
from ra.core.errors import UsageError
from ra.core.model import Level
from ra.providers import catalog

if TYPE_CHECKING:
    from ra.cli.repl.core import Repl

LEVELS: tuple[str, ...] = get_args(Level)


async def model(repl: "Repl", argument: str) -> None:
    if not argument:
        repl.say(f"{repl.app.model} ({repl.app.provider_name}); /model NAME changes it.")
        return
    name, *provider = argument.split()
    if len(provider) > 1:
        raise UsageError("Write /model NAME, or /model NAME PROVIDER.")
    await _rewire(repl, model=name, **({"provider": provider[0]} if provider else {}))
    repl.say(f"{repl.app.model} ({repl.app.provider_name}) answers from now on; its cache begins cold.", "dim")
    if repl.session.engine.window.limit is None and (doubt := _doubt(repl)):
        repl.say(doubt, "yellow")


def _doubt(repl: "Repl") -> str:
    """A word about a name that nobody knows here. It may be newer than the catalog, so it is tried all the same."""
    near = get_close_matches(repl.app.model, [id for id, _ in model_offers(repl, "")], n=3)
    meant = f"; did you mean {' or '.join(near)}?" if near else "; Tab after /model lists those that are."
    return f"{one_line(repl.app.model, 60)} is not in the catalog: its window is unknown{meant}"


def model_offers(repl: "Repl", begun: str) -> list[Offer]:
    return [(row.info.id, row.provider) for row in catalog.rows() if row.provider == repl.app.provider_name]


async def thinking(repl: "Repl", argument: str) -> None:
    if not argument:
        repl.say(f"{repl.app.config.agent.thinking}; /thinking {'|'.join(LEVELS)} changes it.")
        return
    if argument not in LEVELS:
        raise UsageError(f"/thinking takes {', '.join(LEVELS)}, not {argument[:40]!r}.")
    await _rewire(repl, thinking=argument)
    repl.say(f"Thinking: {argument}.", "dim")


async def strategy(repl: "Repl", argument: str) -> None:
    if not argument:
        repl.say(f"{repl.status.strategy}; /strategy {'|'.join(STRATEGIES)} or a Python file changes it.")
        return
    if argument not in STRATEGIES and not argument.endswith(".py"):
        raise UsageError(f"/strategy takes {', '.join(STRATEGIES)} or a Python file, not {argument[:40]!r}.")
    await _rewire(repl, context_strategy=argument)
    repl.say(f"Strategy: {argument}.", "dim")


async def _rewire(repl: "Repl", **flags: str) -> None:
    """Read the configuration anew with these flags, and wire the same timeline to it. Raises before anything changed.

    What the user allowed for this session stays allowed, and what was changed can still be undone.
    """
    args = copy.copy(repl.args)
    for name, value in flags.items():
        setattr(args, name, value)
    resolved = oneshot.read_config(args, repl.app.env)
    app = App(resolved, repl.app.options, env=repl.app.env, warn=repl.app.warn)
    old = repl.session
    session = app.session(old.journal.timeline)
    session.toolbox.rules = old.toolbox.rules
    session.toolbox.undo.take_over(old.toolbox.undo)
    repl.app, repl.args = app, args
    repl.use(session)
    await old.release()
