"""`ra serve` (and `agentx daemon`): serve agents over HTTP."""

from functools import partial
from typing import Annotated, Literal

import msgspec
import typer

from ra.app import App
from ra.cli import configuration
from ra.cli.commands import CommandContext
from ra.cli.trust_prompt import settle
from ra.config.toolboxes import rules

app = typer.Typer(add_completion=False, help="Serve agents over HTTP.")


@app.command()
def serve(
    ctx: typer.Context,
    host: Annotated[
        str | None, typer.Option("--host", help="the address to listen on (default: app.http.host, else 127.0.0.1)")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            "-p",
            min=0,
            max=65535,
            help="the port to listen on (default: app.http.port, else 18800); 0: any free one",
        ),
    ] = None,
    token: Annotated[
        str,
        typer.Option(
            "--token",
            envvar="RA_SERVE_TOKEN",
            help="the token that clients must send; needed for any address but loopback",
        ),
    ] = "",
    edits: Annotated[
        Literal["auto", "off"] | None,
        typer.Option("--edits", help="changes to files: make them (auto) or refuse them (off, the default)"),
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="the same as --edits auto")] = False,
    allow: Annotated[
        list[str] | None, typer.Option("--allow", help="allow calls, such as 'Bash(git diff:*)'; repeatable")
    ] = None,
    deny: Annotated[
        list[str] | None, typer.Option("--deny", help="deny calls, even those that another rule allows; repeatable")
    ] = None,
    grace: Annotated[
        float, typer.Option("--grace", min=0, help="seconds that running tasks get to end after SIGTERM")
    ] = 8.0,
    workers: Annotated[
        int,
        typer.Option(
            "--workers", min=1, max=64, help="number of processes; more than one needs app.store: postgresql://…"
        ),
    ] = 1,
    log_format: Annotated[
        Literal["text", "json"], typer.Option("--log-format", help="format of the log on stderr")
    ] = "text",
) -> int:
    """Serve agents over HTTP until SIGTERM or Ctrl-C. Tool calls that would ask are refused."""
    # Start-up time: Starlette and uvicorn, only for this command.
    from ra.server.agents import Agents
    from ra.server.daemon import ListenAddress
    from ra.server.daemon import serve as run
    from ra.server.log import Log
    from ra.server.supervisor import Inherited
    from ra.web.server import SessionPage
    from ra.web.sessions import ShownSessions

    call: CommandContext = ctx.obj
    read = partial(call.resolve, trusting=call.args.trust)
    base = settle(read(None), call.args, call.streams, lambda **_: read(None), terminal=False)
    flagged = configuration.options(call.args, None)
    options = msgspec.structs.replace(
        flagged,
        allow=(*flagged.allow, *(allow or ())),
        deny=(*flagged.deny, *(deny or ())),
        edits=edits or ("auto" if write else flagged.edits),
        served=True,
    )
    log = Log(log_format, base.config.app.log_level)
    # Report missing or misspelt settings now, not to the first client.
    served = App(base, options, env=call.env, warn=log.warn)
    served.check()
    rules(base, options)
    agents = Agents(read, options, env=call.env, log=log)
    http = base.config.app.http
    place = ListenAddress(host or http.host, http.port if port is None else port, token, grace, workers)
    page = SessionPage(ShownSessions(served))
    inherited = Inherited.read(call.env)
    return run(place, agents, log, started=lambda url: call.streams.out(f"{url}\n"), page=page, inherited=inherited)
