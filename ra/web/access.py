"""Lets a browser in: the rules of `ra serve`, and a cookie in exchange for the token in the address."""

import hmac
import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie

from ra.server import access
from ra.server.access import AccessRules
from ra.server.task import Refusal

NOBODY = -1  # no user has this id: with it only a token is let in

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""On every answer: nothing but our own files runs, and nothing leaves the machine."""


class Visitors:
    """Who may see the page: whoever the access rules let in, and a browser that came with the token.

    A token that opens once is void after its first use; the cookie lets the browser come back.
    """

    def __init__(self, access_rules: AccessRules, *, one_time: str = "") -> None:
        self._access_rules = access_rules
        self._one_time = one_time
        self._cookie = secrets.token_urlsafe(32)

    def admit(self, headers: Mapping[str, str], *, path: str, peer_uid: int | None) -> None:
        """Raises Refusal: 403, whatever is missing."""
        if "authorization" not in headers and self._returns(headers):
            headers = {**headers, "authorization": f"Bearer {self._access_rules.token}"}
        try:
            access.admit(self._access_rules, headers, path=path, peer_uid=peer_uid)
        except Refusal as refusal:
            if refusal.status != 401:
                raise
            raise Refusal(403, "This page needs the address that was printed; run `ra open` again.") from refusal

    def enter(self, token: str, headers: Mapping[str, str], *, path: str) -> str:
        """The cookie for a browser that brings the token. Raises Refusal."""
        as_bearer = {**headers, "authorization": f"Bearer {self._access_rules.token}"}
        access.admit(self._access_rules, as_bearer, path=path, peer_uid=None)  # its Host, Origin and site
        expected = self._one_time or self._access_rules.token
        if hmac.compare_digest(token.encode(), expected.encode()):
            if self._one_time:
                self._one_time = secrets.token_urlsafe(32)  # nobody is ever told
        elif not self._returns(headers):
            raise Refusal(403, "This address worked once, for the visit before. Run `ra open` again for a new one.")
        return f"{self._name(headers)}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"

    def _returns(self, headers: Mapping[str, str]) -> bool:
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return False
        cookie = cookies.get(self._name(headers))
        return cookie is not None and hmac.compare_digest(cookie.value.encode(), self._cookie.encode())

    def _name(self, headers: Mapping[str, str]) -> str:
        """Browsers keep cookies by host, for all its ports: two servers must not overwrite each other's."""
        port = headers.get("host", "").rpartition(":")[2]
        return f"ra-open-{port}" if port.isdigit() else "ra-open"
