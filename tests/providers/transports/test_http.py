import asyncio
import ssl
import time
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from ra.core.errors import AuthFailed, BadStream, ProviderError, Unavailable, UserError
from ra.core.model import ModelInfo
from ra.providers.client import WireProvider
from ra.providers.retry import Retries
from ra.providers.transports.http import HttpTransport, join
from ra.providers.wire import SENT
from tests.providers.transports.raw import END, HELLO, REQUEST, EchoDialect, RawServer, answer

GOOD = answer(HELLO, END)
HEARD = [{"text": "Hello"}, {"end": True}]


async def call(transport: HttpTransport, body: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    sent, *events = [event async for event in transport.events(EchoDialect(), REQUEST, body or {"model": "m"})]
    assert sent is SENT
    return [event for event in events if event is not SENT]  # again, where a kept connection had been dropped


def one(*pieces: Any, **options: Any) -> list[dict[str, Any]]:
    """The events of a single call that is answered with these pieces."""

    async def main() -> list[dict[str, Any]]:
        async with RawServer([pieces]).running() as server:
            transport = HttpTransport(server.url, **options)
            try:
                return await call(transport)
            finally:
                await transport.close()

    return asyncio.run(main())


def test_events_come_as_dicts() -> None:
    assert one(*GOOD) == HEARD


def test_a_stream_in_single_bytes_is_the_same_stream() -> None:
    assert one(*(bytes([byte]) for byte in b"".join(GOOD))) == HEARD


def test_what_follows_done_is_not_an_event() -> None:
    assert one(*answer(HELLO, b"data: [DONE]\n\n", b"data: nonsense\n\n")) == HEARD[:1]


def test_an_answer_without_length_ends_with_its_connection() -> None:
    assert one(b"HTTP/1.1 200 OK\r\n\r\n" + HELLO + END, None) == HEARD


def test_an_answer_that_does_not_stream_is_one_event() -> None:
    assert one(*answer(b'{"text": "whole"}', kind="application/json; charset=utf-8")) == [{"text": "whole"}]


def test_interim_answers_are_passed_over() -> None:
    assert one(b"HTTP/1.1 100 Continue\r\n\r\n", *GOOD) == HEARD


def test_the_request_is_ours_to_the_byte() -> None:
    async def main() -> RawServer:
        async with RawServer([GOOD]).running() as server:
            transport = HttpTransport(server.url + "/proxy/", api_key="k", headers={"X-Team": "a", "User-Agent": "me"})
            await call(transport, {"b": "ü", "a": [1, None]})
            await transport.close()
            return server

    server = asyncio.run(main())
    asked = server.asked[0]
    assert asked.line == "POST /proxy/v1/messages HTTP/1.1"
    assert asked.body == '{"b":"ü","a":[1,null]}'.encode()
    assert asked.headers == {
        "host": server.url.removeprefix("http://"),
        "user-agent": "me",
        "accept": "text/event-stream, application/json",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "content-length": "23",
        "x-api-key": "k",
        "x-team": "a",
    }


@pytest.mark.parametrize(
    ("prefix", "path", "complete", "whole"),
    [
        ("", "/v1/messages", False, "/v1/messages"),
        ("/v1", "/v1/messages", False, "/v1/messages"),
        ("/team/v1", "/v1/messages", False, "/team/v1/messages"),
        ("/proxy", "/v1/messages", False, "/proxy/v1/messages"),
        ("/v1", "/v1/responses", True, "/v1/responses"),
        ("", "/v1/chat/completions", True, "/v1/chat/completions"),
        ("/api/paas/v4", "/v1/chat/completions", True, "/api/paas/v4/chat/completions"),
        ("/v1beta/openai", "/v1/chat/completions", True, "/v1beta/openai/chat/completions"),
        (
            "/v1beta",
            "/v1beta/models/g:streamGenerateContent?alt=sse",
            False,
            "/v1beta/models/g:streamGenerateContent?alt=sse",
        ),
        ("", "/v1beta/models/a b", False, "/v1beta/models/a%20b"),
    ],
)
def test_a_call_stands_below_its_base_url(prefix: str, path: str, complete: bool, whole: str) -> None:
    assert join(prefix, path, complete=complete) == whole


@pytest.mark.parametrize(
    "url", ["", "api.example.com", "ftp://x", "http://", "http://h:99999", "http://u:p@h", "http://h?q=1"]
)
def test_a_base_url_that_cannot_work_is_refused(url: str) -> None:
    with pytest.raises(UserError):
        HttpTransport(url)


# Connections


def calls(answers: list[Any], count: int) -> tuple[list[Any], list[int]]:
    """What `count` calls over one transport heard, and which connection each of them took."""

    async def main() -> tuple[list[Any], list[int]]:
        async with RawServer(answers).running() as server:
            transport = HttpTransport(server.url, timeout_s=2)
            heard = []
            for _ in range(count):
                heard.append(await call(transport))
                await asyncio.sleep(0.01)
            await transport.close()
            return heard, [asked.connection for asked in server.asked]

    return asyncio.run(main())


def test_one_connection_serves_call_after_call() -> None:
    assert calls([GOOD, GOOD, GOOD], 3) == ([HEARD] * 3, [1, 1, 1])


def test_a_connection_that_the_server_dropped_is_replaced_without_a_word() -> None:
    assert calls([[*GOOD, None], GOOD], 2) == ([HEARD] * 2, [1, 2])


def test_a_connection_that_dies_under_the_next_request_is_replaced_without_a_word() -> None:
    assert calls([GOOD, [None], GOOD], 2) == ([HEARD] * 2, [1, 1, 2])


def test_a_new_connection_that_dies_is_an_error() -> None:
    with pytest.raises(Unavailable, match="closed the connection without an answer"):
        calls([[None]], 1)


def test_connection_close_is_obeyed() -> None:
    closing = answer(HELLO, END, headers="Connection: close\r\n")
    assert calls([closing, GOOD], 2) == ([HEARD] * 2, [1, 2])


def test_a_stream_that_does_not_end_after_done_costs_its_connection_only() -> None:
    open_ended = answer(HELLO, b"data: [DONE]\n\n")[:-1]
    started = time.monotonic()
    heard, connections = calls([[*open_ended, ...], GOOD], 2)
    assert (heard, connections) == ([HEARD[:1], HEARD], [1, 2])
    assert time.monotonic() - started < 30


def test_calls_at_the_same_time_take_a_connection_each() -> None:
    async def main() -> int:
        async with RawServer([[0.05, *GOOD]] * 3).running() as server:
            transport = HttpTransport(server.url)
            assert await asyncio.gather(*(call(transport) for _ in range(3))) == [HEARD] * 3
            await transport.close()
            return server.connections

    assert asyncio.run(main()) == 3


def test_a_transport_outlives_its_event_loop() -> None:
    transport: list[HttpTransport] = []

    async def main() -> list[dict[str, Any]]:
        async with RawServer([GOOD]).running() as server:
            if not transport:
                transport.append(HttpTransport(server.url))
            transport[0]._server = HttpTransport(server.url)._server
            return await call(transport[0])

    assert [asyncio.run(main()), asyncio.run(main())] == [HEARD, HEARD]


@pytest.mark.parametrize("pieces", [[...], [*GOOD[:2], ...]], ids=["before the answer", "inside it"])
def test_cancelling_closes_the_socket_at_once(pieces: list[Any]) -> None:
    async def main() -> float:
        async with RawServer([pieces]).running() as server:
            task = asyncio.create_task(call(HttpTransport(server.url)))
            await asyncio.sleep(0.05)
            started = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while not server.gone:
                await asyncio.sleep(0.001)
            return time.monotonic() - started

    assert asyncio.run(main()) < 0.2


def test_a_caller_who_has_heard_enough_closes_the_socket() -> None:
    async def main() -> int:
        async with RawServer([[*GOOD[:2], ...]]).running() as server:
            async with aclosing(HttpTransport(server.url).events(EchoDialect(), REQUEST, {})) as events:
                async for _ in events:
                    break
            await asyncio.sleep(0.02)
            return server.gone

    assert asyncio.run(main()) == 1


# What goes wrong


def test_silence_before_the_answer_is_unavailable() -> None:
    with pytest.raises(Unavailable, match=r"sent nothing for 0.05 s"):
        one(..., timeout_s=0.05)


def test_silence_inside_the_answer_is_a_bad_stream() -> None:
    with pytest.raises(BadStream, match=r"sent nothing for 0.05 s"):
        one(*GOOD[:2], ..., timeout_s=0.05)


def test_slow_but_steady_is_no_stall() -> None:
    assert one(*(piece for part in GOOD for piece in (0.03, part)), timeout_s=0.1) == HEARD


@pytest.mark.parametrize(
    ("drip", "reason"),
    [((0.02, answer(HELLO)[1]), "no complete answer within 0.9 s"), ((0.02, answer(b":")[1]), "no event for 0.3 s")],
)
def test_an_answer_that_drips_has_an_end(drip: tuple[Any, ...], reason: str) -> None:
    async def main() -> None:
        async with RawServer([[*GOOD[:1], *drip * 5000]]).running() as server:
            transport = HttpTransport(server.url, timeout_s=0.3)
            provider = WireProvider(EchoDialect(), transport, ModelInfo, Retries(tries=1), timeout_s=0.3)
            try:
                async for _ in provider.stream(REQUEST):
                    pass
            finally:
                await provider.close()

    began = time.monotonic()
    with pytest.raises(BadStream, match=reason):
        asyncio.run(main())
    assert time.monotonic() - began < 50


@pytest.mark.parametrize("at", range(0, len(b"".join(GOOD)), 7))
def test_a_cut_anywhere_is_told_as_one(at: int) -> None:
    whole = b"".join(GOOD)
    with pytest.raises((Unavailable, BadStream)) as caught:
        one(whole[:at], None)
    answered = at >= whole.index(b"\r\n\r\n") + 4
    assert isinstance(caught.value, BadStream if answered else Unavailable)


@pytest.mark.parametrize(
    "noise", [b"\x00\xff\xfe" * 50, b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 abc\r\n\r\n", b"x" * 200_000]
)
def test_a_server_that_speaks_no_http_is_unavailable(noise: bytes) -> None:
    with pytest.raises(Unavailable):
        one(noise, None)


@pytest.mark.parametrize("noise", [b"data: {oops\n\n", b"data: \xff\xfe\n\n", b"data: 7\n\n"])
def test_garbage_in_the_stream_is_a_bad_stream(noise: bytes) -> None:
    with pytest.raises(BadStream):
        one(*answer(HELLO, noise))


def test_a_web_page_is_told_as_one() -> None:
    with pytest.raises(ProviderError, match="is the base URL right"):
        one(*answer(b"<html>login</html>", kind="text/html"))


def test_an_error_status_is_translated() -> None:
    with pytest.raises(AuthFailed, match="no such key"):
        one(*answer(b'{"error": {"message": "no such key"}}', status="401 Unauthorized", kind="application/json"))


def test_a_retry_time_comes_from_the_headers() -> None:
    with pytest.raises(Unavailable) as caught:
        one(*answer(b"{}", status="429 Slow", headers="Retry-After: 7\r\n"))
    assert (caught.value.status, caught.value.retry_after_s) == (429, 7.0)


def test_a_refusal_is_read_while_a_large_body_still_goes_out() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 401 No\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
        await writer.drain()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        transport = HttpTransport(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        try:
            await call(transport, {"text": "x" * 20_000_000})
        finally:
            server.close()

    with pytest.raises(AuthFailed):
        asyncio.run(main())


def test_an_error_without_end_is_read_to_a_bound() -> None:
    endless = [b"HTTP/1.1 500 No\r\n\r\n", *([b"x" * 65_536] * 400)]
    with pytest.raises(Unavailable) as caught:
        one(*endless, ...)  # who reads to the end waits for ever
    assert len(str(caught.value)) < 2000


def test_an_error_whose_body_stalls_is_told_by_its_status() -> None:
    with pytest.raises(Unavailable, match="503"):
        one(b"HTTP/1.1 503 No\r\nContent-Length: 10\r\n\r\n", ..., timeout_s=0.05)


def test_a_redirect_is_told_and_not_followed() -> None:
    moved = answer(b"", status="307 Temporary Redirect", headers="Location: https://elsewhere.example/\r\n")
    with pytest.raises(ProviderError, match=r"points to https://elsewhere\.example/.*key would travel") as caught:
        one(*moved)
    assert caught.value.status == 307


def test_a_wrong_path_is_shown() -> None:
    with pytest.raises(ProviderError, match=r"\(http://127\.0\.0\.1:\d+/v1/messages\)"):
        one(*answer(b"not here", status="404 Not Found", kind="text/plain"))


def test_nobody_listening_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="Nothing listens at"):
        asyncio.run(call(HttpTransport("http://127.0.0.1:9")))


def test_an_unknown_host_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="cannot be found"):
        asyncio.run(call(HttpTransport("http://no-such-host.invalid")))


def test_a_key_that_cannot_stand_in_a_header_is_not_shown() -> None:
    with pytest.raises(UserError) as caught:
        asyncio.run(call(HttpTransport("http://127.0.0.1:9", api_key="secret\nX: y")))
    assert "secret" not in str(caught.value)


# Proxies and certificates


def test_plain_http_goes_through_the_proxy_whole() -> None:
    async def main() -> RawServer:
        async with RawServer([GOOD]).running() as proxy:
            env = {"http_proxy": proxy.url.replace("http://", "http://me:p%40ss@")}
            assert await call(HttpTransport("http://model.example", env=env)) == HEARD
            return proxy

    asked = asyncio.run(main()).asked[0]
    assert asked.line == "POST http://model.example/v1/messages HTTP/1.1"
    assert asked.headers["proxy-authorization"] == "Basic bWU6cEBzcw=="


@pytest.mark.parametrize("no_proxy", ["*", "model.example", ".example", "a.b, example", "model.example:80"])
def test_no_proxy_is_obeyed(no_proxy: str) -> None:
    env = {"HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": no_proxy}
    with pytest.raises(Unavailable, match=r"The host model\.example cannot be found"):
        asyncio.run(call(HttpTransport("http://model.example", env=env)))


@pytest.mark.parametrize("no_proxy", ["", "odel.example", "example.org", "model.example:81"])
def test_a_proxy_serves_whom_no_exception_names(no_proxy: str) -> None:
    env = {"HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": no_proxy}
    with pytest.raises(Unavailable, match=r"No connection to proxy 127\.0\.0\.1:9"):
        asyncio.run(call(HttpTransport("http://model.example", env=env)))


def test_loopback_never_goes_through_a_proxy() -> None:
    assert one(*GOOD, env={"HTTP_PROXY": "http://127.0.0.1:9", "ALL_PROXY": "http://127.0.0.1:9"}) == HEARD


def test_a_socks_proxy_is_refused_with_the_ways_around() -> None:
    with pytest.raises(UserError, match="NO_PROXY"):
        HttpTransport("https://model.example", env={"HTTPS_PROXY": "socks5://127.0.0.1:1080"})


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for model.example and 127.0.0.1, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test")])
    now = datetime.now(UTC)
    names: list[x509.GeneralName] = [x509.DNSName("model.example"), x509.IPAddress(ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file = tmp_path_factory.mktemp("tls") / "cert.pem"
    file.write_bytes(secret + made.public_bytes(Encoding.PEM))
    return file


def server_context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def test_https_works_with_a_certificate_that_is_trusted(certificate: Path) -> None:
    async def main() -> list[Any]:
        async with RawServer([GOOD, GOOD]).running(ssl=server_context(certificate)) as server:
            transport = HttpTransport(server.url, trust=lambda: ssl.create_default_context(cafile=str(certificate)))
            heard = [await call(transport), await call(transport), server.connections]
            await transport.close()
            return heard

    assert asyncio.run(main()) == [HEARD, HEARD, 1]


def test_a_certificate_that_is_not_trusted_is_no_matter_of_trying_again(certificate: Path) -> None:
    async def main() -> None:
        async with RawServer([GOOD]).running(ssl=server_context(certificate)) as server:
            await call(HttpTransport(server.url))

    with pytest.raises(ProviderError, match="SSL_CERT_FILE") as caught:
        asyncio.run(main())
    assert type(caught.value) is ProviderError


def proxied(certificate: Path, greeting: bytes) -> tuple[list[str], list[Any]]:
    """A call to https://model.example through a proxy that greets so; what the proxy was asked, and what was heard."""
    lines: list[str] = []

    async def main() -> list[Any]:
        async with RawServer([GOOD]).running(ssl=server_context(certificate)) as server:

            async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                lines.extend((await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n"))
                writer.write(greeting)
                if b" 200 " not in greeting:
                    writer.close()
                    return
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
                await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))

            proxy = await asyncio.start_server(tunnel, "127.0.0.1", 0)
            env = {"HTTPS_PROXY": f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"}
            trust = partial(ssl.create_default_context, cafile=str(certificate))
            transport = HttpTransport("https://model.example", env=env, trust=trust)
            try:
                return await call(transport)
            finally:
                await transport.close()
                proxy.close()

    return lines, asyncio.run(main())


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(65_536):
        writer.write(chunk)
    writer.close()


def test_https_goes_through_a_tunnel(certificate: Path) -> None:
    lines, heard = proxied(certificate, b"HTTP/1.1 200 Connection established\r\n\r\n")
    assert lines[0] == "CONNECT model.example:443 HTTP/1.1"
    assert heard == HEARD


def test_a_proxy_that_wants_a_password_is_told_so(certificate: Path) -> None:
    with pytest.raises(ProviderError, match="user:password@"):
        proxied(certificate, b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")


def test_a_proxy_that_refuses_is_unavailable(certificate: Path) -> None:
    with pytest.raises(Unavailable, match=r"refused the connection to model\.example:443 with 502"):
        proxied(certificate, b"HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n")
