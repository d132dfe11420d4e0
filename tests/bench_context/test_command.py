import json
import os
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ra.bench import files, plot, render
from ra.bench.command import app
from ra.bench.runs import STRATEGIES, Conditions, compare
from ra.core.errors import UserError
from ra.costs.prices import Prices
from tests.bench_context.shapes import SHAPES, session

DEMO = Path(__file__).parents[2] / "docs" / "traces" / "demo.jsonl"


def bench(*words: str) -> tuple[int, str]:
    found = CliRunner().invoke(app, ["context", *words], catch_exceptions=True)
    if isinstance(found.exception, UserError):
        raise found.exception
    return found.exit_code, found.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "good.jsonl").write_bytes(DEMO.read_bytes())
    (tmp_path / "truncated.jsonl").write_bytes(DEMO.read_bytes()[:30_000])
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "random.jsonl").write_bytes(os.urandom(2000))
    (tmp_path / "foreign.json").write_text('{"name": "package", "version": "1.0"}')
    (tmp_path / "notes.txt").write_text("not looked at")
    with (tmp_path / "huge.jsonl").open("wb") as file:
        file.truncate(500_000_000)
    old = tmp_path / "old.jsonl"
    old.write_bytes(DEMO.read_bytes())
    os.utime(old, (1_000_000_000, 1_000_000_000))
    return tmp_path


def test_json_has_the_published_shape():
    code, out = bench("--trace", str(DEMO), "--json")
    assert code == 0
    (trace,) = json.loads(out)["traces"]
    assert trace["file"] == str(DEMO)
    assert [row["strategy"] for row in trace["rows"]] == ["recorded", *STRATEGIES]
    assert all(set(row) == {"strategy", "cost", "hitRate", "peak", "rewrites", "recall"} for row in trace["rows"])
    assert trace["calibration"] is None


def test_a_folder_is_searched_and_what_is_left_out_is_said(folder: Path):
    code, out = bench("--trace", str(folder), "--json", "--strategies", "auto")
    found = json.loads(out)
    assert code == 0
    assert sorted(trace["name"] for trace in found["traces"]) == ["good", "truncated"]
    said = "\n".join(found["skipped"])
    for name in ("empty.jsonl", "random.jsonl", "foreign.json", "huge.jsonl: 500 MB", "1 files older than 30 days"):
        assert name in said
    assert "notes.txt" not in said
    (cut,) = (trace for trace in found["traces"] if trace["name"] == "truncated")
    assert cut["skipped"] == ["line 28: not JSON, or cut off"]


def test_a_file_that_is_named_is_taken_however_old(folder: Path):
    _, out = bench(str(folder / "old.jsonl"), "--json", "--strategies", "nothing")
    assert [trace["name"] for trace in json.loads(out)["traces"]] == ["old"]


def test_several_files_after_one_option(folder: Path):
    code, out = bench("--trace", str(DEMO), str(folder / "truncated.jsonl"), "--strategies", "auto,nothing")
    assert code == 0
    assert "All 2 sessions, 2026-11-16 to 2026-11-16" in out
    assert "skipped line 28: not JSON, or cut off" in out


def test_nothing_to_replay_is_a_failure_that_says_why(tmp_path: Path):
    (tmp_path / "empty.jsonl").write_text("")
    code, out = bench(str(tmp_path / "empty.jsonl"))
    assert code == 1
    assert "empty.jsonl: no model call in it" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Name a transcript"),
        (["--trace", "/no/such/file"], "no such file or folder"),
        (["--trace", str(DEMO), "--strategies", "atuo"], "Unknown strategy 'atuo'"),
        (["--trace", str(DEMO), "--plot", "out.png"], "only .svg files are drawn"),
        (["--trace", str(DEMO), "--model", "nobody"], "No price is known for 'nobody'"),
        (["--trace", str(DEMO), "--strategies", "nothing", "--plot", "/no/such/out.svg"], "name another file"),
        (["--preset", "sede"], "Unknown preset 'sede'; use seed"),
    ],
)
def test_mistakes_name_their_fix(words: list[str], message: str):
    with pytest.raises(UserError, match=message):
        bench(*words)


def test_the_preset_is_printed():
    assert "$0.197" in bench("--preset", "seed")[1]
    assert json.loads(bench("--preset", "seed", "--json")[1])["total"] == {"layered": 0.197, "planner": 0.53}


def test_plots_are_drawn(tmp_path: Path):
    plots = [tmp_path / "time.svg", tmp_path / "frontier.svg"]
    code, _ = bench("--trace", str(DEMO), "--plot", str(plots[0]), "--frontier", str(plots[1]))
    assert code == 0
    curves = ET.parse(plots[0]).getroot().findall("{http://www.w3.org/2000/svg}polyline")
    assert len(curves) == 2 * (1 + len(STRATEGIES))
    dots = ET.parse(plots[1]).getroot().findall("{http://www.w3.org/2000/svg}circle")
    assert len(dots) == 2 * (1 + len(STRATEGIES))


def test_titles_are_escaped_in_plots():
    events = session(SHAPES[0], model="gpt-5.1")
    found = compare("f", '<script>&"', "gpt-5.1", events, Conditions(Prices({}, None), ("auto",)))
    assert found is not None
    for drawn in (plot.svg(found, render.title(found)), plot.frontier(found, render.title(found))):
        assert ET.fromstring(drawn) is not None
        assert "<script>" not in drawn


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (0, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (42.6, [0, 10, 20, 30, 40, 50]),
        (0.011, [0, 0.0025, 0.005, 0.0075, 0.01, 0.0125]),
    ],
)
def test_ticks_are_round(most: float, expected: list[float]):
    assert plot.ticks(most) == pytest.approx(expected)


def test_a_pipe_in_a_folder_is_not_opened(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert files.find([tmp_path], since=0).files == []
