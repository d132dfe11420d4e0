"""Decides which addresses may be fetched: public ones, not those of this machine, its network or a cloud's inside."""

import ipaddress
import re
import socket

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_COMPATIBLE = ipaddress.ip_network("::/96")
# Reachable only from inside a cloud, or by nobody, although the tables of some Python versions call it public: the
# metadata of Oracle (192.0.0.192), the wire server of Azure, the relays of 6to4, an IPv6 range for documentation.
_INSIDE = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "168.63.129.16/32", "192.88.99.0/24", "3fff::/20")))
_NUMERIC = re.compile(r"(0x[0-9a-f]*|\d+)(\.(0x[0-9a-f]*|\d+)){0,3}\.?", re.IGNORECASE)


def is_public(address: Address) -> bool:
    """Whether an address is on the public internet. An IPv4 address embedded in an IPv6 one is judged by itself."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return False
        inner = _inner(address)
        if inner is not None:
            return is_public(inner)
        if address.is_site_local:
            return False
    return address.is_global and not (
        address.is_multicast
        or address.is_reserved
        or address.is_loopback
        or address.is_link_local
        or any(address in network for network in _INSIDE)
    )


def _inner(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address.ipv4_mapped or address.sixtofour:
        return address.ipv4_mapped or address.sixtofour
    if address.teredo:
        return address.teredo[1]
    if address in _NAT64 or address in _COMPATIBLE:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None


def parse_literal(host: str) -> Address | None:
    """The address that a host name spells, in any form that a resolver may accept: 127.1, 0x7f000001, 017700000001."""
    bare = host.removeprefix("[").removesuffix("]")
    try:
        return ipaddress.ip_address(bare)
    except ValueError:
        pass
    if not _NUMERIC.fullmatch(host):
        return None
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host.rstrip(".")))
    except OSError:
        return None
