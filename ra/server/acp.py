"""Lets editors drive ra, as an agent of the Agent Client Protocol on stdin and stdout."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import acp
from acp import schema
from acp.exceptions import RequestError

from ra.app import App
from ra.core.asking import Answer, Question
from ra.core.errors import RaError
from ra.core.events import Outcome, RunEnded
from ra.core.facts import Said
from ra.core.messages import Message
from ra.core.text import clean
from ra.core.version import __version__
from ra.server import acp_prompts, acp_updates
from ra.server.acp_options import MODES, modes, options
from ra.server.acp_prompts import wrong
from ra.server.acp_transport import EditorLines
from ra.session.run import Run
from ra.session.session import Session
from ra.tools.settings import McpServerSettings

STOPS: dict[Outcome, schema.StopReason] = {
    "answered": "end_turn",
    "empty": "end_turn",
    "unfit": "end_turn",
    "limit": "max_turn_requests",
    "refused": "refusal",
    "interrupted": "cancelled",
}
_OPTIONS = [
    schema.PermissionOption(option_id="once", name="Allow", kind="allow_once"),
    schema.PermissionOption(option_id="session", name="Allow for this session", kind="allow_always"),
    schema.PermissionOption(option_id="no", name="Refuse", kind="reject_once"),
]


class Projects(Protocol):
    """Opens a folder as the command line would. The command line belongs to a higher layer than this package."""

    def app(self, cwd: Path, servers: Sequence[McpServerSettings], chosen: Mapping[str, str]) -> App:
        """`chosen` are the flags of a run, such as the model. Raises UserError and Refused."""
        ...

    def models(self, app: App) -> Sequence[str]:
        """The available models, as `provider/model`."""
        ...


class Conversation:
    """A session that an editor has open."""

    def __init__(self, app: App, session: Session, client: acp.Client, servers: Sequence[McpServerSettings]) -> None:
        self.app = app
        self.session = session
        self.servers = servers
        self.chosen: dict[str, str] = {}
        self._client = client
        self._run: Run | None = None

    @property
    def cwd(self) -> Path:
        return self.app.resolved.cwd

    @property
    def is_busy(self) -> bool:
        return self._run is not None

    async def answer(self, message: Message) -> RunEnded:
        run = self._run = self.session.prompt(message, ask=self._ask)
        try:
            async for event in run:
                for update in acp_updates.of_event(event, self.cwd):
                    await self._client.session_update(self.session.id, update)
        finally:
            self._run = None
        assert run.ended is not None, "a run ends with RunEnded"
        return run.ended

    async def choose(self, app: App, chosen: dict[str, str]) -> None:
        """Continues with the configuration for another model or effort. Raises UserError."""
        await self.session.use(app.recipe)
        self.app, self.chosen = app, chosen

    def interrupt(self) -> None:
        if self._run is not None:
            self._run.interrupt()

    async def replay(self) -> None:
        """Sends the editor the conversation of a session that it loads."""
        for event in list(self.session.events()):
            if isinstance(event.fact, Said):
                for update in acp_updates.of_message(event.fact.message, self.cwd):
                    await self._client.session_update(self.session.id, update)

    async def offer_commands(self) -> None:
        commands = [
            schema.AvailableCommand(
                name=name,
                description=clean(what),
                input=schema.AvailableCommandInput(root=schema.UnstructuredCommandInput(hint="arguments")),
            )
            for name, what in self.app.files.offers
        ]
        if commands:
            await self._client.session_update(self.session.id, acp.helpers.update_available_commands(commands))

    async def _ask(self, question: Question) -> Answer:
        if question.form:
            return Answer("no")  # the protocol has permissions only, and no form for an MCP server's questions
        update = acp_updates.asked(question.call, question.reason, self.cwd)
        response = await self._client.request_permission(self.session.id, update, _OPTIONS)
        outcome = response.outcome
        if isinstance(outcome, schema.AllowedOutcome) and outcome.option_id in ("once", "session"):
            return Answer("once" if outcome.option_id == "once" else "session")
        return Answer("no")


class EditorAgent:
    """The methods that an editor calls. Errors that the user can fix are reported as errors of the request."""

    def __init__(self, projects: Projects) -> None:
        self._projects = projects
        self._client: acp.Client | None = None
        self._conversations: dict[str, Conversation] = {}
        self._aside: set[asyncio.Task[None]] = set()

    def on_connect(self, conn: acp.Client) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> schema.InitializeResponse:
        return schema.InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,  # the only version; an editor that speaks another one hangs up
            agent_info=schema.Implementation(name="ra", title="ra", version=__version__),
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(image=True, embedded_context=True),
                mcp_capabilities=schema.McpCapabilities(http=True, sse=True),
                session_capabilities=schema.SessionCapabilities(list=schema.SessionListCapabilities()),
            ),
            auth_methods=[],
        )

    async def authenticate(self, method_id: str, **_: Any) -> schema.AuthenticateResponse:
        """The user has keys already: there is nothing to sign in to."""
        return schema.AuthenticateResponse()

    async def new_session(self, cwd: str, mcp_servers: list[Any] | None = None, **_: Any) -> schema.NewSessionResponse:
        conversation = self._opened(cwd, mcp_servers, None)
        session = conversation.session
        return schema.NewSessionResponse(
            session_id=session.id, modes=modes(session), config_options=self._options(conversation)
        )

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: list[Any] | None = None, **_: Any
    ) -> schema.LoadSessionResponse:
        await self.close_session(session_id)
        conversation = self._opened(cwd, mcp_servers, session_id)
        await conversation.replay()
        return schema.LoadSessionResponse(modes=modes(conversation.session), config_options=self._options(conversation))

    async def resume_session(
        self, session_id: str, cwd: str, mcp_servers: list[Any] | None = None, **_: Any
    ) -> schema.ResumeSessionResponse:
        await self.close_session(session_id)
        conversation = self._opened(cwd, mcp_servers, session_id)
        return schema.ResumeSessionResponse(
            modes=modes(conversation.session), config_options=self._options(conversation)
        )

    async def list_sessions(self, cwd: str | None = None, **_: Any) -> schema.ListSessionsResponse:
        app = self._app(cwd or str(Path.cwd()), (), {})
        folder = str(app.resolved.cwd)
        return schema.ListSessionsResponse(
            sessions=[
                schema.SessionInfo(session_id=info.id, cwd=folder, title=clean(info.title or "") or None)
                for info in app.store.sessions(str(app.resolved.root), 100)
            ]
        )

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> schema.SetSessionModeResponse:
        self._set_mode(self._conversation(session_id), mode_id)
        return schema.SetSessionModeResponse()

    async def set_config_option(
        self,
        config_id: str,
        session_id: str,
        value: str | bool,  # noqa: FBT001 - the protocol's signature
        **_: Any,
    ) -> schema.SetSessionConfigOptionResponse:
        conversation = self._conversation(session_id)
        if config_id == "mode":
            self._set_mode(conversation, str(value))
        elif config_id in ("model", "thinking"):
            if conversation.is_busy:
                raise wrong("This session is still answering a prompt; cancel it, or wait for its end.")
            chosen = {**conversation.chosen, config_id: str(value)}
            app = self._app(str(conversation.cwd), conversation.servers, chosen)
            try:
                await conversation.choose(app, chosen)
            except RaError as error:
                raise wrong(str(error)) from error
        else:
            raise wrong(f"There is no option {config_id!r}; options: mode, model, thinking.")
        return schema.SetSessionConfigOptionResponse(config_options=self._options(conversation))

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> schema.PromptResponse:
        conversation = self._conversation(session_id)
        if conversation.is_busy:
            raise wrong("This session is still answering a prompt; cancel it, or wait for its end.")
        try:
            ready = await acp_prompts.prepared(
                conversation.session, prompt, root=conversation.app.resolved.root, cwd=conversation.cwd
            )
            for warning in ready.warnings:
                await self._tell(session_id, warning)
            end = await conversation.answer(ready.message)
        except RaError as error:
            raise wrong(str(error)) from error
        if end.outcome == "failed":
            raise RequestError(-32603, end.error or "The model could not be asked.", {"cost": end.dollars})
        if end.error and end.outcome == "limit":
            await self._tell(session_id, end.error)
        usage = schema.Usage(
            total_tokens=end.usage.total_input + end.usage.output,
            input_tokens=end.usage.total_input,
            output_tokens=end.usage.output,
            cached_read_tokens=end.usage.cache_read,
            cached_write_tokens=end.usage.cache_write,
        )
        return schema.PromptResponse(
            stop_reason=STOPS[end.outcome], usage=usage, field_meta={"ra": {"cost": end.dollars, "model": end.model}}
        )

    async def cancel(self, session_id: str, **_: Any) -> None:
        if conversation := self._conversations.get(session_id):
            conversation.interrupt()

    async def close_session(self, session_id: str, **_: Any) -> schema.CloseSessionResponse:
        if conversation := self._conversations.pop(session_id, None):
            conversation.interrupt()
            await conversation.session.close()
        return schema.CloseSessionResponse()

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        raise RequestError.method_not_found(method)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """ra defines no extensions."""

    async def close(self) -> None:
        for session_id in list(self._conversations):
            await self.close_session(session_id)

    async def _tell(self, session_id: str, words: str) -> None:
        """Sends the editor what a terminal would show on stderr."""
        assert self._client is not None, "the connection is there before its requests"
        await self._client.session_update(session_id, acp.helpers.update_agent_thought_text(f"ra: {clean(words)}\n"))

    def _conversation(self, session_id: str) -> Conversation:
        conversation = self._conversations.get(session_id)
        if conversation is None:
            raise wrong(f"No session {session_id[:100]!r} is open; session/new or session/load opens one.")
        return conversation

    def _set_mode(self, conversation: Conversation, mode: str) -> None:
        name = next((name for name in MODES if name == mode), None)
        if name is None:
            raise wrong(f"There is no mode {mode[:100]!r}; modes: {', '.join(MODES)}.")
        try:
            conversation.session.tools().set_edits(name)
        except RaError as error:
            raise wrong(str(error)) from error

    def _options(self, conversation: Conversation) -> Any:
        return options(conversation.session, self._projects.models(conversation.app))

    def _app(self, cwd: str, servers: Sequence[McpServerSettings], chosen: Mapping[str, str]) -> App:
        folder = Path(cwd)
        if not folder.is_absolute() or not folder.is_dir():
            raise wrong(f"cwd is {cwd[:200]!r}; it must be the absolute path of a folder.")
        try:
            return self._projects.app(folder, servers, chosen)
        except RaError as error:
            raise wrong(str(error)) from error

    def _opened(self, cwd: str, servers: list[Any] | None, resume: str | None) -> Conversation:
        brought = [_server(server) for server in servers or ()]
        app = self._app(cwd, brought, {})
        assert self._client is not None, "the connection is there before its requests"
        try:
            session = app.open(resume=resume)
            session.ready()
        except RaError as error:
            raise wrong(str(error)) from error
        conversation = self._conversations[session.id] = Conversation(app, session, self._client, brought)
        task = asyncio.create_task(conversation.offer_commands())  # after the answer that names the session
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)
        return conversation


def serve(projects: Projects) -> None:
    """Serves until stdin ends. stdout is reserved for the protocol."""

    async def main() -> None:
        agent = EditorAgent(projects)
        try:
            reader, writer = await acp.stdio_streams()
            lines = EditorLines(reader, writer)
            await acp.run_agent(agent, lines)  # type: ignore[arg-type]  # methods that are not advertised are missing
        finally:
            await agent.close()

    asyncio.run(main())


def _server(server: Any) -> McpServerSettings:
    match server:
        case schema.McpServerStdio():
            env = {variable.name: variable.value for variable in server.env}
            return McpServerSettings(name=server.name, command=server.command, args=tuple(server.args), env=env)
        case schema.HttpMcpServer() | schema.SseMcpServer():
            headers = {header.name: header.value for header in server.headers}
            sse = isinstance(server, schema.SseMcpServer)
            return McpServerSettings(name=server.name, url=server.url, headers=headers, sse=sse)
        case _:
            raise wrong(f"The MCP server {getattr(server, 'name', '')!r} is of a kind that ra does not support.")
