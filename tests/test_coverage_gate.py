"""Does the gate hold what it says? It names the group and the file, and fails."""

from typing import Any

import pytest

from tests.coverage_gate import GROUPS, NEEDS, judged, names_of

NAMES = {group: names_of(patterns) for group, patterns in GROUPS.items()}


def files(*, low: str = "", reached: int = 100) -> dict[str, Any]:
    """What coverage would tell: a hundred branches in each file, all of them taken but in one."""
    return {
        name: {
            "summary": {"num_branches": 100, "covered_branches": reached if name == low else 100},
            "missing_branches": [[7, -1]] if name == low else [],
        }
        for names in NAMES.values()
        for name in names
    }


def test_no_file_is_held_twice_and_what_a_machine_may_lack_is_held() -> None:
    every = [name for names in NAMES.values() for name in names]
    assert len(every) == len(set(every))
    assert set(NEEDS) <= set(every)


def test_a_file_that_has_moved_is_told() -> None:
    with pytest.raises(SystemExit, match=r"there is no ra/gone/\*\.py"):
        names_of(("ra/gone/*.py",))


def test_where_all_is_reached_the_gate_is_open(capsys: pytest.CaptureFixture[str]) -> None:
    assert judged(files()) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines() if "branches" in line] == [
        [group, "100.0"] for group in GROUPS
    ]


def test_a_group_below_the_bar_fails_and_its_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    low = "ra/system/process.py"
    assert judged(files(low=low, reached=0)) == 1
    told = capsys.readouterr().out
    assert "Too few branches are reached in: sandbox." in told
    assert f"{low:<40}   0.0 %   7→exit" in told


def test_a_file_below_the_bar_in_a_group_above_it_is_only_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert judged(files(low="ra/context/view.py", reached=90)) == 0
    assert "ra/context/view.py" in capsys.readouterr().out
