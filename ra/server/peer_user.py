"""Identifies the user at the other end of a loopback connection, from what Linux knows about its sockets."""

import errno
import ipaddress
import os
import re
import socket
import struct
import sys
from asyncio import Transport
from pathlib import Path
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 800  # a process has 1024 files by default
HEADERS_S = 20.0  # a client that has sent no request by then is disconnected

MAX_SILENT_OF_OTHERS = 100  # idle connections of one other user or address
MAX_HEADERS = 100
MAX_HEAD_BYTES = 32 * 1024
_LOOSE = re.compile(rb"(?<!\r)\n|\r(?!\n)|\n[ \t]|\0")
"""A line that ends in a bare LF or CR, or continues on the next one: servers disagree about how to read these."""

LINGER_S = 2.0
CLOSE_HEADER = (b"connection", b"close")
_BUSY = b'{"error":"Busy: too many connections."}'
_TOO_MANY = (
    b"HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 5\r\n"
    b"Cache-Control: no-store\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(_BUSY), _BUSY)
)

Address = tuple[str, int]


class StrictFraming(h11.Connection):
    """Accepts a request only in the one form that every server and proxy reads alike."""

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        if self.their_state is h11.IDLE:
            head = self.trailing_data[0].lstrip(b"\r\n").partition(b"\r\n\r\n")[0]
            if len(head) > MAX_HEAD_BYTES:
                raise h11.RemoteProtocolError("the headers are too large", error_status_hint=431)
            if _LOOSE.search(head):
                raise h11.RemoteProtocolError("a line of the headers is malformed")
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = [name for name, _ in event.headers]
            if len(names) > MAX_HEADERS:
                raise h11.RemoteProtocolError("too many headers", error_status_hint=431)
            if b"transfer-encoding" in names and b"content-length" in names:
                raise h11.RemoteProtocolError("both Transfer-Encoding and Content-Length")
        return event


class PeerConnection(H11Protocol):
    """An HTTP connection that knows its user: looked up on connecting, because a closed socket has no user any more."""

    headers_s = HEADERS_S
    _waiting = False
    _refused = False
    _peer: int | str | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = StrictFraming(h11.SERVER, MAX_HEAD_BYTES)

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # uvicorn narrows it, too
        super().connection_made(transport)
        uid = user_of(self.client, self.server)
        self._peer = uid if uid is not None else self.client and self.client[0]
        most = MAX_CONNECTIONS if uid == os.geteuid() else MAX_SILENT_OF_OTHERS
        if len(self.connections) > MAX_CONNECTIONS or self._silent_of_this_peer() > most:
            self._refuse(transport)
            return
        self.app_state = self.app_state | {"peer_uid": uid}
        self._wait_for_a_request()

    def _silent_of_this_peer(self) -> int:
        """The number of idle connections of the same user or address, so that nobody can occupy all of them."""
        of_this_peer = (
            other for other in self.connections if isinstance(other, PeerConnection) and other._peer == self._peer
        )
        return sum(other.silent for other in of_this_peer)

    @property
    def silent(self) -> bool:
        """Whether it has no request in progress."""
        return getattr(self.cycle, "response_complete", True)  # there is no cycle before the first request

    def announce_close(self) -> None:
        """Announces that the current answer is the last one on this connection."""
        if not self.silent:
            self.cycle.default_headers = [*self.cycle.default_headers, CLOSE_HEADER]
            self.cycle.keep_alive = False

    def _refuse(self, transport: Transport) -> None:
        """Answers immediately, whatever the request; closes a moment later, since a reset would overtake the answer."""
        self.connections.discard(self)
        self._refused = True
        transport.write(_TOO_MANY)
        if transport.can_write_eof():
            transport.write_eof()
        self.loop.call_later(LINGER_S, transport.close)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        super().data_received(data)
        # Half a request ends the time limit of an idle connection: a client that stops there would hold it for ever.
        if not self._waiting and self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._wait_for_a_request()

    def _wait_for_a_request(self) -> None:
        self._waiting = True
        self.loop.call_later(self.headers_s, self._let_go_of_the_silent, self.cycle)

    def _let_go_of_the_silent(self, last: object) -> None:
        """`last` is the last answered request, if any: the connection closes if no other has arrived since."""
        self._waiting = False
        if self.cycle is last:
            self.transport.close()
        elif self.conn.their_state is h11.IDLE and self.timeout_keep_alive_task is None:
            self._wait_for_a_request()  # half of the next one arrived during the first time limit


_SOCK_DIAG, _BY_FAMILY, _REQUEST, _ERROR = 4, 20, 1, 2  # linux/netlink.h, linux/sock_diag.h
_ANY = (0xFFFFFFFF, 0xFFFFFFFF)  # INET_DIAG_NOCOOKIE

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def user_of(
    client: Address | None, server: tuple[str, int | None] | None, proc: Path = Path("/proc/net")
) -> int | None:
    """The user id of the process that holds `client`, None if unknown."""
    if client is None or server is None or server[1] is None:
        return None
    try:
        ours, theirs = ipaddress.ip_address(server[0]), ipaddress.ip_address(client[0])
    except ValueError:
        return None
    if not (theirs.is_loopback or (isinstance(theirs, ipaddress.IPv6Address) and _mapped_loopback(theirs))):
        return None
    if sys.platform != "linux":
        return None
    try:
        return _diagnosed(theirs, client[1], ours, server[1])
    except OSError:
        return _listed(theirs, client[1], ours, server[1], proc)


def _diagnosed(theirs: IpAddress, their_port: int, ours: IpAddress, our_port: int) -> int | None:
    """Asks the kernel for that one socket (man 7 sock_diag): 20 µs, where its table of all sockets takes 7 ms.

    Raises OSError if the kernel cannot be asked.
    """
    v6 = isinstance(theirs, ipaddress.IPv6Address)
    family = socket.AF_INET6 if v6 else socket.AF_INET
    ends = struct.pack("!HH16s16s", their_port, our_port, theirs.packed, ours.packed)
    query = struct.pack("=BBBxI", family, socket.IPPROTO_TCP, 0, 0xFFFFFFFF) + ends + struct.pack("=III", 0, *_ANY)
    head = struct.pack("=IHHII", 16 + len(query), _BY_FAMILY, _REQUEST, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as asking:
        asking.settimeout(0.1)
        asking.sendto(head + query, (0, 0))
        reply = asking.recv(8192)
    kind = struct.unpack_from("=IH", reply)[1]
    if kind == _ERROR:
        error = -struct.unpack_from("=i", reply, 16)[0]
        if error == errno.ENOENT:
            return None  # no process holds that end any more
        raise OSError(error, "sock_diag")
    uid, inode = struct.unpack_from("=II", reply, 16 + 4 + 48 + 12)
    return int(uid) if inode else None


def _listed(theirs: IpAddress, their_port: int, ours: IpAddress, our_port: int, proc: Path) -> int | None:
    for table, forms in (("tcp", _as_v4), ("tcp6", _as_v6)):
        local, remote = forms(theirs), forms(ours)
        if local and remote:
            uid = _uid(proc / table, f" {local}:{their_port:04X} {remote}:{our_port:04X} ")
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
    # local remote state queues timer retransmits uid timeout inode: a socket that no process holds any more has the
    # inode 0, and is listed under root.
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
    """The kernel prints 32-bit words in the machine's byte order."""
    return "".join(f"{int.from_bytes(packed[i : i + 4], sys.byteorder):08X}" for i in range(0, len(packed), 4))
