import sys
from decimal import Decimal
from pathlib import Path

import pytest

from ra.core.model import Usage
from ra.costs.prices import Prices
from ra.costs.settings import PriceSettings

NOV_2026 = 1_795_000_000.0


@pytest.fixture(scope="module")
def prices(tmp_path_factory: pytest.TempPathFactory) -> Prices:
    return Prices({}, tmp_path_factory.mktemp("data") / "prices.json", clock=lambda: NOV_2026)


@pytest.mark.parametrize(
    ("usage", "dollars"),
    [
        (Usage(10, 100, 27_000, 1_300), "0.024175"),
        (Usage(cache_read=200_000), "0.10"),
        (Usage(input=1, cache_read=200_000), "0.1500075"),
        (Usage(), "0"),
    ],
)
def test_opus_4_6_is_priced_to_the_last_decimal(prices: Prices, usage: Usage, dollars: str) -> None:
    assert prices.price("claude-opus-4-6", usage) == Decimal(dollars)


@pytest.mark.parametrize(
    "name",
    [
        "claude-opus-4-6",
        "Claude-Opus-4-6",
        "claude-opus-4-6-20260205",
        "claude-opus-4-6@20260205",
        "claude-opus-4-6-latest",
        "claude-opus-4-6[1m]",
        "claude-opus-4.6",
        "anthropic/claude-opus-4.6",
        "openrouter/anthropic/claude-opus-4.6:thinking",
        "anthropic.claude-opus-4-6-v1",
        "us.anthropic.claude-opus-4-6-v1:0",
        "global.anthropic.claude-opus-4-6-20260205-v1:0",
    ],
)
def test_all_names_of_opus_4_6_have_its_tier_2(prices: Prices, name: str) -> None:
    assert prices.price(name, Usage(input=1, cache_read=200_000)) == Decimal("0.1500075")


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-opus-4-5", "claude-opus-4-5"),
        ("gpt-4.1", "gpt-4.1"),
        ("gpt-4.1-2025-04-14", "gpt-4.1"),
        ("gpt-4", "gpt-4"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("publishers/google/models/gemini-2.5-flash-001", "gemini-2.5-flash"),
        ("gemini-2.5-pro-preview-05-06", "gemini-2.5-pro"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
    ],
)
def test_a_model_is_the_longest_row_before_its_date(prices: Prices, name: str, row: str) -> None:
    found = prices.row(name)
    assert found is not None
    assert found.model == row


@pytest.mark.parametrize(
    "name", ["gpt-4.7", "gpt-4-32x", "claude-opus-4-66", "claude-opus-4-6x", "nobody", "", "/", "-", "us."]
)
def test_an_unknown_model_has_no_price(prices: Prices, name: str) -> None:
    assert prices.price(name, Usage(1, 1)) is None


def test_local_models_are_free_and_scripted_ones_cost_what_their_name_says(prices: Prices) -> None:
    usage = Usage(1_000_000, 1_000_000)
    assert prices.price("smollm2", usage, "local") == 0
    assert prices.price("scripted", usage, "scripted") == 0
    assert prices.price("claude-opus-4-6", usage, "scripted") == Decimal("45")  # 1.5 × (5 + 25): beyond 200 000


def test_the_tier_multiplies_every_rate(prices: Prices) -> None:
    row = prices.row("claude-opus-4-6")
    assert row is not None
    assert row.at(200_000) == row.rates
    assert row.at(200_001) == row.rates.times(Decimal("1.5"))
    assert (
        row.price(Usage(output=10, cache_write=200_001))
        == Decimal("1.5") * (10 * Decimal(25) + 200_001 * Decimal("6.25")) / 1_000_000
    )


def test_a_price_is_that_of_the_day(prices: Prices) -> None:
    usage = Usage(input=1_000_000)
    assert prices.price("o3", usage, at=1_748_000_000.0) == 10  # May 2025
    assert prices.price("o3", usage) == 2


def test_one_hour_writes_have_their_own_rate(prices: Prices) -> None:
    row = prices.row("claude-opus-4-5")
    assert row is not None
    assert row.price(Usage(cache_write=100_000), long_lived=True) == 1
    for usage in (Usage(cache_write=100_000), Usage(10, 20, 190_000, 30_000)):
        assert row.long_lived().price(usage) == row.price(usage, long_lived=True)
    assert row.price(Usage(cache_write=100_000)) == Decimal("0.625")


def test_the_user_overrides_everything() -> None:
    own = Prices(
        {
            "claude-opus-4-6": PriceSettings(input=1, output=2),
            "my-model": PriceSettings(input=3, output=4, cache_read=0.3, tier_above=10, tier_multiplier=2),
            "smollm2": PriceSettings(input=0.01, output=0.01),
        },
        None,
    )
    million = 1_000_000
    assert own.price("us.anthropic.claude-opus-4-6-v1:0", Usage(cache_read=million)) == Decimal("0.1")
    assert own.price("claude-opus-4-6", Usage(cache_write=million)) == Decimal("1.25")
    assert own.price("claude-opus-4-6", Usage(million)) == 1
    assert own.price("my-model-20260101", Usage(10)) == Decimal("0.00003")
    assert own.price("my-model", Usage(1, 0, 10)) == Decimal("0.000012")
    assert own.price("my-model", Usage(cache_write=million)) == 6
    assert own.price("smollm2", Usage(million), "local") == Decimal("0.01")


def test_the_extract_spares_the_import_and_is_private(tmp_path: Path) -> None:
    file = tmp_path / "data" / "prices.json"
    first = Prices({}, file).row("claude-opus-4-5")
    assert file.stat().st_mode & 0o777 == 0o600
    kept = sys.modules.pop("genai_prices.data", None)
    try:
        assert Prices({}, file).row("claude-opus-4-5") == first
        assert "genai_prices.data" not in sys.modules
    finally:
        if kept is not None:
            sys.modules["genai_prices.data"] = kept


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"stamp":"0","vendors":{}}', b"\xff\xfe"])
def test_a_spoilt_or_stale_extract_is_made_anew(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "prices.json"
    file.write_bytes(content)
    assert Prices({}, file).price("claude-opus-4-5", Usage(1_000_000)) == 5
    assert file.stat().st_size > 10_000


def test_a_data_directory_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert Prices({}, tmp_path / "file" / "prices.json").price("claude-opus-4-5", Usage(1_000_000)) == 5
