"""`ra acp`: an agent that editors drive through the Agent Client Protocol."""

import copy
import os
import stat
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
import typer

from ra.app import App
from ra.cli import configuration
from ra.cli.commands import CommandContext
from ra.cli.trust_prompt import settle
from ra.cli.usable_models import usable_models
from ra.core.errors import UsageError
from ra.tools.settings import McpServerSettings

app = typer.Typer(add_completion=False, help="Let an editor drive ra: the Agent Client Protocol on stdin and stdout.")


@app.command()
def serve(ctx: typer.Context) -> None:
    """Run as an agent for editors such as Zed, on stdin and stdout (Agent Client Protocol).

    Where ra would ask on a terminal, the editor asks you. Put the flags of a run before the command: ra -m opus acp.
    """
    if not all(_is_pipe(number) for number in (0, 1)):
        raise UsageError("ra acp talks to an editor over pipes. Name it in the editor's settings as an agent: ra acp")
    from ra.server.acp import serve as run  # start-up time: pydantic and the protocol

    run(EditorProjects(ctx.obj))


def _is_pipe(number: int) -> bool:
    try:
        mode = os.fstat(number).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(number)


class EditorProjects:
    """Opens a folder that an editor names, as the command line would."""

    def __init__(self, call: CommandContext) -> None:
        self._call = call

    def app(self, cwd: Path, servers: Sequence[McpServerSettings], chosen: Mapping[str, str]) -> App:
        call = self._call
        args = copy.copy(call.args)
        for flag, value in chosen.items():
            setattr(args, flag, value)
        again = partial(configuration.read_config, args, call.env, cwd=cwd)
        resolved = settle(again(), args, call.streams, again, terminal=False)
        if servers:
            agent = resolved.config.agent
            names = {server.name for server in servers}
            other_servers = tuple(server for server in agent.mcp_servers if server.name not in names)
            agent = msgspec.structs.replace(agent, mcp_servers=(*other_servers, *servers))
            config = msgspec.structs.replace(resolved.config, agent=agent)
            resolved = msgspec.structs.replace(resolved, config=config)
        options = msgspec.structs.replace(configuration.options(args, None), terminal=True)
        opener = App(resolved, options, env=call.env, warn=call.warn)
        opener.check()
        return opener

    def models(self, app: App) -> Sequence[str]:
        rows = usable_models(app, app.recipe.provider)
        return [f"{row.provider}/{row.info.id}" for row in rows]
