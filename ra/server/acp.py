"""Lets editors drive ra: an agent of the Agent Client Protocol on stdin and stdout."""

import asyncio
import base64
import binascii
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import acp
from acp import schema
from acp.exceptions import RequestError

from ra.app import App
from ra.core.asking import Answer, Question
from ra.core.errors import RaError
from ra.core.events import Outcome, RunEnded
from ra.core.facts import Said
from ra.core.messages import Content, Image, Message, Text
from ra.core.text import clean, label
from ra.core.version import __version__
from ra.server import acp_updates
from ra.session.run import Run
from ra.session.session import Session
from ra.system import images
from ra.system.files import media_type
from ra.tools.settings import Edits, McpServerSettings

STOPS: dict[Outcome, schema.StopReason] = {
    "answered": "end_turn",
    "empty": "end_turn",
    "unfit": "end_turn",
    "limit": "max_turn_requests",
    "refused": "refusal",
    "interrupted": "cancelled",
}
MODES: dict[Edits, tuple[str, str]] = {
    "ask": ("Ask", "Changes to files are asked for"),
    "auto": ("Write", "Files of the project are changed without asking"),
    "off": ("Read only", "Nothing is changed"),
}
_OPTIONS = [
    schema.PermissionOption(option_id="once", name="Allow", kind="allow_once"),
    schema.PermissionOption(option_id="session", name="Allow for this session", kind="allow_always"),
    schema.PermissionOption(option_id="no", name="Refuse", kind="reject_once"),
]


class Projects(Protocol):
    """Opens what the command line would open in a folder. The command line lies above this package."""

    def app(self, cwd: Path, servers: Sequence[McpServerSettings]) -> App:
        """Raises UserError and Refused."""
        ...


class Conversation:
    """One session that an editor has open."""

    def __init__(self, app: App, session: Session, client: acp.Client) -> None:
        self.app = app
        self.session = session
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

    def interrupt(self) -> None:
        if self._run is not None:
            self._run.interrupt()

    async def replay(self) -> None:
        """Tell an editor what was said in a session that it loads."""
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
            return Answer("no")  # an editor is asked for permissions; it has no form for what a server wants to know
        update = acp_updates.asked(question.call, question.reason, self.cwd)
        response = await self._client.request_permission(self.session.id, update, _OPTIONS)
        outcome = response.outcome
        if isinstance(outcome, schema.AllowedOutcome) and outcome.option_id in ("once", "session"):
            return Answer("once" if outcome.option_id == "once" else "session")
        return Answer("no")


class EditorAgent:
    """The methods that an editor calls. What the user must mend is told as an error of the request."""

    def __init__(self, projects: Projects) -> None:
        self._projects = projects
        self._client: acp.Client | None = None
        self._conversations: dict[str, Conversation] = {}
        self._aside: set[asyncio.Task[None]] = set()

    def on_connect(self, conn: acp.Client) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> schema.InitializeResponse:
        return schema.InitializeResponse(
            protocol_version=min(protocol_version, acp.PROTOCOL_VERSION),
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
        """Keys are the user's own: there is nothing to sign in to."""
        return schema.AuthenticateResponse()

    async def new_session(self, cwd: str, mcp_servers: list[Any] | None = None, **_: Any) -> schema.NewSessionResponse:
        conversation = self._opened(cwd, mcp_servers, None)
        return schema.NewSessionResponse(session_id=conversation.session.id, modes=_modes(conversation))

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: list[Any] | None = None, **_: Any
    ) -> schema.LoadSessionResponse:
        await self.close_session(session_id)
        conversation = self._opened(cwd, mcp_servers, session_id)
        await conversation.replay()
        return schema.LoadSessionResponse(modes=_modes(conversation))

    async def resume_session(
        self, session_id: str, cwd: str, mcp_servers: list[Any] | None = None, **_: Any
    ) -> schema.ResumeSessionResponse:
        await self.close_session(session_id)
        return schema.ResumeSessionResponse(modes=_modes(self._opened(cwd, mcp_servers, session_id)))

    async def list_sessions(self, cwd: str | None = None, **_: Any) -> schema.ListSessionsResponse:
        app = self._app(cwd or str(Path.cwd()), None)
        folder = str(app.resolved.cwd)
        return schema.ListSessionsResponse(
            sessions=[
                schema.SessionInfo(session_id=info.id, cwd=folder, title=clean(info.title or "") or None)
                for info in app.store.sessions(str(app.resolved.root), 100)
            ]
        )

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> schema.SetSessionModeResponse:
        if mode_id not in MODES:
            raise _wrong(f"There is no mode {mode_id!r}; modes: {', '.join(MODES)}.")
        try:
            self._conversation(session_id).session.tools().set_edits(mode_id)
        except RaError as error:
            raise _wrong(str(error)) from error
        return schema.SetSessionModeResponse()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> schema.PromptResponse:
        conversation = self._conversation(session_id)
        if conversation.is_busy:
            raise _wrong("This session is still answering a prompt; cancel it, or wait for its end.")
        try:
            message = await _message(conversation, prompt)
            end = await conversation.answer(message)
        except RaError as error:
            raise _wrong(str(error)) from error
        if end.outcome == "failed":
            raise RequestError(-32603, end.error or "The model could not be asked.", {"cost": end.dollars})
        if end.error and end.outcome == "limit" and self._client is not None:
            await self._client.session_update(session_id, acp.helpers.update_agent_thought_text(f"ra: {end.error}\n"))
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
        """None of ours."""

    async def close(self) -> None:
        for session_id in list(self._conversations):
            await self.close_session(session_id)

    def _conversation(self, session_id: str) -> Conversation:
        conversation = self._conversations.get(session_id)
        if conversation is None:
            raise _wrong(f"No session {session_id[:100]!r} is open; session/new or session/load opens one.")
        return conversation

    def _app(self, cwd: str, servers: list[Any] | None) -> App:
        folder = Path(cwd)
        if not folder.is_absolute() or not folder.is_dir():
            raise _wrong(f"cwd is {cwd[:200]!r}; it must be the absolute path of a folder.")
        try:
            return self._projects.app(folder, [_server(server) for server in servers or ()])
        except RaError as error:
            raise _wrong(str(error)) from error

    def _opened(self, cwd: str, servers: list[Any] | None, resume: str | None) -> Conversation:
        app = self._app(cwd, servers)
        assert self._client is not None, "the connection is there before its requests"
        try:
            session = app.open(resume=resume)
            session.ready()
        except RaError as error:
            raise _wrong(str(error)) from error
        conversation = self._conversations[session.id] = Conversation(app, session, self._client)
        task = asyncio.create_task(conversation.offer_commands())  # after the answer that names the session
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)
        return conversation


def serve(projects: Projects) -> None:
    """Until stdin ends. stdout belongs to the protocol."""

    async def main() -> None:
        agent = EditorAgent(projects)
        try:
            await acp.run_agent(agent)  # type: ignore[arg-type]  # methods that are not advertised are left out
        finally:
            await agent.close()

    asyncio.run(main())


def _modes(conversation: Conversation) -> schema.SessionModeState:
    modes = [schema.SessionMode(id=name, name=words[0], description=words[1]) for name, words in MODES.items()]
    return schema.SessionModeState(current_mode_id=conversation.session.tools().edits, available_modes=modes)


async def _message(conversation: Conversation, prompt: Sequence[Any]) -> Message:
    """What the user typed and attached. References in what was typed are resolved, as everywhere."""
    texts: list[str] = []
    files: list[Path] = []
    blocks: list[Content] = []
    for block in prompt:
        match block:
            case schema.TextContentBlock():
                texts.append(block.text)
            case schema.ImageContentBlock():
                blocks.append(_image(block.data))
            case schema.ResourceContentBlock() if block.uri.startswith("file://"):
                files.append(Path(unquote(urlsplit(block.uri).path)))
            case schema.ResourceContentBlock():
                texts.append(block.uri)
            case schema.EmbeddedResourceContentBlock(resource=schema.TextResourceContents() as resource):
                blocks.append(Text(label("resource", resource.text, ref=resource.uri)))
            case _:
                raise _wrong(f"A prompt with {block.type} cannot be answered; use text, images and files.")
    prepared = await conversation.session.prepare("\n".join(texts), files=files)
    return Message("user", (*prepared.message.blocks, *blocks))


def _image(data: str) -> Image:
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _wrong("The data of an image is damaged.") from error
    kind = media_type(content[:16])
    if not kind.startswith("image/"):
        raise _wrong("An image must be a PNG, JPEG, GIF or WebP.")
    try:
        content, kind = images.fitted(content, kind)
    except images.TooLarge as error:
        raise _wrong(f"The image {error}.") from error
    return Image(kind, content)


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
            raise _wrong(f"The MCP server {getattr(server, 'name', '')!r} is of a kind that ra does not support.")


def _wrong(words: str) -> RequestError:
    return RequestError(-32602, words)
