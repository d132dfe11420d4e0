"""The tasks of `make bench`: the model pays for what it no longer sees, and finishes all the same."""

from pathlib import Path

import pytest

from tests.bench.tasks import Answer, Look, Outcome, Prompt, Task, mend_a_library, play, search_logs

WINDOW = 16_000


def mended(folder: Path, strategy: str) -> Outcome:
    return play(mend_a_library("back and forth", modules=4, functions=60, faults=2), strategy, folder, window=WINDOW)


def test_a_model_that_sees_everything_reads_nothing_again(tmp_path: Path) -> None:
    outcome = mended(tmp_path, "nothing")
    assert outcome.passed
    assert outcome.counts == {"looks": 4, "fixes": 8}


@pytest.mark.parametrize("strategy", ["truncate", "auto"])
def test_what_a_cut_took_is_read_again_and_the_suite_passes(tmp_path: Path, strategy: str) -> None:
    outcome = mended(tmp_path, strategy)
    assert outcome.passed
    assert outcome.cuts
    assert outcome.counts["fixes"] == 8
    assert outcome.counts["read again"] == outcome.calls - 4 - 8 - 2  # each is a call; two answers end the prompts


@pytest.mark.parametrize("strategy", ["digest", "auto", "summarize"])
def test_facts_of_hidden_logs_are_found_by_the_words_of_their_question(tmp_path: Path, strategy: str) -> None:
    outcome = play(search_logs(logs=5), strategy, tmp_path, window=WINDOW)
    assert outcome.counts["visible"] + outcome.counts["recalled"] == 10
    assert outcome.counts["recalled"]
    assert outcome.recall_at_5 == 1


def test_what_nobody_said_is_lost(tmp_path: Path) -> None:
    asked = Answer("Who painted the Mona Lisa?", "The Mona Lisa was painted by Leonardo.")
    task = Task("lost", {"a.txt": "Nothing of note."}, (Prompt("Who?", (Look("a.txt"), asked)),))
    outcome = play(task, "digest", tmp_path)
    assert outcome.counts == {"looks": 1, "lost": 1}
    assert outcome.recall_at_5 == 0
