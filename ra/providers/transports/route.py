"""Determines the route to a server: the parts of its URL, the proxy, the trusted certificates."""

import base64
import ssl  # costs nothing: asyncio has loaded it
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit

from ra.core.errors import UserError
from ra.core.value import Value

CERTIFICATES = "If your network re-signs traffic, set SSL_CERT_FILE to its certificates."
"""Advice for a certificate that is not trusted."""


class Destination(Value, frozen=True):
    """The destination of a connection. `path` lies between the host and the path of a call."""

    host: str
    port: int
    secure: bool
    path: str = ""

    @property
    def origin(self) -> str:
        """The value of the Host header: without the default port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"


class Proxy(Value, frozen=True):
    host: str
    port: int
    authorization: str = ""


def server(base_url: str) -> Destination:
    """The server of a base URL. Raises UserError if this is not a plain http(s) URL."""
    try:
        parts = urlsplit(base_url.strip())
        port = parts.port
    except ValueError as error:
        raise UserError(
            f"Base URL {base_url!r} cannot be read: {error}; it should look like https://host[:port][/path]."
        ) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(f"Base URL {base_url!r} is not usable; it should look like https://host[:port][/path].")
    if parts.query or parts.fragment or parts.username or parts.password is not None:
        raise UserError("A base URL has no user, query or fragment; put keys into apiKey and the rest into headers.")
    secure = parts.scheme == "https"
    return Destination(parts.hostname, port or (443 if secure else 80), secure, parts.path.rstrip("/"))


def proxy(target: Destination, env: Mapping[str, str]) -> Proxy | None:
    """The proxy for this server, from the environment. Loopback never uses one. Raises UserError."""
    if _is_loopback(target.host) or _is_excepted(target, _setting(env, "no_proxy")):
        return None
    url = _setting(env, "https_proxy" if target.secure else "http_proxy") or _setting(env, "all_proxy")
    if not url:
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme != "http" or not parts.hostname:
        raise UserError(
            f"Only http:// proxies are supported, not {parts.scheme}://{parts.hostname or ''}; "
            "change HTTPS_PROXY, list the host in NO_PROXY, or set agent.transport to sdk."
        )
    authorization = ""
    if parts.username:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = "Basic " + base64.b64encode(pair.encode()).decode()
    return Proxy(parts.hostname, parts.port or 80, authorization)


def trust() -> ssl.SSLContext:
    """The trusted certificates: the system's, or certifi's if the system has none."""
    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    # A folder of certificates is read on demand, so it does not appear in the statistics.
    if not context.cert_store_stats()["x509_ca"] and not paths.capath:
        import certifi  # start-up time: rarely needed

        context.load_verify_locations(certifi.where())
    return context


def _setting(env: Mapping[str, str], name: str) -> str:
    return (env.get(name) or env.get(name.upper()) or "").strip()


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _is_excepted(target: Destination, no_proxy: str) -> bool:
    """Whether NO_PROXY lists the server, as in curl: `*`, or domains with their subdomains, with or without a port."""
    for entry in (entry.strip().lower() for entry in no_proxy.split(",")):
        name, _, port = entry.partition(":") if entry.count(":") == 1 else (entry, "", "")
        if port and port != str(target.port):
            continue
        name = name.removeprefix("*").strip("[]").lstrip(".")
        if entry == "*" or (name and (target.host == name or target.host.endswith("." + name))):
            return True
    return False
