"""The model's name chooses the provider: known names, short names, `provider/model`, near misses."""

import re

import pytest
from genai_prices import data_snapshot

from ra.providers import catalog, model_choice
from ra.providers.model_choice import ModelChoice, UnknownModel
from ra.providers.settings import ProviderSettings
from ra.providers.vendors import VENDORS

BOTH = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}
GATEWAY = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}


@pytest.mark.parametrize(
    ("name", "model", "provider"),
    [
        ("gpt-5", "gpt-5", "openai"),
        ("gpt-5-2025-08-07", "gpt-5-2025-08-07", "openai"),
        ("gpt-9.9", "gpt-9.9", "openai"),  # newer than the catalog
        ("claude-opus-4-6", "claude-opus-4-6", "anthropic"),
        ("gemini-2.5-pro", "gemini-2.5-pro", "google"),
        ("opus", "claude-opus-5-5", "anthropic"),
        ("GPT", "gpt-6.1-sol", "openai"),
        ("openai/my-own", "my-own", "openai"),
        ("openai-chat/qwen", "qwen", "openai-chat"),
        ("my-own", "my-own", "anthropic"),  # nobody knows it: whoever is in force
        ("qwen3-coder", "qwen3-coder", "anthropic"),  # open models have no vendor
        ("models/tiny.gguf", "models/tiny.gguf", "local"),
    ],
)
def test_a_name_goes_to_its_vendor(name: str, model: str, provider: str) -> None:
    choice = model_choice.choose(name, "anthropic", {}, BOTH, asked_for=False)
    assert choice == ModelChoice(model, provider)


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("Claude-Opus-4-5", "claude-opus-4-5"),
        ("anthropic/claude-opus-4.5", "claude-opus-4-5"),
        ("GPT-5", "gpt-5"),
        ("My-Own", "My-Own"),
    ],
)
def test_a_vendor_is_asked_in_its_own_spelling(typed: str, sent: str) -> None:
    assert model_choice.choose(typed, "anthropic", {}, BOTH, asked_for=False).model == sent


@pytest.mark.parametrize(
    "name", ["anthropic/claude-opus-5", "claude-opus-5", "claude-opus-4.5", "GPT-5", "gpt5", "my-own", "gpt-5", "opus4"]
)
def test_a_gateway_is_asked_by_the_name_as_it_is(name: str) -> None:
    assert model_choice.choose(name, "openai-chat", {}, GATEWAY, asked_for=False) == ModelChoice(name, "openai-chat")


def test_a_vendor_with_a_key_is_preferred_to_a_gateway_that_was_only_found() -> None:
    env = BOTH | {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}
    assert model_choice.choose("gpt-5", "anthropic", {}, env, asked_for=False).provider == "openai"


def test_a_provider_that_was_named_along_with_the_model_is_asked() -> None:
    settings: dict[str, ProviderSettings] = {}
    assert model_choice.choose("gpt-5", "anthropic", settings, BOTH, asked_for=True) == ModelChoice(
        "gpt-5", "anthropic"
    )
    assert model_choice.choose("anthropic/opus", "anthropic", settings, BOTH, asked_for=True) == ModelChoice(
        "claude-opus-5-5", "anthropic"
    )


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("gpt5", "gpt-5"),
        ("gpt4o", "gpt-4o"),
        ("claude-sonet-5", "claude-sonnet-5"),
        ("claude-sonnet-46", "claude-sonnet-4-6"),
        ("gemini-flash-2.5", "gemini-2.5-flash"),
        ("claude-opus", "claude-opus-5-5"),
        ("claude", "claude-sonnet-5-5"),
        ("chatgpt", "gpt-6.1-sol"),
        ("sonet", "claude-sonnet-5-5"),
        ("opus4", "claude-opus-4"),
        ("opus 4.5", "claude-opus-4-5"),
        ("haiku-3.5", "claude-3-5-haiku"),
        ("sonnet-4-20250514", "claude-sonnet-4-20250514"),
        ("claude-4", "claude-sonnet-4-6"),
        ("opus-99", "claude-opus-99"),  # a new number of a known family
        ("openai:gpt-5", "openai/gpt-5"),
        ("antropic/claude-opus-5", "anthropic/claude-opus-5"),
        ("claude/opus", "anthropic/opus"),
    ],
)
def test_a_near_miss_is_not_sent_and_names_what_was_meant(typed: str, meant: str) -> None:
    with pytest.raises(UnknownModel, match=re.escape(meant)) as refused:
        model_choice.choose(typed, "anthropic", {}, BOTH, asked_for=False)
    assert refused.value.suggestion == meant


@pytest.mark.parametrize(
    "name",
    [
        "gpt-5.9",
        "claude-opus-7",
        "gemini-9-flash",
        "o7",
        "my-model",
        "claude-opus-5-20270101",
        "x-ai/grok-4",
        "qwen:7b",
    ],
)
def test_a_new_number_is_no_near_miss(name: str) -> None:
    assert model_choice.near_miss(name) == ""


def test_the_defaults_are_the_newest_of_the_catalog() -> None:
    families = {"anthropic": "sonnet", "openai": "gpt", "openai-chat": "gpt", "google": "gemini"}
    defaults = {vendor.name: vendor.model for vendor in VENDORS}
    assert defaults == {name: model_choice.newest(short) for name, short in families.items()}


def test_the_catalog_has_the_newest_models_that_prices_are_known_for() -> None:
    """When this fails, the price list was updated: add rows to `catalog.py`, and look at the defaults."""
    listed = {
        model.id
        for provider in data_snapshot.get_snapshot().providers
        if provider.id in ("anthropic", "openai", "google")
        for model in provider.models
    }
    for short, (_, prefix) in model_choice.FAMILIES.items():
        plain = re.compile(re.escape(prefix) + r"[\d.-]+(-[a-z]+)?")
        ids = [id for id in listed if plain.fullmatch(id) and (short in prefix or short in id)]
        newer = [id for id in ids if model_choice.version(id) > model_choice.version(model_choice.newest(short))]
        assert newer == [], f"newer than what {short} means"


def test_every_row_of_the_catalog_means_itself() -> None:
    ids = [row.info.id for row in catalog.rows()]
    assert [id for id in ids if model_choice.named(id).model != id or model_choice.near_miss(id)] == []
