"""Whatever a session does to its context, every request fits, and nothing is lost that must not be."""

import os
from pathlib import Path

import pytest

from tests.context_e2e.holds import faults, told
from tests.context_e2e.hostile import perform, play_of

PLAYS = int(os.environ.get("RA_PLAYS", "8"))


@pytest.mark.parametrize("windows", [(1000, 6000), (6000, 24_000)], ids=["tiny", "usual"])
def test_hostile_sessions_end_with_their_answers_and_lose_nothing(tmp_path: Path, windows: tuple[int, int]) -> None:
    broken = {}
    for seed in range(PLAYS):
        play = play_of(seed, windows=windows)
        if found := faults(perform(play, tmp_path / str(seed))):
            broken[seed] = (told(play), found)
    assert broken == {}
