"""Gives a session what all MCP servers offer: tools, known before any server runs, and resources and prompts.

The servers' event loop runs in a separate thread: it outlasts a single prompt, and a session can wait there for what
it needs before its first request, when no other loop runs. Servers start at their first call, or all at once if a
listing is missing, and end with the last session.
"""

import asyncio
import concurrent.futures
import contextlib
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ra.core.messages import Content
from ra.core.model import Section, ToolSpec
from ra.tools.mcp import offered
from ra.tools.mcp.listing import Listing, Shelf, Unreachable, problem
from ra.tools.settings import McpServerSettings
from ra.tools.tool import Mistake, Output, Say, Tool

if TYPE_CHECKING:  # start-up time: most prompts start no server
    from ra.tools.mcp.client import ServerClient
    from ra.tools.mcp.connection import McpConnection
    from ra.tools.mcp.oauth import Tokens

T = TypeVar("T")

START_S = 5.0
"""How long a start waits for servers without a listing. Connecting to them goes on in the background."""
ASK_AGAIN_S = 3.0
"""A recently silent server is asked again once a session has lasted this long: short sessions should not pay for it."""
MAX_WORDS = 4000  # characters of one server's instructions
CHANGE_S = 2.0
"""How long a call waits for the new listing of a server that reported a change."""
MAX_CHANGES = 50
"""Highest number of new listings per server and process: some servers report a change at every call."""
GRACE_S = 2.0
"""How long the end of a session waits for its servers; the reapers end those that remain."""


class Servers:
    """All configured servers. `weigh` counts the tokens of tool definitions; `env` is the servers' environment."""

    def __init__(
        self,
        servers: Sequence[McpServerSettings],
        *,
        root: str,
        env: Mapping[str, str],
        shelf: Path,
        weigh: Callable[[Sequence[ToolSpec]], int],
        warn: Callable[[str], None],
        version: str = "",
        clock: Callable[[], float] = time.time,
        start_s: float = START_S,
        ask_again_s: float = ASK_AGAIN_S,
    ) -> None:
        self.settings = tuple(server for server in servers if server.enabled)
        self._root, self._env, self._version = root, dict(env), version
        self._shelf = Shelf(shelf)
        self._weigh, self._warn, self._clock = weigh, warn, clock
        self._start_s, self._ask_again_s = start_s, ask_again_s
        self._connections: dict[str, McpConnection] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._users = 0
        self._refreshing: set[asyncio.Task[Any]] = set()
        self._current: dict[str, Listing] | None = None  # what sessions are offered; replaced, never modified
        self._late: dict[str, Listing] = {}
        self._relisting: dict[str, asyncio.Task[None]] = {}
        self._stale: set[str] = set()  # servers that have changed since their last listing
        self._changes: dict[str, int] = {}

    def join(self, client: "ServerClient | None" = None) -> tuple[Tool, ...]:
        """The tools for one more session, which calls `leave` at its end. A failing server causes only a warning.

        `client` answers a server's questions while it works for this session.
        """
        self._users += 1
        if self._current is None:
            self._current = self.listings()
            for name, listing in [*self._late.items()]:  # they answered during the line above
                self._offer(name, listing)
            for name, listing in self._current.items():
                if listing.failed:
                    self._warn(f"The MCP server {name} is not available: {listing.failed}. `ra mcp list` tries again.")
        return self.tools(client)

    @property
    def current(self) -> Mapping[str, Listing] | None:
        """What sessions are offered at present: a new object after each change. None before the first session."""
        return self._current

    def tools(self, client: "ServerClient | None" = None) -> tuple[Tool, ...]:
        """The current offer as tools of a session."""
        read = partial(self.read, client=client)
        return offered.tools(self._current or {}, partial(self._call, client), read)

    async def leave(self) -> None:
        self._users -= 1
        if self._users <= 0:
            await self.close()

    def listings(self, *, fresh: bool = False) -> dict[str, Listing]:
        """What each server offers, in the order of the configuration: as stored, or as it answers now (`fresh`)."""
        listings: dict[str, Listing] = {}
        wanted: list[McpServerSettings] = []
        for place, server in enumerate(self.settings):
            wrong = problem(server, [other.name for other in self.settings[:place]])
            stored = None if fresh else self._shelf.get(server, now=self._clock())
            if wrong and server.name not in listings:
                listings[server.name] = Listing(failed=wrong)
            elif stored is not None:
                listings[server.name] = stored
                if stored.silent:
                    self._run(self._learn_late(server))
            elif not wrong:
                wanted.append(server)
        if wanted:
            with _interruptible():
                listings |= self._run(self._learn_all(wanted, most_s=None if fresh else self._start_s)).result()
        return {server.name: listings[server.name] for server in self.settings if server.name in listings}

    def tokens(self, server: McpServerSettings) -> "Tokens | None":
        """The stored tokens of a remote server."""
        from ra.tools.mcp.oauth import Tokens

        return Tokens(self._shelf.folder / "tokens", server.url) if server.url else None

    def instructions(self) -> dict[str, str]:
        """The instructions of the servers, as far as they are known without starting one."""
        listings = {server.name: self._shelf.get(server, now=self._clock()) for server in self.settings}
        return {name: listing.instructions for name, listing in listings.items() if listing and listing.instructions}

    def sections(self) -> tuple[Section, ...]:
        """The instructions as sections of a request, one per server."""
        return tuple(_section(name, words) for name, words in self.instructions().items())

    async def login(self, server: McpServerSettings) -> Listing:
        """Lets the user sign in to a remote server in the browser. Raises Unreachable."""
        from ra.tools.mcp.connection import McpConnection
        from ra.tools.mcp.oauth import Browser

        tokens, browser = self.tokens(server), Browser()
        connection = McpConnection(
            server, root=self._root, env=self._env, version=self._version, tokens=tokens, browser=browser
        )
        try:
            return await connection.learn()
        finally:
            await connection.close()
            browser.close(tokens)

    async def read(self, server: str, uri: str, *, client: "ServerClient | None" = None) -> tuple[Content, ...]:
        """Reads a resource or a prompt of a server. Raises Mistake."""
        return await self._asked(server, client, lambda connection: connection.read(uri))

    async def close(self) -> None:
        """Ends all servers and waits briefly for them to exit; the reapers kill those that do not."""
        if self._loop is None:
            return
        loop, self._loop = self._loop, None
        connections, self._connections = list(self._connections.values()), {}

        async def end() -> None:
            for task in self._refreshing:
                task.cancel()
            await asyncio.gather(*(connection.close() for connection in connections))

        ending = asyncio.run_coroutine_threadsafe(end(), loop)
        ending.add_done_callback(lambda _: loop.call_soon_threadsafe(loop.stop))
        await asyncio.wait({asyncio.wrap_future(ending)}, timeout=GRACE_S)

    # --- in the loop of the servers ---

    async def _learn_all(self, servers: Sequence[McpServerSettings], *, most_s: float | None) -> dict[str, Listing]:
        """Asks all servers at once. Those that have not answered after `most_s` continue in the background."""
        tasks = {server.name: asyncio.create_task(self._learn(server)) for server in servers}
        _, late = await asyncio.wait(tasks.values(), timeout=most_s)
        listings = {}
        for server in servers:
            if tasks[server.name] in late:
                why = f"no answer after {most_s:g} s; its tools are added when it answers"
                listings[server.name] = Listing(failed=why, silent=True, learned=self._clock())
                self._keep(server, listings[server.name])  # a start soon after this one need not wait again
                self._await_late(server.name, tasks[server.name])
            else:
                listings[server.name] = tasks[server.name].result()
        return listings

    async def _learn(self, server: McpServerSettings, *, again: bool = False) -> Listing:
        """Asks a server what it offers and stores the answer. The listing of a server that fails says so.

        `again`: a listing is already stored, and a failure must not replace it.
        """
        now = self._clock()
        try:
            listing = await self._connection(server).learn()
        except Unreachable as error:
            listing = Listing(failed=str(error), silent=error.silent, learned=now)
        else:
            specs = offered.specs(server.name, listing)
            listing = msgspec.structs.replace(listing, tokens=self._weigh(specs), learned=now)
        if not listing.failed or (listing.silent and not again):
            self._keep(server, listing)
        return listing

    def _keep(self, server: McpServerSettings, listing: Listing) -> None:
        try:
            self._shelf.put(server, listing)
        except OSError as error:
            self._warn(f"The tools of the MCP server {server.name} cannot be stored: {error.strerror}.")

    def _changed(self, server: McpServerSettings) -> None:
        """A server's offer has changed: lists it again, for the running sessions and for later ones."""
        self._changes[server.name] = self._changes.get(server.name, 0) + 1
        if self._changes[server.name] > MAX_CHANGES:
            return
        self._stale.add(server.name)
        if server.name not in self._relisting:
            task = self._relisting[server.name] = asyncio.create_task(self._relist(server))
            self._refreshing.add(task)
            task.add_done_callback(self._refreshing.discard)

    async def _learn_late(self, server: McpServerSettings) -> None:
        async def learn() -> Listing:
            await asyncio.sleep(self._ask_again_s)
            return await self._learn(server)

        self._await_late(server.name, asyncio.create_task(learn()))

    def _await_late(self, name: str, task: "asyncio.Task[Listing]") -> None:
        """Offers a server that the start did not wait for, beginning with the first request after its answer."""

        def came(task: "asyncio.Task[Listing]") -> None:
            self._refreshing.discard(task)
            if not task.cancelled() and task.exception() is None:
                self._late[name] = task.result()
                self._offer(name, self._late[name])

        self._refreshing.add(task)
        task.add_done_callback(came)

    def _offer(self, name: str, listing: Listing) -> None:
        current = self._current
        if not listing.failed and current is not None and _differs(current.get(name), listing):
            self._current = {**current, name: listing}

    async def _relist(self, server: McpServerSettings) -> None:
        try:
            while server.name in self._stale:
                self._stale.discard(server.name)
                self._offer(server.name, await self._learn(server, again=True))
        finally:
            del self._relisting[server.name]

    async def _call(
        self, client: "ServerClient | None", server: str, tool: str, args: dict[str, Any], say: Say
    ) -> Output:
        caller_loop = asyncio.get_running_loop()  # `say` must run in the caller's loop

        def tell(text: str) -> None:
            caller_loop.call_soon_threadsafe(say, text)

        return await self._asked(server, client, lambda connection: connection.call(tool, args, tell))

    async def _asked(
        self, name: str, client: "ServerClient | None", ask: "Callable[[McpConnection], Coroutine[Any, Any, T]]"
    ) -> T:
        server = next((server for server in self.settings if server.name == name), None)
        if server is None:
            raise Mistake(f"There is no MCP server {name!r}.")
        first = server.name not in self._connections
        from ra.tools.mcp.questions import Caller

        caller = Caller(client, asyncio.get_running_loop()) if client is not None else None

        async def asked() -> T:
            connection = self._connection(server)
            try:
                with connection.questions.of(caller):
                    answer = await ask(connection)
                if relisting := self._relisting.get(name):  # the call changed the offer, and the model should see it
                    await asyncio.wait({relisting}, timeout=CHANGE_S)
                return answer
            except Unreachable as error:
                raise Mistake(f"The MCP server {name} cannot be reached: {error}.") from error
            finally:
                if first:  # the offer may have changed since it was stored; the next session should know
                    task = asyncio.create_task(self._learn(server, again=True))
                    self._refreshing.add(task)
                    task.add_done_callback(self._refreshing.discard)

        return await asyncio.wrap_future(self._run(asked()))

    def _connection(self, server: McpServerSettings) -> "McpConnection":
        from ra.tools.mcp.connection import McpConnection

        if server.name not in self._connections:
            self._connections[server.name] = McpConnection(
                server,
                root=self._root,
                env=self._env,
                version=self._version,
                tokens=self.tokens(server),
                changed=partial(self._changed, server),
            )
        return self._connections[server.name]

    def _run(self, work: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=_live, args=(self._loop,), name="mcp", daemon=True).start()
        return asyncio.run_coroutine_threadsafe(work, self._loop)


def _differs(known: Listing | None, listing: Listing) -> bool:
    return known is None or msgspec.structs.replace(known, learned=listing.learned) != listing


def _section(name: str, words: str) -> Section:
    cut = f"the first {MAX_WORDS:,} of {len(words):,} characters" if len(words) > MAX_WORDS else ""
    marker = f"\n[… {cut}]" if cut else ""
    text = f"About the tools of the MCP server {name}:\n\n{words[:MAX_WORDS]}{marker}"
    return Section(f"mcp {name}", "stable", text, cut=cut)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Lets Ctrl-C end a wait: asyncio would only record it until its loop continues."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _live(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    loop.close()
