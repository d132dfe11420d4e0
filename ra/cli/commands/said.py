"""`ra said`: list the rules, values and decisions that the user stated, and whether the model still sees them."""

import asyncio
from typing import Annotated

import msgspec
import typer

from ra.cli import table
from ra.cli.commands import CommandContext
from ra.context.report import Statement
from ra.core.text import visible_line

LONGEST = 300  # characters of one statement in the table

app = typer.Typer(add_completion=False, help="List your rules and decisions, and whether the model still sees them.")


@app.command()
def said(
    ctx: typer.Context,
    session: Annotated[str, typer.Option("--session", help="use this session instead of the latest")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """List your rules, values and decisions, oldest first: where you said them, what replaced them, and whether they
    are in the next request. `ra recall "#N"` reads the message at position N.
    """
    call: CommandContext = ctx.obj
    statements = asyncio.run(_statements(call, session))
    if as_json:
        call.streams.out(msgspec.json.encode(statements).decode() + "\n")
    elif statements:
        table.show(call.streams, HEADS, rows(statements))
    else:
        call.streams.err("This session has no rules or decisions of yours yet.\n")


HEADS = ["at", "said", "next request", "replaced"]


def rows(statements: list[Statement]) -> list[list[str]]:
    return [
        [
            f"#{statement.at}",
            visible_line(statement.text, LONGEST),
            "yes" if statement.visible else "no",
            f"by #{statement.replaced_at}" if statement.replaced_at else "",
        ]
        for statement in statements
    ]


async def _statements(call: CommandContext, session_id: str) -> list[Statement]:
    session = call.app().stored(session_id or None)
    try:
        return await session.said()
    finally:
        await session.close()
