"""Serves ra to other agents as an MCP server on stdin and stdout, with three tools: ask, recall and sessions."""

import asyncio
import logging
from collections import defaultdict
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from ra.app import App
from ra.core.errors import RaError
from ra.core.events import RunEnded, ToolStarted
from ra.core.text import clean
from ra.core.version import __version__

_READS = ToolAnnotations(read_only_hint=True)

Session = Annotated[str, Field(description="Id of a session (or its beginning)")]


class McpTools:
    """The tools, over one App. Prompts to one session run in order; different sessions run concurrently."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def ask(
        self,
        prompt: Annotated[str, Field(description="The task or question, whole: the agent sees nothing else")],
        ctx: Context[Any, Any],
        session: Annotated[str, Field(description="Go on with this session; empty: a new one")] = "",
    ) -> CallToolResult:
        """Let the ra agent work on a task in its project, with its own tools and window, and give its answer."""
        if not prompt.strip():
            return _failed("The prompt is empty.")
        try:
            if not session:
                return await self._answer(prompt, None, ctx)
            async with self._turns[self._app.store.info(session).id]:
                return await self._answer(prompt, session, ctx)
        except RaError as error:
            return _failed(str(error))

    async def recall(
        self,
        query: Annotated[str, Field(description="Words to search for, or a reference such as #12, #12-18, ~3f9a…")],
        session: Annotated[str, Field(description="This session; empty: the project's latest")] = "",
    ) -> CallToolResult:
        """Search a session of ra, or read back exactly what stands at a reference, hidden by compaction or not."""
        if not session and self._app.store.latest(str(self._app.resolved.root)) is None:
            return _failed("This project has no session yet; ask something first.")
        try:
            opened = self._app.stored(session or None, hooks=False)
            try:
                return _told(await opened.recall(query))
            finally:
                await opened.close()
        except RaError as error:
            return _failed(str(error))

    async def sessions(
        self, limit: Annotated[int, Field(description="At most so many", ge=1, le=200)] = 20
    ) -> CallToolResult:
        """Sessions of this project, latest first: id, title, model, cost."""
        sessions = self._app.store.sessions(str(self._app.resolved.root), limit)
        rows = [
            {"id": s.id, "title": s.title, "model": s.model, "cost": None if s.dollars is None else float(s.dollars)}
            for s in sessions
        ]
        lines = [f"{row['id']}  {row['title'] or '–'}" for row in rows]
        return _told("\n".join(lines) or "No sessions yet.", sessions=rows)

    async def _answer(self, prompt: str, resume: str | None, ctx: Context[Any, Any]) -> CallToolResult:
        prepared = await self._app.prompts.prepare(prompt)
        session = self._app.open(resume=resume)
        ended: RunEnded | None = None
        steps = 0
        try:
            async for event in session.prompt(prepared.message):
                if isinstance(event, ToolStarted):
                    steps += 1
                    await ctx.report_progress(steps, message=event.call.name)
                elif isinstance(event, RunEnded):
                    ended = event
        finally:
            await session.close()
        assert ended is not None, "a run ends with RunEnded"
        facts = {
            "session": ended.session,
            "stop": ended.outcome,
            "cost": float(ended.dollars) if ended.dollars else None,
            "iterations": ended.iterations,
        }
        if ended.outcome != "answered":
            return _failed(ended.error or f"The run ended without an answer: {ended.outcome}.", **facts)
        return _told(ended.answer, f"(ra session {ended.session})", **facts)


def server(app: App) -> MCPServer[Any]:
    made: MCPServer[Any] = MCPServer(
        "ra",
        version=__version__,
        log_level="ERROR",
        instructions=f"An agent for the project in {app.resolved.root}. Calls that would ask are refused.",
    )
    tools = McpTools(app)
    made.add_tool(tools.ask, structured_output=False)
    made.add_tool(tools.recall, annotations=_READS, structured_output=False)
    made.add_tool(tools.sessions, annotations=_READS, structured_output=False)
    return made


def serve(app: App) -> None:
    """Serves until stdin ends. stdout is reserved for the protocol."""
    logging.getLogger("mcp").propagate = False
    asyncio.run(server(app).run_stdio_async())


def _told(*texts: str, **facts: Any) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=clean(text)) for text in texts], structured_content=facts or None)


def _failed(text: str, **facts: Any) -> CallToolResult:
    answer = _told(text, **facts)
    return answer.model_copy(update={"is_error": True})
