import pytest

from ra.core.model import ModelInfo
from ra.providers import catalog
from ra.providers.catalog import info


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-3-5-sonnet"),
        ("arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-4-1-20250805-v1:0", "claude-opus-4-1"),
        ("claude-opus-4-20250514", "claude-opus-4"),
        ("claude-3-7-sonnet-latest", "claude-3-7-sonnet"),
        ("gpt-4.1", "gpt-4.1"),
        ("gpt-4.1-mini-2025-04-14", "gpt-4.1-mini"),
        ("gpt-4", "gpt-4"),
        ("gpt-4-0613", "gpt-4"),
        ("gpt-4-32k-0613", "gpt-4-32k"),
        ("gpt-4-1106-preview", "gpt-4-1106-preview"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-mini", "gpt-4o-mini"),
        ("ft:gpt-4o-mini-2024-07-18:acme::x1", "gpt-4o-mini"),
        ("openai/gpt-5.2", "gpt-5.2"),
        ("gpt-5-chat-latest", "gpt-5-chat"),
        ("o1-2024-12-17", "o1"),
        ("o3-mini", "o3-mini"),
        ("models/gemini-2.5-flash-preview-05-20", "gemini-2.5-flash"),
        ("gemini-2.5-flash-lite", "gemini-2.5-flash-lite"),
        ("gemini-2.0-flash-001", "gemini-2.0-flash"),
        ("deepseek/deepseek-r1:free", "deepseek-r1"),
        ("GPT-4o", "gpt-4o"),
    ],
)
def test_a_row_is_the_longest_id_up_to_a_snapshot(name: str, row: str) -> None:
    assert info("openai-chat", name).id == row


@pytest.mark.parametrize(
    "name",
    [
        "gpt-4.5",
        "gpt-4.1x",
        "gpt-40",
        "gpt-4o-audio-preview",
        "gpt-4o-realtime",
        "o3-deep-research",
        "claude-opus-4-9",
        "claude-sonnet-4-55",
        "gemini-2.5-flash-image",
        "llama3.1:8b",
        "my-gpt-4",
        "",
    ],
)
def test_what_is_no_snapshot_is_another_model(name: str) -> None:
    assert (info("openai-chat", name).id, info("openai-chat", name).window) == (name, None)


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("claude-3-haiku", 1.25),
        ("claude-opus-4", 1.25),
        ("claude-sonnet-4-6", 1.25),
        ("claude-opus-4-7", 1.65),
        ("claude-sonnet-5", 1.65),
        ("claude-haiku-5-5", 1.65),
        ("claude-next", 1.65),
        ("gemini-2.5-pro", 1.15),
        ("gemini-9-ultra", 1.15),
        ("gpt-5", 1.0),
        ("unheard-of", 1.0),
    ],
)
def test_the_first_factor_follows_the_family(name: str, factor: float) -> None:
    assert info("anthropic", name).tokens_per_o200k == factor


@pytest.mark.parametrize(
    ("provider", "name", "thinking"),
    [
        ("anthropic", "claude-sonnet-4-5", "budget"),
        ("anthropic", "claude-opus-4-7", "adaptive"),
        ("anthropic", "claude-opus-9", "adaptive"),
        ("anthropic", "some-compatible-model", "budget"),
        ("openai", "gpt-5-mini", "effort"),
        ("openai", "gpt-4o", "none"),
        ("google", "gemini-2.5-pro", "budget"),
        ("google", "gemini-3-pro-preview", "effort"),
        ("openai-chat", "some-compatible-model", "none"),
    ],
)
def test_thinking_is_of_the_kind_that_the_model_has(provider: str, name: str, thinking: str) -> None:
    assert info(provider, name).thinking == thinking


def test_a_whole_row() -> None:
    assert info("anthropic", "claude-sonnet-4-6") == ModelInfo(
        "claude-sonnet-4-6", window=1_000_000, max_output=128_000, thinking="adaptive", tokens_per_o200k=1.25
    )


def test_every_id_finds_its_own_row_and_no_id_is_there_twice() -> None:
    rows = list(catalog.rows())
    assert [info(row.provider, row.info.id) for row in rows] == [row.info for row in rows]
    assert len({row.info.id for row in rows}) == len(rows)


@pytest.mark.parametrize("provider", ["anthropic", "openai", "google"])
def test_defaults_are_rows(provider: str) -> None:
    for model in (catalog.default_model(provider), catalog.cheapest_model(provider)):
        assert info(provider, model).window is not None
