"""May this request come in? Decided from its headers and from whose connection it is, before a byte of body is read."""

import hmac
import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from ra.core.value import Value
from ra.server.task import Refusal

OPEN = ("/healthz", "/openapi.json")  # tell nothing that is not printed in the documentation

# Somebody else's connection ends at a proxy of ours: whose it is, is no longer known.
_RELAYED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


class Door(Value, frozen=True):
    """`token` opens it from anywhere, and the user `uid` needs none. `local`: it is bound to the loopback only."""

    token: str
    uid: int
    local: bool = True


def admit(door: Door, headers: Mapping[str, str], *, path: str, peer_uid: int | None) -> None:
    """Raises Refusal: 403 for what a browser was tricked into, 401 for who is not known. Names are in lower case."""
    host = headers.get("host", "")
    if door.local and not is_local(host):
        raise Refusal(403, f"Host {host[:100]!r} is not this machine.")
    origin = headers.get("origin")
    if origin is not None and not _same(origin, host):
        raise Refusal(403, "Requests from web pages of another origin are refused.")
    if headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}:
        raise Refusal(403, "Requests from another site are refused.")
    if path in OPEN:
        return
    given = headers.get("authorization")
    if given is not None:  # a wrong token is wrong whoever sends it
        scheme, _, token = given.partition(" ")
        known = hmac.compare_digest(token.strip().encode(), door.token.encode())
        if scheme.casefold() != "bearer" or not known:
            raise Refusal(401, "The token is wrong.")
    elif peer_uid != door.uid or any(name in headers for name in _RELAYED):
        raise Refusal(401, "This needs the token: Authorization: Bearer … (it lies in the data directory).")


def is_local(host: str) -> bool:
    """Whether a Host header names this machine, by a name that no foreign DNS can answer for."""
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


def need_json(headers: Mapping[str, str], *, limit_bytes: int) -> None:
    """A POST is JSON: what a form on a web page can send is not. Raises Refusal: 415, 413."""
    media, _, rest = headers.get("content-type", "").partition(";")
    charset = rest.replace(" ", "").casefold().removeprefix("charset=").strip('"')
    if media.strip().casefold() != "application/json" or charset not in {"", "utf-8", "utf8"}:
        raise Refusal(415, "The body must be JSON in UTF-8: Content-Type: application/json.")
    if headers.get("content-encoding", "identity").casefold() != "identity":
        raise Refusal(415, "The body must not be compressed.")
    length = headers.get("content-length", "0")
    if length.isdigit() and int(length[:20]) > limit_bytes:
        raise too_large(limit_bytes)


def too_large(limit_bytes: int) -> Refusal:
    return Refusal(413, f"The body is larger than {limit_bytes // (1024 * 1024)} MiB.")


def _same(origin: str, host: str) -> bool:
    scheme, slashes, rest = origin.partition("://")
    return bool(slashes) and scheme in {"http", "https"} and rest.casefold() == host.casefold()
