"""`ra context`: what does the model see, token by token?"""

from typing import Annotated

import msgspec
import typer

from ra.cli.commands import Call
from ra.cli.context_view import show_report
from ra.cli.safe import visible
from ra.cli.table import money
from ra.core.model import Usage
from ra.reading import Reading

app = typer.Typer(add_completion=False, help="What the next request holds, by source.")


@app.command()
def context(
    ctx: typer.Context,
    what: Annotated[str, typer.Argument(metavar="[SESSION|show|diff]", help="a session; or what to show of it")] = "",
    session: Annotated[str, typer.Option("--session", help="this session instead of the latest")] = "",
    at: Annotated[int | None, typer.Option("--at", min=1, help="as it was at this position of the timeline")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="as JSON")] = False,
) -> None:
    """The exact composition of the next request, or of a past one.

    `show` prints the request itself, as the provider's JSON. `diff` names the first byte at which the last request
    left the cached prefix, the source it lies in, and what that cost.
    """
    call: Call = ctx.obj
    chosen = session or (what if what not in ("show", "diff") else "")
    reading = Reading(call.resolved, chosen or None, at=at)
    if what == "diff":
        _diff(reading, call, as_json=as_json)
        return
    request = reading.next_request().request
    if what == "show":
        text = msgspec.json.format(msgspec.json.encode(reading.body(request)), indent=2).decode() + "\n"
        call.streams.out(visible(text) if call.streams.out_tty else text)
        return
    show_report(reading.report(request), call.streams, as_json=as_json)


def _diff(reading: Reading, call: Call, *, as_json: bool) -> None:
    found = reading.difference()
    if as_json:
        call.streams.out(msgspec.json.encode(found).decode() + "\n")
        return
    if found is None:
        call.streams.out("The last request extends the one before it byte for byte: the whole prefix could be read.\n")
        return
    model = reading.configured.model
    new = reading.price(model, Usage(cache_write=found.anew))
    read = reading.price(model, Usage(cache_read=found.anew))
    cost = f", {money(new - read)} more than reading them" if new is not None and read is not None else ""
    call.streams.out(
        f"The prefix broke at byte {found.byte:,}, in {found.source}: "
        f"{found.anew:,} tokens had to be sent anew{cost}.\n"
        f"- {visible(found.old)}\n+ {visible(found.new)}\n"
    )
