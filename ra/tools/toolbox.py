"""Runs the calls to a session's tools: validate → decide → ask → run → Done."""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ra.core.asking import Asker
from ra.core.errors import HookFailed, RaError, Stopped
from ra.core.events import Event, FileChange, ToolOutput, Warned
from ra.core.facts import Fact
from ra.core.functions import Emit
from ra.core.messages import Text, ToolCall, ToolResult
from ra.core.model import ToolSpec
from ra.core.value import Value
from ra.tools.approvals import refuse
from ra.tools.options import ToolOptions
from ra.tools.policy.paths import Project, one_answer, shown
from ra.tools.policy.permissions import Allow, Ask, Deny
from ra.tools.policy.rules import Rule
from ra.tools.sandbox.box import Access, Box
from ra.tools.settings import Edits
from ra.tools.tool import Mistake, Output, Tool, read_args, text_output, usage
from ra.tools.toolset import Toolset, builtin_tools
from ra.tools.undo import Undo
from ra.tools.workspace import Workspace

if TYPE_CHECKING:
    from ra.tools.mcp.client import ServerClient
    from ra.tools.mcp.servers import Servers


class Done(Value, frozen=True):
    """The outcome of a call. The loop records the result, then the facts."""

    result: ToolResult
    facts: tuple[Fact, ...] = ()
    change: FileChange | None = None


class Toolbox:
    """The tools of one session, working in its workspace. `close` ends everything that runs in the background.

    `chosen` replaces the usual tools for a run. `client` answers the questions of MCP servers.
    """

    def __init__(
        self,
        workspace: Workspace,
        toolset: Toolset,
        *,
        client: "ServerClient | None" = None,
        chosen: Mapping[str, Tool] | None = None,
    ) -> None:
        self._workspace = workspace
        self._toolset = toolset
        self._client = client
        self._chosen = chosen

    # --- the available tools ---

    @property
    def _by_name(self) -> Mapping[str, Tool]:
        return self._toolset.usual if self._chosen is None else self._chosen

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(self._by_name.values())

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The specifications of the listed tools, for the model."""
        return tuple(tool.spec for tool in self.tools if tool.listed)

    @property
    def known(self) -> frozenset[str]:
        """Names that a rule may mention, including those of disabled tools."""
        return self._toolset.known

    def refresh(self) -> bool:
        """Adopts the present offer of the MCP servers. Returns whether requests must list other tools."""
        return self._chosen is None and self._toolset.refresh()

    def offering(self, tools: Sequence[Tool]) -> "Toolbox":
        """A toolbox with exactly these tools, which shares everything else with this one.

        The tools are the session's, or the caller's, which are as free as custom tools. If the session has no tools,
        neither has the new toolbox. Only one of the toolboxes that share needs to be closed.
        """
        if not self._toolset.offered:
            return self
        return Toolbox(self._workspace, self._toolset, client=self._client, chosen=self._toolset.pick(tools))

    # --- permissions ---

    @property
    def rules(self) -> tuple[Rule, ...]:
        return self._workspace.approvals.rules

    @property
    def edits(self) -> Edits:
        """The present permission for the file tools to write in the project."""
        return self._workspace.approvals.edits

    def set_edits(self, edits: Edits) -> None:
        """Sets `edits` for the rest of the session. Raises UsageError if the session was started with edits off."""
        self._workspace.approvals.set_edits(edits)

    def deny(self, names: Iterable[str]) -> None:
        """Refuses these tools from now on, whatever other rules say."""
        self._workspace.approvals.deny(names)

    def project_for(self, tool: str) -> Project:
        """The project as a call of this tool finds it now."""
        brought = () if self._chosen is None else tuple(set(self._chosen) - set(self._toolset.usual))
        return msgspec.structs.replace(self._workspace.project_for(tool), free=(*self._toolset.free, *brought))

    # --- state of the session ---

    @property
    def undo(self) -> Undo:
        return self._workspace.undo

    @property
    def box(self) -> Box | None:
        """The sandbox of Bash, detected and tested on first use."""
        return self._workspace.shell.box

    def take_over(self, other: "Toolbox") -> None:
        """Takes over the permissions and the undo history of the session's previous toolbox."""
        self._workspace.approvals.take_over(other._workspace.approvals)
        self.undo.take_over(other.undo)

    async def close(self) -> list[str]:
        """Releases everything. Returns a line for each ended job that the user should know about."""
        notes = await self._workspace.shell.close()
        await self._toolset.close()
        return notes

    # --- calls ---

    def reads_only(self, call: ToolCall) -> bool:
        """Whether the call may run concurrently with others."""
        tool = self._by_name.get(self._meant(call).name)
        return bool(tool and tool.reads_only)

    def polls(self, call: ToolCall) -> bool:
        """Whether the call may be repeated unchanged, because it asks what happened since."""
        tool = self._by_name.get(call.name)
        return bool(tool and tool.polls)

    async def run(self, call: ToolCall, *, ask: Asker | None = None, emit: Emit | None = None) -> Done:
        """Runs a call. Every failure of a tool, even a defect in it, becomes an error result: no call ends a run.

        Raises Stopped and HookFailed, which concern the run.
        """
        emit = emit or _unheard
        try:
            with one_answer():
                output = await self._run(call, ask, emit)
        except Mistake as mistake:
            output = text_output(str(mistake), is_error=True)
        except OSError as error:
            output = text_output(f"{call.name} failed: {error.strerror or error}.", is_error=True)
        except MemoryError:
            output = text_output(f"{call.name} ran out of memory. Ask for less at a time.", is_error=True)
        except (Stopped, HookFailed):
            raise
        except RaError as error:
            output = text_output(f"{call.name} failed: {error}", is_error=True)
        except Exception as error:  # noqa: BLE001 - the run continues, and the model and the user see the error
            trouble = f"{call.name} failed unexpectedly: {type(error).__name__}: {shown(str(error))[:500]}"
            emit(Warned(f"{trouble}. The run goes on."))
            output = text_output(f"{trouble}. Go on without it, or call it differently.", is_error=True)
        result = ToolResult(call.id, call.name, output.content, output.is_error)
        return Done(result, output.facts, output.change)

    async def _run(self, call: ToolCall, ask: Asker | None, emit: Emit) -> Output:
        tool, args, call, note = self._check(self._meant(call))
        project = self.project_for(call.name)
        approvals = self._workspace.approvals
        decision = approvals.decide(call, project)
        if isinstance(decision, Ask) and ask:
            consent = await approvals.ask(call, decision, project, ask)
            if consent.edited:
                changed = msgspec.json.encode(consent.call.args).decode()
                note = f"{note} (The user changed the call to {changed}.)".strip()
                tool, args, call, _ = self._check(consent.call)
                decision = approvals.decide(call, project)
            if not isinstance(decision, Deny):
                boxed = project.boxed or project.trouble
                outside = call.name == "Bash" and (not boxed or call.args.get("outside") is True)
                git = isinstance(decision, Ask) and decision.git
                decision = Allow("the user said yes", outside=outside, git=git)
        if not isinstance(decision, Allow):
            raise refuse(call, decision, project, emit)
        limit_s = None if tool.own_timeout else self._workspace.timeout_s
        say = _Heard(call.id, emit)
        try:
            output: str | Output
            async with asyncio.timeout(limit_s) as deadline:
                with self._client.working(call, deadline, ask, emit) if self._client else contextlib.nullcontext():
                    if call.name == "Bash":
                        access = Access(decision.outside, decision.network, decision.git)
                        output = await self._workspace.shell.run(args, say, access)
                    else:
                        output = await tool.run(args, say)
        except TimeoutError as error:
            raise Mistake(f"{call.name} did not end within {limit_s:g} s.") from error
        if isinstance(output, str):
            output = text_output(output)
        return msgspec.structs.replace(output, content=(*output.content, Text(note))) if note else output

    def _meant(self, call: ToolCall) -> ToolCall:
        """The call that really runs: the tool may pass it on to another."""
        tool = self._by_name.get(call.name)
        passed_on = tool.passes_on(call.args) if tool and tool.passes_on and not call.broken else None
        return ToolCall(call.id, *passed_on) if passed_on else call

    def _check(self, call: ToolCall) -> tuple[Tool, Any, ToolCall, str]:
        """The tool, its arguments, the call as it will be checked and run, and a note on ignored arguments."""
        tool = self._by_name.get(call.name)
        if tool is None:
            similar_name = next((name for name in self._by_name if name.casefold() == call.name.casefold()), "")
            hint = f" Did you mean {similar_name}?" if similar_name else ""
            listed = ", ".join(name for name, tool in self._by_name.items() if tool.listed)
            raise Mistake(f"There is no tool {shown(call.name)!r}.{hint} Tools: {listed}.")
        if call.broken:
            raise Mistake(
                f"The arguments are not a JSON object, or nest too deeply: {call.broken[:200]!r}. {usage(tool.spec)} "
                "Nothing was run."
            )
        args, note = read_args(tool, call.args)
        checked = msgspec.to_builtins(args) if tool.args else call.args
        return tool, args, ToolCall(call.id, call.name, checked), note


def open_toolbox(
    workspace: Workspace,
    custom: Sequence[Tool] = (),
    *,
    options: Mapping[str, ToolOptions] | None = None,
    offered: bool = True,
    servers: "Servers | None" = None,
) -> Toolbox:
    """A toolbox with the built-in tools, the `custom` ones and those of MCP servers; empty unless `offered`."""
    client = None
    if servers:
        from ra.tools.mcp.client import ServerClient  # start-up time: only with MCP servers

        client = ServerClient(workspace)
    builtin = builtin_tools(workspace)
    toolset = Toolset(builtin, custom, options=options or {}, offered=offered, servers=servers, client=client)
    return Toolbox(workspace, toolset, client=client)


class _Heard:
    """Emits the output that a call shows while it is running."""

    def __init__(self, call: str, emit: Emit) -> None:
        self._call = call
        self._emit = emit

    def __call__(self, text: str) -> None:
        self._emit(ToolOutput(self._call, text))


def _unheard(event: Event) -> None:
    """Discards the event: nobody listens."""
