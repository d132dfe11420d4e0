"""`ra agent`: list named agents and change their settings."""

from pathlib import Path
from typing import Annotated

import typer

from ra.cli import table
from ra.cli.commands import CommandContext
from ra.config import paths
from ra.config.edit import change
from ra.config.show import shown
from ra.context.settings import STRATEGIES
from ra.core.errors import UsageError
from ra.session.settings import NO_AGENTS, check_strategy

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="List, show and change the named agents of the configuration."
)

HEADS = ("AGENT", "MODEL", "STRATEGY", "HANDLER", "DESCRIPTION")


@app.command("list")
def list_agents(ctx: typer.Context) -> None:
    """List the named agents."""
    call: CommandContext = ctx.obj
    agents = call.resolved.config.agents
    if not agents:
        call.streams.err("There are no named agents; add one under agents: in ra.yaml.\n")
        return
    rows = []
    for name in sorted(agents):
        config = call.resolve(name).config
        settings = agents[name]
        rows.append(
            (
                name,
                config.agent.model or "default",
                config.session.context_strategy or "default",
                str(settings.get("handler") or ""),
                str(settings.get("description") or ""),
            )
        )
    table.show(call.streams, HEADS, rows)


@app.command()
def show(ctx: typer.Context, agent: Annotated[str, typer.Argument(metavar="ID", help="the name of an agent")]) -> None:
    """Show the configuration of one agent, and where each value comes from."""
    call: CommandContext = ctx.obj
    call.streams.out(shown(call.resolve(agent)))


@app.command()
def capability(
    ctx: typer.Context,
    agent: Annotated[str, typer.Argument(metavar="ID", help="the name of an agent")],
    context_strategy: Annotated[
        str | None,
        typer.Option(
            "--context-strategy",
            metavar="NAME",
            help=f"{', '.join(STRATEGIES)} or a .py file; - goes back to the default",
        ),
    ] = None,
) -> None:
    """Change an agent in your own configuration file. Comments and order of the file stay."""
    call: CommandContext = ctx.obj
    agents = call.resolved.config.agents
    if agent not in agents:
        raise UsageError(f"No agent is named {agent!r}. Known agents: {', '.join(sorted(agents)) or NO_AGENTS}.")
    if context_strategy is None:
        raise UsageError(f"Say what to change: --context-strategy {'|'.join(STRATEGIES)}, or - to clear it.")
    value = None if context_strategy == "-" else check_strategy(context_strategy, place="--context-strategy")
    if value is not None and value.endswith(".py"):
        value = str((Path.cwd() / value).resolve())
    file = paths.user_file(call.env)
    changed = change(file, ("agents", agent, "contextStrategy"), value)
    word = f"{'' if changed else 'already '}{value or ('cleared' if changed else 'not set')}"
    call.streams.err(f"{agent}: contextStrategy {word} in {file}.\n")
    resolved = call.resolve(agent)
    now = resolved.config.session.context_strategy
    if now != value:
        origin = resolved.origins["session", "contextStrategy"]
        call.streams.err(f"But {origin} sets {now!r}, which wins; see ra agent show {agent}.\n")
