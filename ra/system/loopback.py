"""Decides whether a request to a server on this machine comes from this machine and not from a foreign web page."""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit


def cross_site_reason(headers: Mapping[str, str], *, local: bool = True) -> str:
    """Why a browser may have been tricked into this request; "" when there is no sign of it.

    Header names are in lower case. `local`: the server is bound to the loopback, so every Host but a loopback name was
    pointed at it (DNS rebinding).
    """
    host = headers.get("host", "")
    if local and not is_local(host):
        return f"Host {host[:100]!r} is not this machine."
    origin = headers.get("origin")
    if origin is not None and not _same(origin, host):
        return "Requests from web pages of another origin are refused."
    if headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}:
        return "Requests from another site are refused."
    return ""


def is_local(host: str) -> bool:
    """Whether a Host header names this machine, by a name that no foreign DNS server can answer for."""
    try:
        parts = urlsplit(f"//{host}")
        name, _ = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return False
    if parts.path or parts.query or parts.fragment or "@" in parts.netloc:
        return False
    return name == "localhost" or is_loopback(name)


def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _same(origin: str, host: str) -> bool:
    scheme, slashes, address = origin.partition("://")
    return bool(slashes) and scheme in {"http", "https"} and address.casefold() == host.casefold()
