"""Do the vendors' clients for Bedrock, Vertex, Foundry and Azure get our body, at its place, with the right key?"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from ra.core.errors import AuthFailed, UserError
from ra.core.messages import say
from ra.core.model import Request
from ra.providers.connect import connect
from ra.providers.settings import ProviderSettings
from tests.providers.transports.raw import Asked, RawServer, answer

REFUSAL = answer(b'{"error": {"message": "no such key"}}', status="401 Unauthorized", kind="application/json")


def asked(provider: Any, model: str, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Asked:
    """The request of one call in this environment, in which {url} stands for a server."""

    async def main() -> Asked:
        async with RawServer([REFUSAL]).running() as server:
            full = {name: value.replace("{url}", server.url) for name, value in env.items()}
            for name, value in full.items():
                monkeypatch.setenv(name, value)  # the vendors' clients read it themselves
            made = connect(provider, model, ProviderSettings(), full, data_dir=Path("unused"))
            with pytest.raises(AuthFailed, match="no such key"):
                async for _ in made.stream(Request(model, (), (say("user", "hi"),))):
                    pass
            await made.close()
            return server.asked[0]

    return asyncio.run(main())


def test_bedrock(monkeypatch: pytest.MonkeyPatch) -> None:
    env = {"ANTHROPIC_BEDROCK_BASE_URL": "{url}", "AWS_BEARER_TOKEN_BEDROCK": "t", "AWS_REGION": "us-east-1"}
    got = asked("anthropic", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", env, monkeypatch)
    path = "/model/us.anthropic.claude-sonnet-4-5-20250929-v1:0/invoke-with-response-stream"
    assert got.line == f"POST {path} HTTP/1.1"
    assert got.headers["authorization"] == "Bearer t"
    assert json.loads(got.body)["messages"] == [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]


def test_foundry(monkeypatch: pytest.MonkeyPatch) -> None:
    env = {"ANTHROPIC_FOUNDRY_BASE_URL": "{url}/anthropic/", "ANTHROPIC_FOUNDRY_API_KEY": "k"}
    got = asked("anthropic", "claude-sonnet-4-6", env, monkeypatch)
    assert got.line == "POST /anthropic/v1/messages HTTP/1.1"
    assert "k" in (got.headers.get("x-api-key"), got.headers.get("api-key"))


@pytest.mark.parametrize(
    ("provider", "path"),
    [("openai", "/openai/responses"), ("openai-chat", "/openai/deployments/gpt-5/chat/completions")],
)
def test_azure(provider: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    env = {"AZURE_OPENAI_ENDPOINT": "{url}", "AZURE_OPENAI_API_KEY": "k", "OPENAI_API_VERSION": "2026-01-01"}
    got = asked(provider, "gpt-5", env, monkeypatch)
    assert got.line == f"POST {path}?api-version=2026-01-01 HTTP/1.1"
    assert got.headers["api-key"] == "k"


@pytest.mark.parametrize("provider", ["anthropic", "google"])
def test_vertex_without_credentials_says_so(provider: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    env = {
        "ANTHROPIC_VERTEX_PROJECT_ID": "p",
        "CLOUD_ML_REGION": "global",
        "GOOGLE_GENAI_USE_VERTEXAI": "true",
        "GOOGLE_CLOUD_PROJECT": "p",
        "GOOGLE_CLOUD_LOCATION": "global",
        "GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "missing.json"),
    }
    for name, value in env.items():
        monkeypatch.setenv(name, value)

    async def main() -> None:
        made = connect(provider, "m", ProviderSettings(), env, data_dir=Path("unused"))
        async for _ in made.stream(Request("m", (), (say("user", "hi"),))):
            pass

    with pytest.raises((AuthFailed, UserError), match=r"missing\.json"):
        asyncio.run(main())


def test_a_platform_is_not_reached_by_our_own_bytes() -> None:
    env = {"AWS_BEARER_TOKEN_BEDROCK": "t"}
    with pytest.raises(UserError, match=r"set agent\.transport to sdk or auto"):
        connect("anthropic", "m", ProviderSettings(), env, transport="http", data_dir=Path("unused"))
