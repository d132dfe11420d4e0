"""Lists the known models: window, output, kind of thinking, tokens per o200k token.

Windows and outputs are the vendors' published figures. A wrong or missing row does no lasting harm: ra learns the
window from the first overflow, and the factor from reported usage.
"""

import re
from collections.abc import Iterator
from typing import Literal

from ra.core.model import ModelInfo
from ra.core.model_names import spellings, stems_of
from ra.core.value import Value
from ra.providers.settings import ProviderName
from ra.providers.vendors import BY_NAME

Thinking = Literal["none", "budget", "effort", "adaptive"]

_M = 1_000_000
_K = 1_000

_Row = tuple[str, int, int, Thinking]
"""Ids that share a row (separated by spaces), window, max output, thinking."""

_ANTHROPIC: tuple[_Row, ...] = (
    ("claude-fable-5-2 claude-fable-5-1 claude-fable-5", _M, 128 * _K, "adaptive"),
    ("claude-mythos-5-2 claude-mythos-5-1 claude-mythos-5", _M, 128 * _K, "adaptive"),
    ("claude-opus-5-5 claude-opus-5", _M, 128 * _K, "adaptive"),
    ("claude-sonnet-5-5 claude-sonnet-5", _M, 128 * _K, "adaptive"),
    ("claude-haiku-5-5", _M, 128 * _K, "adaptive"),
    ("claude-opus-4-8 claude-opus-4-7", _M, 128 * _K, "adaptive"),
    ("claude-opus-4-6 claude-sonnet-4-6", _M, 128 * _K, "adaptive"),
    ("claude-opus-4-5 claude-sonnet-4-5 claude-haiku-4-5", 200 * _K, 64 * _K, "budget"),
    ("claude-opus-4-1 claude-opus-4-0 claude-opus-4 claude-4-opus", 200 * _K, 32 * _K, "budget"),
    ("claude-sonnet-4-0 claude-sonnet-4 claude-4-sonnet claude-3-7-sonnet", 200 * _K, 64 * _K, "budget"),
    ("claude-3-5-sonnet claude-3-5-haiku", 200 * _K, 8192, "none"),
    ("claude-3-opus claude-3-sonnet claude-3-haiku", 200 * _K, 4096, "none"),
)

_OPENAI: tuple[_Row, ...] = (
    ("gpt-6.1-sol gpt-6.1-terra gpt-6-astra gpt-6-sol gpt-6-luna", 1_050_000, 128 * _K, "effort"),
    ("gpt-5.6-sol gpt-5.6-terra gpt-5.6-luna gpt-5.4 gpt-5.4-pro", 1_050_000, 128 * _K, "effort"),
    ("gpt-5.5 gpt-5.5-pro", _M, 128 * _K, "effort"),
    ("gpt-5.4-mini gpt-5.4-nano gpt-5.3-codex gpt-5.2 gpt-5.2-pro gpt-5.2-codex", 400 * _K, 128 * _K, "effort"),
    ("gpt-5.1 gpt-5.1-codex gpt-5.1-codex-mini gpt-5.1-codex-max gpt-5-codex", 400 * _K, 128 * _K, "effort"),
    ("gpt-5 gpt-5-mini gpt-5-nano gpt-5-pro", 400 * _K, 128 * _K, "effort"),
    ("gpt-5-chat gpt-5.1-chat gpt-5.2-chat gpt-5.3-chat", 128 * _K, 16_384, "none"),
    ("gpt-4.1 gpt-4.1-mini gpt-4.1-nano", 1_047_576, 32_768, "none"),
    ("gpt-4o gpt-4o-mini chatgpt-4o gpt-4o-search-preview gpt-4o-mini-search-preview", 128 * _K, 16_384, "none"),
    ("gpt-4-turbo gpt-4-0125-preview gpt-4-1106-preview gpt-4-vision-preview", 128 * _K, 4096, "none"),
    ("gpt-4-32k", 32_768, 8192, "none"),
    ("gpt-4", 8192, 4096, "none"),
    ("gpt-3.5-turbo gpt-3.5-turbo-16k", 16_385, 4096, "none"),
    ("o1 o1-pro o3 o3-mini o3-pro o4-mini codex-mini", 200 * _K, 100 * _K, "effort"),
    ("o1-mini", 128 * _K, 65_536, "none"),
    ("o1-preview", 128 * _K, 32_768, "none"),
)

_GOOGLE: tuple[_Row, ...] = (
    ("gemini-4-argon", 1_048_576, 65_536, "effort"),
    ("gemini-3.8-flash gemini-3.7-flash gemini-3.6-flash", 1_048_576, 65_536, "effort"),
    ("gemini-3.5-flash gemini-3.5-flash-lite", 1_048_576, 65_536, "effort"),
    ("gemini-3.1-pro gemini-3.1-flash-lite gemini-3-pro gemini-3-flash", 1_048_576, 65_536, "effort"),
    ("gemini-flash gemini-flash-lite gemini-pro-latest", 1_048_576, 65_536, "effort"),
    ("gemini-2.5-pro gemini-2.5-flash gemini-2.5-flash-lite", 1_048_576, 65_536, "budget"),
    ("gemini-2.0-flash gemini-2.0-flash-lite", 1_048_576, 8192, "none"),
    ("gemini-1.5-pro", 2_097_152, 8192, "none"),
    ("gemini-1.5-flash gemini-1.5-flash-8b", 1_048_576, 8192, "none"),
    ("gemma-4-31b-it gemma-4-26b-a4b-it", 262_144, 8192, "none"),
    ("gemma-3-27b-it gemma-3-12b-it gemma-3-4b-it", 131_072, 8192, "none"),
)

_OPEN: tuple[_Row, ...] = (
    ("gpt-oss-120b gpt-oss-20b", 131_072, 32_768, "effort"),
    ("deepseek-chat deepseek-v3 deepseek-v3.1 deepseek-v3.2 deepseek-reasoner deepseek-r1", 131_072, 8192, "none"),
    ("qwen3-coder qwen3-coder-480b-a35b-instruct qwen3-235b-a22b-instruct", 262_144, 16_384, "none"),
    ("qwen3-32b qwen3-30b-a3b qwen-2.5-72b-instruct qwen2.5-72b-instruct", 131_072, 8192, "none"),
    ("llama-4-maverick llama-4-scout", _M, 16_384, "none"),
    ("llama-3.3-70b-instruct llama-3.1-405b-instruct", 131_072, 8192, "none"),
    ("llama-3.1-70b-instruct llama-3.1-8b-instruct", 131_072, 8192, "none"),
    ("mistral-large mistral-medium mistral-small codestral devstral-medium", 131_072, 8192, "none"),
    ("kimi-k2 kimi-k2-thinking", 262_144, 16_384, "none"),
    ("glm-4.5 glm-4.5-air", 131_072, 16_384, "none"),
    ("glm-4.6 minimax-m2", 200 * _K, 16_384, "none"),
)

_TABLES: dict[ProviderName, tuple[_Row, ...]] = {
    "anthropic": _ANTHROPIC,
    "openai": _OPENAI,
    "google": _GOOGLE,
    "openai-chat": _OPEN,
}

_IN_PROCESS = {"local": "SmolLM2-135M-Instruct", "scripted": "scripted"}


class ModelRow(Value, frozen=True):
    """A line of `ra models`."""

    provider: ProviderName
    info: ModelInfo


def info(provider: ProviderName, model: str) -> ModelInfo:
    """The row of a model: the longest id that equals its name, up to a date or snapshot. No row: unknown window."""
    name = _plain(model)
    infos = {row.info.id: row.info for row in rows()}
    info_row = next((infos[stem] for stem in stems_of(name) if stem in infos), None)
    if info_row is not None:
        return info_row
    *_, name = spellings(name)
    return ModelInfo(model, thinking=_likely_thinking(provider, name), tokens_per_o200k=_factor(name))


def no_thinking(model: str) -> str | None:
    """The setting that turns off a model's default thinking; None if that is impossible or unnecessary.

    For OpenAI's models an effort: `none` from 5.1 on, `minimal` before; the o series, -pro and -codex support neither.
    For Google's a budget of `0`, or a level; the pro models always think.
    """
    *_, name = spellings(_plain(model))
    if match := re.match(r"gpt-(\d+)(?:\.(\d+))?", name):
        if re.search(r"-(pro|codex|chat|oss)", name):
            return None
        version = (int(match[1]), int(match[2] or 0))
        return "none" if version >= (5, 1) else "minimal" if version >= (5, 0) else None
    if match := re.match(r"gemini-(\d+)(?:\.(\d+))?-flash", name):
        return "0" if (int(match[1]), int(match[2] or 0)) < (3, 0) else "MINIMAL"
    return None


def rows() -> Iterator[ModelRow]:
    """All rows, for `ra models`."""
    for provider, table in _TABLES.items():
        for row in table:
            for id in row[0].split(" "):
                yield ModelRow(provider, _info(id, row))


def default_model(provider: ProviderName) -> str:
    return BY_NAME[provider].model if provider in BY_NAME else _IN_PROCESS[provider]


def cheapest_model(provider: ProviderName) -> str:
    """The model for small side jobs, such as planning."""
    return (provider in BY_NAME and BY_NAME[provider].small_model) or default_model(provider)


def _info(id: str, row: _Row) -> ModelInfo:
    _, window, max_output, thinking = row
    return ModelInfo(id, window, max_output, thinking, _factor(id))


def _plain(model: str) -> str:
    """The name without the parts that only say how it is served: `ft:…:org::id`, `:free`, `:latest`."""
    name = model.lower()
    return name.split(":")[1] if name.startswith("ft:") else name.removesuffix(":free").removesuffix(":latest")


def _factor(name: str) -> float:
    """Tokens per o200k_base token, as measured on text: Claude up to 4.6 counts 1.20 to 1.36, from 4.7 on 1.60 to 1.78,
    Gemini 1.08 to 1.29."""
    if name.startswith("claude"):
        version = tuple(int(number) for number in re.findall(r"(?<!\d)\d(?!\d)", name)[:2])
        return 1.25 if (0,) < version <= (4, 6) else 1.65
    return 1.15 if name.startswith(("gemini", "gemma")) else 1.0


def _likely_thinking(provider: ProviderName, name: str) -> Thinking:
    """A guess for a model that is newer than the table, or that a compatible server provides."""
    if name.startswith("claude"):
        return "adaptive"
    if name.startswith(("gpt-5", "gpt-6", "gpt-7", "o5", "gemini")):
        return "effort"
    return "budget" if provider == "anthropic" else "none"
