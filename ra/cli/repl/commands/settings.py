"""Commands that change the recipe of a session: model, thinking and strategy."""

import copy
from typing import get_args

from ra.app import App
from ra.cli import configuration
from ra.cli.repl.core import Repl
from ra.cli.repl.offers import Offer
from ra.cli.repl.terminal import Choice
from ra.cli.usable_models import usable_models
from ra.context.settings import STRATEGIES
from ra.core.errors import UsageError
from ra.core.model import Level
from ra.core.text import visible_line
from ra.providers import catalog
from ra.providers.model_choice import ANY_NAME, FAMILIES, UnknownModel, newest
from ra.tools.settings import Edits

EDITS: tuple[Edits, ...] = ("ask", "auto", "off")
MEANINGS: dict[Edits, str] = {
    "ask": "You are asked before a file is changed.",
    "auto": "Files in the project are changed without asking; /undo reverts the changes of the last turn.",
    "off": "No file is changed.",
}

LEVELS: tuple[str, ...] = get_args(Level)


async def model(repl: Repl, argument: str) -> None:
    """Lists and searches models, or switches to one, whichever provider has it."""
    recipe = repl.session.recipe
    if not argument:
        repl.say(f"{recipe.model} ({recipe.provider}) answers now.")
        argument = await _pick_model(repl)
        if not argument:
            return
    name, *provider = argument.split()
    if len(provider) > 1:
        raise UsageError("Write /model NAME, /model PROVIDER/NAME, or /model alone for a list.")
    try:
        await _use_model(repl, name, provider[0] if provider else None)
    except UnknownModel as error:
        question = f"There is no model {visible_line(error.name, 60)!r} in the catalog. Use {error.suggestion}?"
        if await repl.terminal.choose(question, {"n": "no", "y": "yes"}) != "y":
            repl.say(f"Nothing has changed. To use the name as it is: /model PROVIDER/{error.name}", "dim")
            return
        await _use_model(repl, error.suggestion, None)
    recipe = repl.session.recipe
    repl.say(f"{recipe.model} ({recipe.provider}) answers from now on. Its cache starts cold.", "dim")
    if repl.session.window is None:
        repl.say(f"{visible_line(recipe.model, 60)} is not in the catalog: its window is unknown.", "yellow")


async def _use_model(repl: Repl, name: str, provider: str | None) -> None:
    """The name decides the provider, unless that is a server of the user's own, which has its own model names."""
    in_force = repl.args.provider
    await _change(repl, model=name, provider=provider or (in_force if in_force in ANY_NAME else None))


async def _pick_model(repl: Repl) -> str:
    short = {newest(name): name for name in reversed(FAMILIES)}
    rows = usable_models(repl.app, repl.session.recipe.provider)
    choices = []
    for row in rows:
        price = repl.app.prices.row(row.info.id, row.provider)
        rates = f"${price.rates.input:g} in, ${price.rates.output:g} out" if price else "no price known"
        window = f"{row.info.window:,}" if row.info.window else "?"
        name = f"{row.info.id} ({short[row.info.id]})" if row.info.id in short else row.info.id
        preview = f"window {window} · {rates} per million tokens · {row.provider}"
        choices.append(Choice(f"{name:<34} {row.provider:<12} {window:>10}  {rates}", preview=preview))
    picked = await repl.terminal.pick("Which model?", choices, {})
    return f"{rows[picked.row].provider}/{rows[picked.row].info.id}" if picked is not None else ""


def model_offers(repl: Repl, begun: str) -> list[Offer]:
    return [*((name, newest(name)) for name in FAMILIES), *((row.info.id, row.provider) for row in catalog.rows())]


async def thinking(repl: Repl, argument: str) -> None:
    if not argument:
        repl.say(f"{repl.session.recipe.thinking}; /thinking {'|'.join(LEVELS)} changes it.")
        return
    if argument not in LEVELS:
        raise UsageError(f"/thinking takes {', '.join(LEVELS)}, not {argument[:40]!r}.")
    await _change(repl, thinking=argument)
    repl.say(f"Thinking: {argument}.", "dim")


async def edits(repl: Repl, argument: str) -> None:
    """Decides about changes to files: ask, make them at once, or refuse."""
    session = repl.session
    if not argument:
        repl.say(
            f"Edits: {session.edits}. {MEANINGS[session.edits]} /edits {'|'.join(EDITS)}, or Shift-Tab, changes it."
        )
        return
    named = next((name for name in EDITS if name == argument), None)
    if argument != "next" and named is None:
        raise UsageError(f"/edits takes {', '.join(EDITS)}, not {visible_line(argument, 40)!r}.")
    session.set_edits(named or EDITS[(EDITS.index(session.edits) + 1) % len(EDITS)])
    repl.status.edits = session.edits
    if argument != "next":
        repl.say(f"Edits: {session.edits}. {MEANINGS[session.edits]}", "dim")
    repl.terminal.draw()


async def strategy(repl: Repl, argument: str) -> None:
    if not argument:
        repl.say(f"{repl.status.strategy}; /strategy {'|'.join(STRATEGIES)} or a Python file changes it.")
        return
    if argument not in STRATEGIES and not argument.endswith(".py"):
        raise UsageError(f"/strategy takes {', '.join(STRATEGIES)} or a Python file, not {argument[:40]!r}.")
    await _change(repl, context_strategy=argument)
    repl.say(f"Strategy: {argument}.", "dim")


async def _change(repl: Repl, **flags: str | None) -> None:
    """Resolves the configuration again with these flags, and continues with the resulting recipe.

    Raises before anything has changed.
    """
    args = copy.copy(repl.args)
    for name, value in flags.items():
        setattr(args, name, value)
    resolved = configuration.read_config(args, repl.app.env)
    app = App(resolved, repl.app.options, env=repl.app.env, warn=repl.warn)
    app.check()
    await repl.session.use(app.recipe)
    repl.app, repl.args = app, args
    repl.use(repl.session)
