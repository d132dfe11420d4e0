"""Decides from a request's headers and its connection whether to admit it, before any byte of the body is read."""

import hmac
from collections.abc import Mapping

from ra.core.value import Value
from ra.server.task import Refusal
from ra.system.loopback import cross_site_reason

OPEN = ("/healthz", "/livez", "/openapi.json")  # reveal nothing that is not in the documentation

# If these are present, a proxy of ours accepted the connection: its user is unknown.
_RELAYED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


class AccessRules(Value, frozen=True):
    """`token` admits any request; the user `uid` needs none. `local`: the server listens on the loopback only."""

    token: str
    uid: int
    local: bool = True


def admit(access_rules: AccessRules, headers: Mapping[str, str], *, path: str, peer_uid: int | None) -> None:
    """Raises Refusal: 403 for what a browser was tricked into, 401 for an unknown client. Names are lower case."""
    if reason := cross_site_reason(headers, local=access_rules.local):
        raise Refusal(403, reason)
    if path in OPEN:
        return
    authorization = headers.get("authorization")
    if authorization is not None:  # a wrong token is refused, whoever sends it
        scheme, _, token = authorization.partition(" ")
        has_token = hmac.compare_digest(token.strip().encode(), access_rules.token.encode())
        if scheme.casefold() != "bearer" or not has_token:
            raise Refusal(401, "The token is wrong.")
    elif peer_uid != access_rules.uid or any(name in headers for name in _RELAYED):
        raise Refusal(
            401, "A token is needed: Authorization: Bearer … (the token is in serve.token in the data directory)."
        )


def need_json(headers: Mapping[str, str], *, limit_bytes: int) -> None:
    """A POST must be JSON, which a form on a web page cannot send. Raises Refusal: 415, 413."""
    media, _, parameters = headers.get("content-type", "").partition(";")
    charset = parameters.replace(" ", "").casefold().removeprefix("charset=").strip('"')
    if media.strip().casefold() != "application/json" or charset not in {"", "utf-8", "utf8"}:
        raise Refusal(415, "The body must be JSON in UTF-8: Content-Type: application/json.")
    if headers.get("content-encoding", "identity").casefold() != "identity":
        raise Refusal(415, "The body must not be compressed.")
    length = headers.get("content-length", "0")
    if length.isdigit() and int(length[:20]) > limit_bytes:
        raise too_large(limit_bytes)


def too_large(limit_bytes: int) -> Refusal:
    return Refusal(413, f"The body is larger than {limit_bytes // (1024 * 1024)} MiB.")
