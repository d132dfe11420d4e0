"""Sessions of any length on windows of any size: they end with the answer, and nothing of them is lost."""

from pathlib import Path

import pytest

from ra.context.settings import COMPACTIONS
from ra.core.events import Compacted
from ra.testing.server import DialectName
from tests.context_e2e.longrun import ANSWER, FACTS, Long, mixed, prompt_in
from tests.session.scenario import ended

TOO_LARGE = ("prompt is too long", "maximum context length", "context window", "maximum number of tokens")
WINDOWS = (8_000, 32_000, 200_000)
CASES = [
    *(("anthropic", window, strategy) for window in WINDOWS for strategy in COMPACTIONS),
    *(("openai-chat", 8_000, strategy) for strategy in COMPACTIONS),
    *(("openai-chat", window, "truncate") for window in WINDOWS[1:]),
    ("openai", 8_000, "digest"),
    ("google", 8_000, "truncate"),
]


@pytest.mark.parametrize(("dialect", "window", "strategy"), CASES)
def test_a_long_session_ends_with_its_answer_and_loses_nothing(
    tmp_path: Path, dialect: DialectName, window: int, strategy: str
) -> None:
    check(Long(tmp_path, dialect, window, strategy), f"{dialect} {window} {strategy}")


@pytest.mark.parametrize("rate", [0.8, 1.7])
@pytest.mark.parametrize("dialect", ["anthropic", "openai-chat"])
def test_text_that_tokenizers_differ_about_is_not_undercounted(
    tmp_path: Path, dialect: DialectName, rate: float
) -> None:
    check(Long(tmp_path, dialect, 8_000, "truncate", line=mixed, rate=rate), f"{dialect} mixed × {rate}")


def check(long: Long, name: str) -> None:
    last = ended(long.events)
    compactions = sum(isinstance(event, Compacted) for event in long.events)
    print(
        f"{name}: {last.outcome}, {len(long.server.turns)} turns, {compactions} compactions, "
        f"{long.server.summaries} summaries, {len(long.server.refused)} refusals, {len(long.seen())} facts"
    )
    assert (last.outcome, last.answer, last.error) == ("answered", ANSWER, "")
    assert [words for words in long.server.refused if not any(kind in words for kind in TOO_LARGE)] == []
    assert len(long.server.refused) <= 1
    assert [index for index, body in enumerate(long.server.bodies_taken) if not prompt_in(body)] == []
    assert long.seen() == set(range(FACTS))
    assert compactions
