"""The public compaction-conformance-kit, where it is installed: what survives in 10, 20 and 30 % of the text."""

import pytest

from ra.context.compaction.quotes import Quotes
from ra.context.tokens import Estimator
from ra.context.view import Group, Item
from ra.core.messages import say

kit = pytest.importorskip("compaction_kit")


def quoted(turns, characters: int) -> str:
    """What the user said, in at most so many characters."""
    quotes = Quotes(Estimator())
    groups = [
        Group("said", Item((at, 0), say("user", turn.text))) for at, turn in enumerate(turns, 1) if turn.role == "user"
    ]
    for group in groups:
        quotes.add(group)
    room = characters // 3
    while len(text := quotes.write((group.place for group in groups), room).text) > characters:
        room -= 1
    return text


def survival(session, canaries, budget: float) -> tuple[float, int]:
    """The share of canaries that are still there, and how many stale values are."""
    from compaction_kit.probes import BehaviorProbe

    text = quoted(session.transcript(), int(len(session.full_text()) * budget))
    survived = sum(BehaviorProbe().probe(canary, text).survived for canary in canaries)
    stale = sum(any(word.lower() in text.lower() for word in canary.superseded_tokens) for canary in canaries)
    return survived / len(canaries), stale


@pytest.mark.parametrize(("budget", "least"), [(0.30, 1.0), (0.20, 0.85), (0.10, 0.40)])
def test_canaries_survive_at_the_budget_of_the_kit(budget, least):
    from compaction_kit.canaries import seeded_canaries
    from compaction_kit.corpus import build_random_session
    from compaction_kit.session import build_seeded_session

    share, stale = survival(build_seeded_session(), seeded_canaries(), budget)
    assert (share >= least, stale) == (True, 0)
    results = [survival(*build_random_session(seed), budget) for seed in range(1, 13)]
    assert sum(share for share, _ in results) / len(results) >= least - 0.001
    assert sum(stale for _, stale in results) == 0
