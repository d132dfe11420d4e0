"""Public prices: an extract of genai-prices, kept in a small file."""

import contextlib
import importlib.util
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from ra.system.files import write_private

# A model's price is its maker's. Resellers' prices count only for models that no maker lists.
MAKERS = (
    *("anthropic", "openai", "google", "x-ai", "mistral", "deepseek", "moonshotai", "zai", "zhipuai", "minimax"),
    *("meta", "cohere", "perplexity", "arcee"),
)
RESELLERS = ("groq", "cerebras", "aws", "together", "fireworks", "openrouter")
_FORMAT = 1


class Rates(msgspec.Struct, frozen=True, array_like=True):
    """Dollars per million tokens. A rate that the vendor does not list is that of plain input."""

    input: Decimal = Decimal(0)
    output: Decimal = Decimal(0)
    cache_read: Decimal = Decimal(0)
    cache_write: Decimal = Decimal(0)
    cache_write_1h: Decimal = Decimal(0)

    def times(self, factor: Decimal) -> "Rates":
        return Rates(*(rate * factor for rate in msgspec.structs.astuple(self)))


class Dated(msgspec.Struct, frozen=True, array_like=True):
    """Prices valid since a day ("": always). `tiers` are pairs of a total input and the rates above it, ascending."""

    since: str
    rates: Rates
    tiers: list[tuple[int, Rates]] = []


class Model(msgspec.Struct, frozen=True, array_like=True):
    id: str
    names: list[str]
    prices: list[Dated]
    window: int | None = None


class Extract(msgspec.Struct, frozen=True):
    """The content of the file. `stamp` identifies the version of the package's data."""

    stamp: str
    vendors: dict[str, list[Model]]


class Catalog:
    """The extract, indexed by every name of every model. The first vendor with a name wins."""

    def __init__(self, extract: Extract) -> None:
        self._made = self._index(extract, MAKERS)
        self._resold = self._index(extract, RESELLERS)

    def find(self, names: Sequence[str]) -> Model | None:
        """The model of the first name that a maker lists, else that a reseller lists."""
        for index in (self._made, self._resold):
            for name in names:
                if name in index:
                    return index[name]
        return None

    @staticmethod
    def _index(extract: Extract, vendors: Sequence[str]) -> dict[str, Model]:
        index: dict[str, Model] = {}
        for vendor in vendors:
            for model in extract.vendors.get(vendor, ()):
                for name in (model.id, *model.names):
                    index.setdefault(name, model)
        return index


def dated(model: Model, day: str) -> Dated:
    """The prices on a day (`2026-11-18`): the latest that were valid by then, else the first."""
    begun = [prices for prices in model.prices if prices.since <= day]
    return begun[-1] if begun else model.prices[0]


def load(cache_file: Path | None) -> Catalog:
    """The catalog, from the file or, if that is missing, damaged or outdated, from the package."""
    stamp = _stamp()
    if cache_file is not None:
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            extract = msgspec.json.decode(cache_file.read_bytes(), type=Extract)
            if extract.stamp == stamp:
                return Catalog(extract)
    extract = Extract(stamp, _extract())
    if cache_file is not None:
        # The file only saves time, so failing to write it (0.3 s lost at the next start) is no error.
        with contextlib.suppress(OSError):
            write_private(cache_file, msgspec.json.encode(extract))
    return Catalog(extract)


def _stamp() -> str:
    spec = importlib.util.find_spec("genai_prices")
    assert spec is not None  # a declared dependency
    stat = Path(str(spec.origin)).with_name("data.py").stat()
    return f"{_FORMAT}:{stat.st_mtime_ns}:{stat.st_size}"


def _extract() -> dict[str, list[Model]]:
    from genai_prices.data import providers  # 0.2–0.4 s: only when the extract is stale

    by_id = {provider.id: provider for provider in providers}
    return {
        vendor: [model for info in by_id[vendor].models if (model := _model(info))]
        for vendor in (*MAKERS, *RESELLERS)
        if vendor in by_id
    }


def _model(info: Any) -> Model | None:
    listed = info.prices if isinstance(info.prices, list) else [None]
    prices: list[Dated] = []
    for item in listed:
        if item is None:
            since, table = "", info.prices
        elif item.constraint is None:
            since, table = "", item.prices
        elif hasattr(item.constraint, "start_date"):
            since, table = item.constraint.start_date.isoformat(), item.prices
        else:
            continue  # peak hours of the day, which only DeepSeek has: the price outside them counts
        if (row := _dated(since, table)) is not None:
            prices.append(row)
    if not prices:
        return None
    names = sorted({name.lower() for name in _names(info.match)} - {info.id})
    return Model(info.id.lower(), names, prices, info.context_window)


def _names(clause: Any) -> Iterator[str]:
    """The literal names in a match clause; patterns are covered by the rule for snapshots."""
    for part in getattr(clause, "or_", [clause]):
        for attribute in ("equals", "starts_with"):
            if name := getattr(part, attribute, None):
                yield name


def _dated(since: str, table: Any) -> Dated | None:
    if table.input_mtok is None or table.output_mtok is None:
        return None  # not a text model
    keys = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok", "cache_write_1h_mtok")
    columns = [getattr(table, key) for key in keys]
    starts = sorted({tier.start for column in columns for tier in getattr(column, "tiers", ())})
    return Dated(since, _rates(columns, 0), [(start, _rates(columns, start + 1)) for start in starts])


def _rates(columns: list[Any], total_input: int) -> Rates:
    values: list[Decimal | None] = []
    for column in columns:
        value = getattr(column, "base", column)
        for tier in getattr(column, "tiers", ()):
            if total_input > tier.start:
                value = tier.price
        values.append(value)
    plain, output, read, write, write_1h = values
    assert plain is not None
    assert output is not None
    read = plain if read is None else read
    write = plain if write is None else write
    return Rates(plain, output, read, write, write if write_1h is None else write_1h)
