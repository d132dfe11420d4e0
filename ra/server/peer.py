"""Whose connection is it? On Linux the kernel's table of sockets tells the user at the other end of the loopback."""

import ipaddress
import sys
from asyncio import Transport
from pathlib import Path

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 800  # a process has 1 024 files unless told otherwise
HEADERS_S = 20.0  # a client that has not said what it wants by then is let go

Address = tuple[str, int]


class Connection(H11Protocol):
    """An HTTP connection that knows its user: asked when it is made, since a client that is gone has none."""

    headers_s = HEADERS_S
    _waiting = False

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # uvicorn's own narrowing
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.close()
            return
        self.app_state = self.app_state | {"peer_uid": user_of(self.client, self.server)}
        self._wait_for_a_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # Half a request ends the time that an idle connection has: whoever stops there would hold it for ever.
        if not self._waiting and self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._wait_for_a_request()

    def _wait_for_a_request(self) -> None:
        self._waiting = True
        self.loop.call_later(self.headers_s, self._let_go_of_the_silent, self.cycle)

    def _let_go_of_the_silent(self, last: object) -> None:
        """`last` is the request that was answered before, if any: no other has come since."""
        self._waiting = False
        if self.cycle is last:
            self.transport.close()
        elif self.conn.their_state is h11.IDLE and self.timeout_keep_alive_task is None:
            self._wait_for_a_request()  # half of the next one came while the time of the first ran


def user_of(
    client: Address | None, server: tuple[str, int | None] | None, proc: Path = Path("/proc/net")
) -> int | None:
    """The user id of the process that holds `client`, None when that cannot be told."""
    if client is None or server is None or server[1] is None:
        return None
    try:
        ours, theirs = ipaddress.ip_address(server[0]), ipaddress.ip_address(client[0])
    except ValueError:
        return None
    if not (theirs.is_loopback or (isinstance(theirs, ipaddress.IPv6Address) and _mapped_loopback(theirs))):
        return None
    for table, forms in (("tcp", _as_v4), ("tcp6", _as_v6)):
        local, remote = forms(theirs), forms(ours)
        if local and remote:
            uid = _uid(proc / table, f" {local}:{client[1]:04X} {remote}:{server[1]:04X} ")
            if uid is not None:
                return uid
    return None


def _uid(table: Path, ends: str) -> int | None:
    try:
        rows = table.read_text("ascii")
    except (OSError, ValueError):
        return None
    place = rows.find(ends)
    if place < 0:
        return None
    fields = rows[place : rows.find("\n", place)].split()
    # local remote state queues timer retransmits uid timeout inode: a socket that nobody holds any more has the
    # inode 0, and says that it belonged to root.
    return int(fields[6]) if int(fields[8]) else None


def _mapped_loopback(address: ipaddress.IPv6Address) -> bool:
    return bool(address.ipv4_mapped and address.ipv4_mapped.is_loopback)


def _as_v4(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    plain = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else address
    return _words(plain.packed) if plain else ""


def _as_v6(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    if isinstance(address, ipaddress.IPv4Address):
        address = ipaddress.IPv6Address(b"\0" * 10 + b"\xff\xff" + address.packed)
    return _words(address.packed)


def _words(packed: bytes) -> str:
    """The kernel prints words of 32 bits as the machine has them."""
    return "".join(f"{int.from_bytes(packed[i : i + 4], sys.byteorder):08X}" for i in range(0, len(packed), 4))
