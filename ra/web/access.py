"""Admits browsers: by the rules of `ra serve`, and with a cookie in exchange for the token in the address."""

import hmac
import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie

from ra.server import access
from ra.server.access import AccessRules
from ra.server.task import Refusal

NOBODY = -1  # no user has this id, so only a token admits

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
"""The headers of every response: only our own files run, and nothing leaves the machine."""


class Visitors:
    """Decides who may see the page: those whom the access rules admit, and browsers that presented the token.

    A one-time token is void after its first use; the cookie lets the browser return.
    """

    def __init__(self, access_rules: AccessRules, *, one_time: str = "") -> None:
        self._access_rules = access_rules
        self._one_time = one_time
        self._cookie = secrets.token_urlsafe(32)

    def admit(self, headers: Mapping[str, str], *, path: str, peer_uid: int | None) -> None:
        """Admits a request or raises Refusal: 403, also for missing credentials."""
        if "authorization" not in headers and self._has_cookie(headers):
            headers = {**headers, "authorization": f"Bearer {self._access_rules.token}"}
        try:
            access.admit(self._access_rules, headers, path=path, peer_uid=peer_uid)
        except Refusal as refusal:
            if refusal.status != 401:
                raise
            raise Refusal(403, "This page needs the printed address; run `ra open` again.") from refusal

    def enter(self, token: str, headers: Mapping[str, str], *, path: str) -> str:
        """The cookie for a browser that presents the token. Raises Refusal."""
        as_bearer = {**headers, "authorization": f"Bearer {self._access_rules.token}"}
        access.admit(self._access_rules, as_bearer, path=path, peer_uid=None)  # checks its Host, Origin and site
        expected = self._one_time or self._access_rules.token
        if hmac.compare_digest(token.encode(), expected.encode()):
            if self._one_time:
                self._one_time = secrets.token_urlsafe(32)  # never shown to anybody
        elif not self._has_cookie(headers):
            raise Refusal(403, "This address was valid for one visit. Run `ra open` again for a new one.")
        return f"{self._cookie_name(headers)}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"

    def _has_cookie(self, headers: Mapping[str, str]) -> bool:
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return False
        cookie = cookies.get(self._cookie_name(headers))
        return cookie is not None and hmac.compare_digest(cookie.value.encode(), self._cookie.encode())

    def _cookie_name(self, headers: Mapping[str, str]) -> str:
        """The cookie's name for this port: browsers store cookies per host, so two servers would share a plain name."""
        port = headers.get("host", "").rpartition(":")[2]
        return f"ra-open-{port}" if port.isdigit() else "ra-open"
