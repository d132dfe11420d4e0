"""`ra permissions`: explain the decision about a call, and list the rules behind it."""

import argparse
from typing import Annotated

import msgspec
import typer

from ra.cli import configuration, table
from ra.cli.commands import CommandContext
from ra.config.load import Resolved
from ra.config.options import Options
from ra.config.toolboxes import Toolboxes, allowed, rules
from ra.core.errors import UsageError, UserError
from ra.core.messages import ToolCall
from ra.core.text import visible
from ra.core.value import JsonObject
from ra.session.recipe import Notices
from ra.tools.policy.explain import Explanation
from ra.tools.policy.permissions import READERS, WRITERS
from ra.tools.policy.rules import BUILTIN

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Explain what the model may do, and list the rules.")


@app.command()
def explain(
    ctx: typer.Context,
    subject: Annotated[str, typer.Argument(metavar="COMMAND|PATH|URL|JSON", help="what the tool is called with")],
    tool: Annotated[
        str, typer.Option("--tool", "-t", help="the tool: Bash, Write, WebFetch, mcp__SERVER__TOOL, …")
    ] = "Bash",
    outside: Annotated[bool, typer.Option("--outside", help="the command asks to leave the sandbox")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Explain whether a tool call would run, ask or be refused, and why. Runs nothing."""
    call: CommandContext = ctx.obj
    options = configuration.options(call.args, call.streams)
    toolboxes = Toolboxes(call.resolved, options, call.env, Notices(_unheard))
    tool_call = ToolCall("", _known(tool), _args(tool, subject, outside=outside))
    view, sandbox = toolboxes.explain(tool_call)
    if as_json:
        call.streams.out(msgspec.json.encode(view).decode() + "\n")
        return
    call.streams.out(visible(_shown(tool_call, view, sandbox=sandbox)))


@app.command("list")
def list_rules(ctx: typer.Context, as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False) -> None:
    """List the rules and where each comes from. Deny wins over ask, and ask over allow."""
    call: CommandContext = ctx.obj
    rows = rule_rows(call.resolved, call.args, configuration.options(call.args, call.streams))
    if as_json:
        objects = [dict(zip(("action", "rule", "origin"), row, strict=True)) for row in rows]
        call.streams.out(msgspec.json.encode(objects).decode() + "\n")
        return
    if rows:
        table.show(call.streams, ["action", "rule", "from"], rows)
    else:
        call.streams.err("You have set no rules. `ra permissions explain 'command'` shows what happens without any.\n")


def rule_rows(resolved: Resolved, args: argparse.Namespace, options: Options) -> list[list[str]]:
    """Each rule with its action and its origin."""
    approved = list(allowed(resolved).rules(resolved.root))
    origin = str(resolved.origins.get(("agent", "permissions", "rules"), "the configuration"))
    rows = []
    for rule in rules(resolved, options):
        by_flag = str(rule) in (args.deny if rule.action == "deny" else args.allow)
        who = f"--{rule.action}" if by_flag else "you, for this project" if str(rule) in approved else origin
        rows.append([rule.action, str(rule), who])
    return rows


@app.command()
def forget(
    ctx: typer.Context, rule: Annotated[str, typer.Argument(help="the rule, as `ra permissions list` shows it")]
) -> None:
    """Remove a rule that you allowed for this project when ra asked."""
    call: CommandContext = ctx.obj
    if not allowed(call.resolved).remove(call.resolved.root, rule):
        raise UserError(f"{rule!r} was not allowed here when asked; `ra permissions list` shows what was.")
    call.streams.err("Removed. ra will ask for it again.\n")


def _unheard(text: str) -> None:
    """Discards the warning about a rule without effect, which runs report."""


def _known(tool: str) -> str:
    spelling = next((name for name in BUILTIN if name.casefold() == tool.casefold() and name != tool), "")
    if spelling:
        raise UsageError(f"No tool is called {tool!r}; did you mean {spelling}?")
    return tool


def _args(tool: str, subject: str, *, outside: bool) -> JsonObject:
    if tool == "Bash":
        return {"command": subject, **({"outside": True} if outside else {})}
    if tool in READERS + WRITERS:
        return {"path": subject}
    if tool == "WebFetch":
        return {"url": subject}
    try:
        return msgspec.json.decode(subject, type=dict)
    except msgspec.MsgspecError as error:
        raise UsageError(f'For {tool} give the arguments as JSON, such as \'{{"name": "value"}}\'.') from error


def _shown(call: ToolCall, view: Explanation, *, sandbox: str) -> str:
    lines = [f"{'may run' if part.nested else 'runs':<9} {part.text}\n{'':<12}{part.words}" for part in view.parts]
    if view.unclear:
        lines.append(f"{'unclear':<9} {view.unclear}: no rule with a pattern allows it")
    if call.name == "Bash":
        lines.append(f"{'sandbox':<9} {sandbox}")
    match view.decision:
        case "allow":
            lines.append(f"{'allowed':<9} {view.reason}")
            if call.name == "Bash":
                lines.append(f"{'where':<9} {_where(view)}")
        case "ask":
            lines.append(f"{'asks':<9} {view.reason}; where nobody can be asked it is refused")
            if view.rule:
                quoted = view.rule.replace("'", "'\\''")
                lines.append(f"{'to allow':<9} --allow '{quoted}'")
        case "deny":
            lines.append(f"{'denied':<9} {view.reason}")
    return "\n".join(lines) + "\n"


def _where(view: Explanation) -> str:
    if view.outside:
        return "outside the sandbox"
    return "in the sandbox, with the network" if view.network else "in the sandbox, without network"
