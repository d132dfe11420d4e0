"""Does the whole case table come out the same over both transports, and does each of them send our body?"""

import asyncio
from typing import Any

import pytest

from ra.core.errors import BadStream, ProviderError
from ra.core.model import Reply
from ra.core.value import JsonObject
from ra.providers.account import account
from ra.providers.client import WireProvider
from ra.providers.connect import carrier
from ra.providers.dialects import dialect as dialect_of
from ra.providers.retry import Retries
from ra.providers.settings import ProviderSettings
from ra.testing import LoopbackServer
from tests.providers.cases import CASES, DIALECTS, Case, Raises


def ask(case: Case, dialect: Any, transport: Any) -> tuple[Reply | ProviderError, list[JsonObject]]:
    """What comes of the case, without a second try, and the bodies that the server got."""

    async def main(server: LoopbackServer) -> Reply | ProviderError:
        found = account(dialect, ProviderSettings(base_url=server.url, api_key="key"), {})
        provider = WireProvider(
            dialect_of(dialect), carrier(found, transport, {}), lambda _: case.info, Retries(tries=1)
        )
        try:
            *_, last = [item async for item in provider.stream(case.request(dialect))]
        except ProviderError as error:
            return error
        finally:
            await provider.close()
        assert isinstance(last, Reply)
        return last

    with LoopbackServer(dialect, [case.step], chunk=5) as server:
        return asyncio.run(main(server)), server.bodies


@pytest.mark.parametrize("transport", ["http", "sdk"])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_comes_out_the_same_over_every_transport(case: Case, dialect: str, transport: str) -> None:
    request = case.request(dialect)
    wanted = case.outcome(dialect)
    got, bodies = ask(case, dialect, transport)
    if isinstance(wanted, Raises):
        # What breaks after something was said is a BadStream that carries it; its cause tells the kind.
        assert isinstance(got, wanted.kind | BadStream)
        assert isinstance(got, wanted.kind) or isinstance(got.__cause__, wanted.kind)
    else:
        assert got == wanted
    ours = dialect_of(dialect).body(request, case.info)
    assert bodies == [ours] or (dialect == "google" and [plain(body) for body in bodies] == [plain(ours)])


def plain(value: Any, key: str = "") -> Any:
    """A body as Google reads it: names in snake or camel case, base64 in either alphabet; its client mixes them."""
    if isinstance(value, dict):
        return {camel(name): plain(item, camel(name)) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.replace("-", "+").replace("_", "/") if key in ("data", "thoughtSignature") else value


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
