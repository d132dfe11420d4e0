"""Connects to one MCP server through the official SDK: on first use, and again after the connection broke."""

import asyncio
import contextlib
import logging
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, unquote

import msgspec

from ra.core.messages import Content
from ra.core.value import JsonObject
from ra.tools.mcp import content
from ra.tools.mcp.listing import Listing, Offer, Resource, Unreachable
from ra.tools.mcp.oauth import LOGIN_S, Browser, Tokens, signed_in
from ra.tools.mcp.questions import Questions
from ra.tools.mcp.schemas import fitted
from ra.tools.mcp.stdio import Program
from ra.tools.settings import McpServerSettings
from ra.tools.tool import Mistake, Output, Say

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import Prompt

T = TypeVar("T")

MAX_PAGES = 20
MAX_TOOLS = 1000
MAX_SCHEMA_BYTES = 100_000
MAX_INSTRUCTIONS = 20_000
LOOK_S = 2.0
"""How long a call waits to learn whether it has changed its server's tools."""
PROMPT = "prompt:"
LIST_CHANGES = tuple(f"notifications/{part}/list_changed" for part in ("tools", "prompts", "resources"))


class _NewProtocolOnly(Exception):
    """The server refused the handshake: it speaks only the 2026 protocol, which has none."""


class McpConnection:
    """One server. Everything here runs in one event loop, and the client has its own task:

    the SDK must be entered and left by the same task. `changed` is called when the server's offer has changed.
    """

    def __init__(
        self,
        server: McpServerSettings,
        *,
        root: str,
        env: dict[str, str],
        version: str,
        tokens: Tokens | None = None,
        browser: Browser | None = None,
        changed: Callable[[], None] | None = None,
    ) -> None:
        self.server = server
        self.questions = Questions(server.name)
        self._changed = changed
        self._tokens = tokens
        self._browser = browser
        self._refused = 0  # the HTTP status if the server demanded a sign-in
        # The 2026 protocol has no requests from server to client, yet most servers that ask their user still send them.
        # So the handshake of the previous protocol is tried first, and the new one only if the server requires it.
        self._new_protocol = False
        self._root = root
        self._env = env
        self._version = version
        self._owner: asyncio.Task[None] | None = None
        self._client: asyncio.Future[Client] | None = None
        self._program: Program | None = None
        self._tools: list[Any] | None = None  # as the server last listed them
        self._leave = asyncio.Event()  # asks the owner task to leave the client
        self._ended = asyncio.Event()  # the program has exited by itself
        self._closed = False

    async def learn(self) -> Listing:
        """Lists what the server offers. Raises Unreachable."""
        client = await self._connected()
        try:
            async with asyncio.timeout(self.server.timeout):
                self._tools = await _tools(client)
                return await _listed(client, self._tools)
        except TimeoutError as error:
            raise Unreachable(self._late(), silent=True) from error
        except Exception as error:  # the SDK passes on whatever its layers raise
            why = f"its tools cannot be listed: {_words(error)}"
            raise Unreachable(f"{why}{self._said() if self._ended.is_set() else ''}") from error

    async def call(self, tool: str, args: JsonObject, say: Say) -> Output:
        """Calls a tool. Raises Mistake for an error that the server reports, and Unreachable."""

        async def progress(progress: float, total: float | None, message: str | None) -> None:
            say(f"{message or f'{progress:g}' + (f' of {total:g}' if total else '')}\n")

        async def ask(client: "Client") -> Output:
            result = await client.call_tool(tool, args, progress_callback=progress)
            return Output(content.of_call(result), result.is_error)

        output = await self._ask(ask)
        await self._notice_changes()
        return output

    async def read(self, uri: str) -> tuple[Content, ...]:
        """Reads a resource, or the messages of a prompt: `prompt:NAME?argument=value`. Raises Mistake, Unreachable."""

        async def ask(client: "Client") -> tuple[Content, ...]:
            if not uri.startswith(PROMPT):
                return content.bounded(map(content.of_resource, (await client.read_resource(uri)).contents))
            name, _, arguments = uri.removeprefix(PROMPT).partition("?")
            prompt = await client.get_prompt(unquote(name), dict(parse_qsl(arguments)))
            return content.bounded(content.of_block(message.content) for message in prompt.messages)

        return await self._ask(ask)

    async def close(self) -> None:
        """Closes the connection for good: later calls raise Unreachable."""
        self._closed = True
        self._leave.set()
        if self._owner is not None:
            if self._client is not None and not self._client.done():
                self._owner.cancel()  # only cancellation ends a pending handshake
            await asyncio.wait({self._owner})

    async def _ask(self, ask: Callable[["Client"], Awaitable[T]]) -> T:
        client = await self._connected()
        try:
            return await ask(client)
        except Exception as error:  # the SDK passes on whatever its layers raise; the model gets it as an error
            if self.server.url:
                self._leave.set()  # its session may be gone; the next call opens a new one
            if not self._new_protocol and _names_new_protocol(error):
                self._new_protocol = True
                self._leave.set()
                return await self._ask(ask)  # the tool only asked for input, and expects to be called again with it
            if self._ended.is_set():
                raise Mistake(f"The MCP server {self.server.name} ended during the call{self._said()}.") from error
            raise Mistake(f"The MCP server {self.server.name} says: {_words(error)}") from error

    async def _notice_changes(self) -> None:
        """Checks whether a call changed the tools of a program that cannot notify us: many cannot after a handshake."""
        client = self._client.result() if self._client is not None and self._client.done() else None
        if client is None or not self.server.command or self._changed is None or self._new_protocol:
            return
        tools = client.server_capabilities.tools
        if tools is None or tools.list_changed:
            return
        with contextlib.suppress(Exception):  # the call has its answer; a later failure of the server must not spoil it
            async with asyncio.timeout(LOOK_S):
                changed = await _tools(client) != self._tools
            if changed:
                self._changed()

    async def _connected(self) -> "Client":
        if self._closed:
            raise Unreachable("it was closed")
        if self._owner is None or self._owner.done() or self._leave.is_set() or self._ended.is_set():
            if self._owner is not None:
                await asyncio.wait({self._owner})
            self._leave, self._ended = asyncio.Event(), asyncio.Event()
            self._client = asyncio.get_running_loop().create_future()
            self._owner = asyncio.create_task(self._own(self._client, self._leave, self._ended))
        assert self._client is not None
        owner, client = self._owner, self._client
        either: list[asyncio.Future[Any]] = [owner, client]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if client.done() and not client.cancelled():
            return client.result()
        if owner.cancelled():
            raise Unreachable("it was closed")
        if isinstance(owner.exception(), _NewProtocolOnly):
            return await self._connected()
        raise owner.exception() or Unreachable("it was closed")

    async def _own(self, ready: "asyncio.Future[Client]", leave: asyncio.Event, ended: asyncio.Event) -> None:
        """Runs as the task that enters and leaves the client. Raises Unreachable and _NewProtocolOnly."""
        from mcp import Client
        from mcp_types import Implementation, ListRootsResult, Root
        from pydantic import FileUrl

        # The SDK's log messages quote the server and would reach the terminal unescaped.
        logging.getLogger("mcp").addHandler(logging.NullHandler())
        logging.getLogger("mcp").propagate = False

        async def roots(context: Any) -> ListRootsResult:
            return ListRootsResult(roots=[Root(uri=FileUrl(Path(self._root).as_uri()), name="project")])

        self._program = program = self._make_program(ended)
        transport = program.streams() if program else self._http()
        late = asyncio.timeout(self.server.timeout if self._browser is None else LOGIN_S)
        try:
            async with late, contextlib.AsyncExitStack() as stack:
                client = Client(
                    transport,
                    list_roots_callback=roots,
                    sampling_callback=self.questions.sample,
                    elicitation_callback=self.questions.elicit,
                    message_handler=self._hear,
                    client_info=Implementation(name="ra", version=self._version),
                    cache=None,
                    mode="auto" if self._new_protocol else "legacy",
                )
                await stack.enter_async_context(client)
                late.reschedule(None)
                ready.set_result(client)
                listening = asyncio.create_task(self._listen(client))
                ends = [asyncio.create_task(event.wait()) for event in (leave, ended)]
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                for task in (*ends, listening):
                    task.cancel()
                await asyncio.gather(listening, return_exceptions=True)
        except TimeoutError as error:
            raise Unreachable(self._late(), silent=True) from error
        except Exception as error:  # an ExceptionGroup with whatever the layers raise
            if why := self._sent_away(error):
                raise Unreachable(why) from error
            if not self._new_protocol and not ready.done() and _refuses_handshake(error):
                self._new_protocol = True
                raise _NewProtocolOnly from error
            raise Unreachable(f"{_words(error)}{self._said()}") from error

    async def _hear(self, message: Any) -> None:
        """Handles a notification from a server of the previous protocol; `_listen` serves the new one."""
        if getattr(message, "method", "") in LIST_CHANGES and self._changed is not None:
            self._changed()

    async def _listen(self, client: "Client") -> None:
        """Subscribes to changes if the protocol requires a subscription."""
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        can = client.server_capabilities
        tools, prompts, resources = (
            bool(part and part.list_changed) for part in (can.tools, can.prompts, can.resources)
        )
        if self._changed is None or not (tools or prompts or resources):
            return
        # A server without such a stream, or one that ends it, is listed again at its next start.
        with contextlib.suppress(ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError):
            async with client.listen(
                tools_list_changed=tools, prompts_list_changed=prompts, resources_list_changed=resources
            ) as changes:
                async for _ in changes:
                    self._changed()

    def _sent_away(self, error: BaseException) -> str:
        """How to sign in, if that is why the server refused us; otherwise ""."""
        from mcp.client.auth import OAuthFlowError

        signing_in = any(isinstance(leaf, OAuthFlowError | PermissionError) for leaf in _leaves(error))
        if not self.server.url or (self._refused not in (401, 403) and not signing_in):
            return ""
        if self._browser is not None:
            return f"signing in failed: {_words(error)}"
        status = f" ({self._refused})" if self._refused else ""
        has_header = any(name.lower() == "authorization" for name in self.server.headers)
        fix = "its Authorization header is not accepted" if has_header else f"run `ra mcp login {self.server.name}`"
        return f"it wants you to sign in{status}; {fix}"

    async def _note_status(self, response: Any) -> None:
        self._refused = response.status_code if response.status_code in (401, 403) else 0

    def _make_program(self, ended: asyncio.Event) -> Program | None:
        command, env = self.server.command, self._env | dict(self.server.env)
        if not command:
            return None
        if not shutil.which(command, path=env.get("PATH")) and not (Path(self._root) / command).is_file():
            raise Unreachable(f"the command {command!r} is not found")
        return Program([command, *self.server.args], cwd=self._root, env=env, ended=ended)

    @asynccontextmanager
    async def _http(self) -> AsyncIterator[tuple[Any, Any]]:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        assert self.server.url
        # An answer may take as long as the toolbox allows; only connecting must be quick.
        patience = httpx2.Timeout(self.server.timeout if self._browser is None else None, read=None)
        options: dict[str, Any] = {
            "headers": dict(self.server.headers),
            "timeout": patience,
            "auth": self._auth(),
            "event_hooks": {"response": [self._note_status]},
        }
        if self.server.sse:
            from mcp.client.sse import sse_client

            def client(
                headers: dict[str, str] | None = None,
                timeout: httpx2.Timeout | None = None,
                auth: httpx2.Auth | None = None,
            ) -> httpx2.AsyncClient:
                return httpx2.AsyncClient(**options)

            async with sse_client(self.server.url, httpx_client_factory=client) as streams:
                yield streams
            return
        async with (
            httpx2.AsyncClient(**options) as http,
            streamable_http_client(self.server.url, http_client=http) as streams,
        ):
            yield streams

    def _auth(self) -> Any:
        """Our credentials, if the user has signed in or is signing in now."""
        assert self.server.url
        if self._tokens is None:
            return None
        if self._browser is not None:
            return self._browser.provider(self.server.url, self._tokens)
        return signed_in(self.server.url, self._tokens) if self._tokens.exist else None

    def _late(self) -> str:
        return f"it did not answer within {self.server.timeout:g} s{self._said()}"

    def _said(self) -> str:
        """The last line that the program wrote to stderr, in brackets."""
        words = self._program.last_words[:300] if self._program else ""
        return f" (it said: {words})" if words else ""


async def _tools(client: "Client") -> list[Any]:
    return await _pages(client.list_tools, "tools") if client.server_capabilities.tools else []


async def _listed(client: "Client", tools: list[Any]) -> Listing:
    can = client.server_capabilities
    resources = await _pages(client.list_resources, "resources") if can.resources else []
    templates = await _pages(client.list_resource_templates, "resource_templates") if can.resources else []
    prompts = await _pages(client.list_prompts, "prompts") if can.prompts else []
    # Of two tools with the same name, a call could reach only one.
    named = {tool.name: tool for tool in reversed(tools)}
    return Listing(
        tools=tuple(offer for tool in reversed(named.values()) if (offer := _offer(tool)) is not None)[:MAX_TOOLS],
        resources=(
            *(Resource(_clean(one.uri), _clean(one.description or one.title or one.name)) for one in resources),
            *(Resource(_clean(one.uri_template), _clean(one.description or one.name)) for one in templates),
        ),
        prompts=tuple(Resource(_prompt_uri(one), _clean(one.description or one.name)) for one in prompts),
        instructions=_clean(client.instructions or "")[:MAX_INSTRUCTIONS],
    )


async def _pages(ask: Callable[..., Awaitable[Any]], what: str) -> list[Any]:
    """All pages. A server that announces resources or prompts but fails to list them offers none."""
    from mcp import MCPError

    items: list[Any] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        try:
            page = await ask(cursor=cursor)
        except MCPError:
            if what == "tools":
                raise
            return items
        items += getattr(page, what)
        cursor = page.next_cursor
        if not cursor:
            break
    return items


def _offer(tool: Any) -> Offer | None:
    """The tool, or None if its schema does not fit into a request."""
    try:
        schema = fitted(tool.input_schema)
        if schema is None or len(msgspec.json.encode(schema)) > MAX_SCHEMA_BYTES:
            return None
    except (UnicodeEncodeError, RecursionError):
        return None
    hint = bool(tool.annotations and tool.annotations.read_only_hint)
    return Offer(_clean(tool.name), _clean(tool.description or tool.title or tool.name), schema, hint)


def _prompt_uri(prompt: "Prompt") -> str:
    takes = "&".join(f"{argument.name}=…" for argument in prompt.arguments or ())
    return _clean(f"{PROMPT}{prompt.name}{f'?{takes}' if takes else ''}")


def _clean(text: object) -> str:
    return str(text).encode("utf-8", "replace").decode()


def _words(error: BaseException) -> str:
    """The innermost reason, in one line: the SDK nests exception groups."""
    from pydantic import ValidationError

    from ra.tools.pydantic_types import why

    leaves = list(_leaves(error))
    if leaves and isinstance(leaves[0], ValidationError):
        return _clean(f"its answer does not follow the protocol ({why(leaves[0])[:400]})")
    text = " ".join(str(leaves[0]).split()) if leaves else ""
    return _clean(text)[:500] or type(leaves[0] if leaves else error).__name__


def _refuses_handshake(error: BaseException) -> bool:
    from mcp import MCPError
    from mcp_types import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION

    refusals = (METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION, INVALID_REQUEST, INVALID_PARAMS)
    return any(isinstance(leaf, MCPError) and leaf.code in refusals for leaf in _leaves(error))


def _names_new_protocol(error: BaseException) -> bool:
    """Whether a server says that its answer requires the 2026 protocol."""
    from mcp import MCPError
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    errors = [str(leaf) for leaf in _leaves(error) if isinstance(leaf, MCPError)]
    return any(version in text for text in errors for version in MODERN_PROTOCOL_VERSIONS)


def _leaves(error: BaseException) -> Iterable[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
