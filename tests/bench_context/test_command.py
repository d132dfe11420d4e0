import json
import os
import pty
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ra.bench import drawing, files, plot, render
from ra.bench.command import app
from ra.bench.replay import StrategyResult
from ra.bench.runs import SIZES, STRATEGIES, Conditions, TraceResult, compare
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
    assert all({"strategy", "cost", "hitRate", "peak", "rewrites", "recall"} <= set(row) for row in trace["rows"])
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
    assert "empty.jsonl: it holds no model call" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Name a transcript"),
        (["--trace", "/no/such/file"], "no such file or folder"),
        (["--trace", str(DEMO), "--strategies", "atuo"], "Unknown strategy 'atuo'"),
        (["--trace", str(DEMO), "--plot", "out.pdf"], "its name must end in .svg"),
        (["--trace", str(DEMO), "--model", "nobody"], "No price is known for 'nobody'"),
        (["--trace", str(DEMO), "--strategies", "nothing", "--plot", "/no/such/out.svg"], "name another file"),
        (["--preset", "sede"], "Unknown preset 'sede'; use seed"),
        (["--trace", str(DEMO), "--turns", "3", "--agent", "a"], "--agent, --turns: only with --message"),
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
    curves = [line for line in shapes(plots[0], "polyline") if line.get("stroke") != drawing.GRID]
    assert len(curves) == 3 * (1 + len(STRATEGIES))  # two panels and the legend
    assert len(shapes(plots[1], "circle")) == 2 * (1 + len(STRATEGIES)) + len(SIZES)


def shapes(file: Path, kind: str) -> list[ET.Element]:
    return ET.parse(file).getroot().findall(f"{{http://www.w3.org/2000/svg}}{kind}")


def test_with_a_frontier_auto_is_replayed_with_other_indexes(tmp_path: Path):
    words = ("--trace", str(DEMO), "--strategies", "auto", "--frontier", str(tmp_path / "f.svg"))
    (trace,) = json.loads(bench(*words, "--json")[1])["traces"]
    assert [row["strategy"] for row in trace["sizes"]] == [f"auto, indexes of {size:,}" for size in SIZES]
    assert "auto by the tokens of its indexes: 5,000: $" in bench(*words)[1]


def test_titles_are_escaped_in_plots():
    events = session(SHAPES[0], model="gpt-5.1")
    found = compare("f", '<script>&"', "gpt-5.1", events, Conditions(Prices({}, None), ("auto",)))
    assert found is not None
    for drawn in (plot.over_time(found, render.title(found)), plot.frontier(found, render.title(found))):
        written = drawing.svg(drawn)
        assert ET.fromstring(written) is not None
        assert "<script>" not in written


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
    assert files.find([tmp_path]).files == []


def test_what_is_left_out_names_the_days_that_were_asked_for(folder: Path):
    for days, said in (("1", "1 files older than 1 day"), ("7.5", "1 files older than 7.5 days")):
        _, out = bench("--trace", str(folder), "--days", days, "--json", "--strategies", "nothing")
        assert any(said in line for line in json.loads(out)["skipped"])


def test_a_bill_that_cannot_be_true_is_said_and_estimated_instead(tmp_path: Path):
    usage = {"prompt_tokens": 999_999_999_999, "completion_tokens": 5}
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho", "usage": usage}]
    (tmp_path / "absurd.json").write_text(json.dumps({"model": "gpt-4o", "messages": messages}))
    code, out = bench(str(tmp_path / "absurd.json"), "--json")
    assert code == 0
    (trace,) = json.loads(out)["traces"]
    assert trace["skipped"] == ["1 bills of more than 10,000,000 tokens: estimated instead"]
    assert all(row["peak"] < 1000 for row in trace["rows"])


def test_no_figure_is_cut_off_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "30")
    _, told = bench("--trace", str(DEMO), "--json", "--strategies", "auto")
    _, shown = bench("--trace", str(DEMO), "--strategies", "auto")
    for row in json.loads(told)["traces"][0]["rows"]:
        assert f"{row['peak']:,}" in shown
        assert f"{row['recall']:.3f}" in shown


def test_a_name_in_a_transcript_cannot_steer_the_terminal(tmp_path: Path):
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho", "model": "x\x1b[2J\u202ey"}]
    (tmp_path / "evil.json").write_text(json.dumps({"messages": messages}))
    code, out = bench(str(tmp_path / "evil.json"), "--strategies", "nothing")
    assert code == 0
    assert "x\N{REPLACEMENT CHARACTER}[2J\N{REPLACEMENT CHARACTER}y" in out
    assert "\x1b" not in out


def test_a_strategy_is_compared_on_the_sessions_that_it_was_replayed_on():
    def result(*rows: StrategyResult) -> TraceResult:
        return TraceResult("f", "n", "m", 1, 1000, 0.0, 0.0, rows)

    def row(strategy: str, cost: float) -> StrategyResult:
        return StrategyResult(strategy, cost, 0.0, 1, 0, 1.0)

    both = result(row("recorded", 10.0), row("nothing", 10.0), row("auto", 5.0))
    one = result(row("recorded", 90.0), row("nothing", 45.0))
    assert render.summary([both, one]) == [
        ["recorded", "$100.00", ""],
        ["auto", "$5.00", "-50% (in 1 of 2)"],
        ["nothing", "$55.00", "-45%"],
    ]


def test_an_interrupted_replay_shows_what_was_done(tmp_path: Path):
    (tmp_path / "traces").mkdir()
    first = tmp_path / "traces" / "0.jsonl"
    first.write_bytes(DEMO.read_bytes())
    for number in range(1, 200):
        (tmp_path / "traces" / f"{number}.jsonl").hardlink_to(first)
    words = [sys.executable, "-m", "ra", "bench", "context", "--trace", str(first.parent)]
    # Not under `make coverage`: a signal that arrives while it holds its own lock is never let go.
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "RA_HOME": str(tmp_path / "home")}
    screen, stderr = pty.openpty()
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=stderr, env=env) as process:
        os.close(stderr)
        shown = b""
        while b" 2%" not in shown:  # a few of the files are done
            shown += os.read(screen, 65536)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    os.close(screen)
    assert process.returncode == 130
    [done] = re.findall(r"^All (\d+) sessions", out.decode(), re.MULTILINE)
    assert 2 <= int(done) < 200
    assert f"skipped the rest: interrupted after {done} sessions" in out.decode()
