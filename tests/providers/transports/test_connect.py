from pathlib import Path
from typing import Any

import pytest

from ra.core.errors import UserError
from ra.providers.account import Account, account
from ra.providers.connect import GETTING_STARTED, choose, connect, model_for, own_server
from ra.providers.scripted import ScriptedProvider
from ra.providers.settings import ProviderSettings

NONE = ProviderSettings()


@pytest.mark.parametrize(
    ("env", "provider"),
    [
        ({"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}, "anthropic"),
        ({"ANTHROPIC_AUTH_TOKEN": "t"}, "anthropic"),
        ({"ANTHROPIC_API_KEY": "  ", "OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k"}, "openai"),
        ({"GEMINI_API_KEY": "k"}, "google"),
        ({"GOOGLE_API_KEY": "k"}, "google"),
        ({"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, "openai-chat"),
        ({"AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com"}, "openai"),
        ({"AWS_BEARER_TOKEN_BEDROCK": "t"}, "anthropic"),
        ({"GOOGLE_GENAI_USE_VERTEXAI": "true"}, "google"),
        ({}, "local"),
    ],
)
def test_the_first_provider_with_a_key_is_chosen(env: dict[str, str], provider: str) -> None:
    assert choose(env, have_local=lambda: True) == provider


def test_the_users_word_comes_before_every_key() -> None:
    assert choose({"ANTHROPIC_API_KEY": "k"}, "google") == "google"


def test_a_key_in_the_configuration_counts() -> None:
    assert choose({}, None, {"google": ProviderSettings(api_key="k")}) == "google"
    assert choose({}, None, {"openai-chat": ProviderSettings(base_url="http://127.0.0.1:1")}) == "openai-chat"


def test_without_key_and_model_there_are_six_lines_on_how_to_get_going() -> None:
    with pytest.raises(UserError) as caught:
        choose({})
    assert str(caught.value) == GETTING_STARTED
    assert caught.value.exit_code == 2
    assert len(GETTING_STARTED.splitlines()) == 6
    assert max(map(len, f"ra: {GETTING_STARTED}".splitlines())) < 80


@pytest.mark.parametrize(
    ("provider", "variable"),
    [
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("openai", "OPENAI_API_KEY"),
        ("openai-chat", "OPENAI_API_KEY"),
        ("google", "GEMINI_API_KEY"),
    ],
)
def test_a_missing_key_is_named(provider: Any, variable: str) -> None:
    with pytest.raises(UserError, match=variable):
        connect(provider, "m", NONE, {}, data_dir=Path("unused"))


@pytest.mark.parametrize(
    ("provider", "settings", "env", "found"),
    [
        (
            "anthropic",
            NONE,
            {"ANTHROPIC_API_KEY": " k\n"},
            Account("anthropic", base_url="https://api.anthropic.com", api_key="k"),
        ),
        (
            "anthropic",
            NONE,
            {
                "ANTHROPIC_AUTH_TOKEN": "t",
                "ANTHROPIC_BASE_URL": "https://gate.example/v1/",
                "ANTHROPIC_CUSTOM_HEADERS": "X-A: 1\nX-B: 2",
            },
            Account("anthropic", base_url="https://gate.example", auth_token="t", headers={"x-a": "1", "x-b": "2"}),
        ),
        ("openai", NONE, {"OPENAI_API_KEY": "k"}, Account("openai", base_url="https://api.openai.com/v1", api_key="k")),
        (
            "openai-chat",
            NONE,
            {"OPENAI_BASE_URL": "http://localhost:8080", "OPENAI_ORG_ID": "o"},
            Account("openai-chat", base_url="http://localhost:8080/v1", headers={"openai-organization": "o"}),
        ),
        (
            "openai-chat",
            ProviderSettings(base_url="https://open.example/api/v4", api_key="mine", headers={"X-A": "1"}, timeout=5),
            {"OPENAI_API_KEY": "other", "OPENAI_BASE_URL": "http://other"},
            Account(
                "openai-chat", base_url="https://open.example/api/v4", api_key="mine", headers={"x-a": "1"}, timeout_s=5
            ),
        ),
        (
            "google",
            NONE,
            {"GEMINI_API_KEY": "a", "GOOGLE_API_KEY": "b", "GOOGLE_GEMINI_BASE_URL": "http://g.example/v1beta"},
            Account("google", base_url="http://g.example", api_key="b"),
        ),
        (
            "openai",
            ProviderSettings(base_url="https://x.openai.azure.com/openai/v1", api_key="k"),
            {},
            Account("openai", base_url="https://x.openai.azure.com/openai/v1", api_key="k"),
        ),
        (
            "openai",
            NONE,
            {
                "AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com",
                "AZURE_OPENAI_API_KEY": "z",
                "AZURE_OPENAI_AD_TOKEN": "t",
            },
            Account("openai", "azure", base_url="https://x.openai.azure.com"),
        ),
        (
            "anthropic",
            ProviderSettings(base_url="https://bedrock-runtime.eu-west-1.amazonaws.com"),
            {"AWS_BEARER_TOKEN_BEDROCK": "t"},
            Account("anthropic", "bedrock", base_url="https://bedrock-runtime.eu-west-1.amazonaws.com", api_key="t"),
        ),
    ],
)
def test_an_account_is_read_as_the_vendors_clients_would(
    provider: Any, settings: ProviderSettings, env: dict[str, str], found: Account
) -> None:
    assert account(provider, settings, env) == found


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel", "nul\x00"])
def test_a_key_that_cannot_be_one_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(UserError, match="OPENAI_API_KEY") as caught:
        account("openai", NONE, {"OPENAI_API_KEY": key})
    assert key not in str(caught.value)


def test_a_server_elsewhere_needs_the_name_of_a_model() -> None:
    with pytest.raises(UserError, match="--model"):
        model_for("openai-chat", None, NONE, {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"})
    assert model_for("openai-chat", "llama", NONE, {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}) == "llama"
    assert model_for("anthropic", None, NONE, {}) == "claude-sonnet-5-5"


def test_a_script_is_played_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "script.json"
    file.write_text('[{"text": "Hello"}]')
    assert isinstance(connect("scripted", str(file), NONE, {}, data_dir=tmp_path), ScriptedProvider)
    with pytest.raises(UserError, match="--model"):
        connect("scripted", None, NONE, {}, data_dir=tmp_path)


def test_a_server_of_ones_own_is_a_compatible_one_that_is_not_openais() -> None:
    ollama, openai = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, {"OPENAI_BASE_URL": "https://api.openai.com/v1"}
    assert own_server("openai-chat", NONE, ollama) == "http://127.0.0.1:1/v1"
    assert own_server("openai-chat", ProviderSettings(base_url="http://box/v1"), openai) == "http://box/v1"
    assert [own_server("openai-chat", NONE, env) for env in (openai, {})] == ["", ""]
    assert own_server("openai", NONE, ollama) == ""
