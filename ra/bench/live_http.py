"""Sends messages to a daemon with `POST /task`."""

import ipaddress
import time
from collections.abc import Callable
from decimal import Decimal
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import SplitResult, urlsplit

import msgspec

from ra.bench.live import LiveAnswer, LivePlan, Order
from ra.core.errors import RaError, Refused, UserError
from ra.core.model import TokenCounts, Usage
from ra.core.value import JsonObject, encode

CONNECT_S = 10.0
ANSWER_S = 3600.0  # an agent's turn with tools may take long; the daemon has its own limits
TRIES = 6  # while the daemon is busy
MAX_WAIT_S = 60


class _TaskReply(msgspec.Struct, rename="camel"):
    content: str | None = None
    error: str = ""
    duration: float = 0.0
    usage: TokenCounts | None = None
    cost: float | None = None
    strategy: str = ""


class Daemon:
    """Asks a daemon at `url`. Without a token, `stored` may supply one, sent only on demand, and to this machine."""

    def __init__(self, url: str, token: str, plan: LivePlan, stored: Callable[[], str]) -> None:
        self._url = url
        self._place = _parsed(url)
        self._token = token.strip()
        if not (token.isascii() and token.isprintable()):
            raise UserError("The token of a daemon has printable ASCII characters only.")
        self._plan = plan
        self._stored = stored

    def __call__(self, order: Order) -> LiveAnswer:
        """Raises Refused for a wrong token, UserError for what the daemon does not know, RaError if there is none."""
        body = {
            "agent": self._plan.agent or None,
            "message": order.message,
            "contextStrategy": order.strategy,
            "tools": self._plan.tools,
            "context": {"channel": self._plan.channel, "chatId": order.chat_id, "sender": "bench"},
        }
        status, raw = self._patiently(body)
        if status == 401 and not self._token and self._local and (stored_token := self._stored()):
            self._token = stored_token
            status, raw = self._patiently(body)
        try:
            reply = msgspec.json.decode(raw, type=_TaskReply)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise self._foreign(status) from error
        if reply.content is None and not reply.error:
            raise self._foreign(status)
        if status in (401, 403):
            raise Refused(f"{self._url}: {reply.error} Give the daemon's token with --token or RA_SERVE_TOKEN.")
        if 400 <= status < 500 and status != 429:
            raise UserError(f"{self._url}: {reply.error}")
        return LiveAnswer(
            reply.content or "",
            reply.usage.usage if reply.usage else Usage(),
            "" if reply.cost is None else str(Decimal(str(reply.cost))),
            reply.duration,
            reply.strategy,
            reply.error,
        )

    @property
    def _local(self) -> bool:
        host = self._place.hostname or ""
        try:
            return host == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    def _foreign(self, status: int) -> UserError:
        return UserError(f"{self._url} answered {status} and is not an agentx daemon; `agentx daemon` prints its URL.")

    def _patiently(self, body: JsonObject) -> tuple[int, bytes]:
        """The answer; waits for a busy daemon, within reason."""
        for _ in range(TRIES - 1):
            status, raw, wait_s = self._post(body)
            if status != 429:
                return status, raw
            time.sleep(wait_s)
        return self._post(body)[:2]

    def _post(self, body: JsonObject) -> tuple[int, bytes, float]:
        place = self._place
        kind = HTTPSConnection if place.scheme == "https" else HTTPConnection
        connection = kind(place.hostname or "", place.port, timeout=CONNECT_S)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            connection.connect()
            connection.sock.settimeout(ANSWER_S)
            connection.request("POST", place.path.rstrip("/") + "/task", encode(body), headers)
            response = connection.getresponse()
            wait = response.headers.get("Retry-After", "")
            return response.status, response.read(), min(float(wait) if wait.isdigit() else 1.0, MAX_WAIT_S)
        except (OSError, HTTPException) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise RaError(f"No daemon answers at {self._url}: {why}. Start one: agentx daemon.") from error
        finally:
            connection.close()


def _parsed(url: str) -> SplitResult:
    wrong = UserError(f"--url {url!r} is not a daemon's address; write it like http://127.0.0.1:18800.")
    try:
        parts = urlsplit(url)
        numbered = parts.port is None or parts.port > 0
    except ValueError as error:
        raise wrong from error
    if not numbered or parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise wrong
    return parts
