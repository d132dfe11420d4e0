"""Every figure of the page is the one that `ra cost`, `ra context` and `ra bench` print for the same thing."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from ra.app import App
from ra.cli.commands import CommandContext
from ra.cli.flags import parse
from ra.providers.script import Call as ScriptedCall
from ra.providers.script import Step
from ra.testing.server import LoopbackServer
from ra.web.sessions import ShownSessions
from ra.web.texts import piece_text
from ra.web.whatif import WhatIfQuery
from tests.cli.conftest import Shell
from tests.web import transcripts
from tests.web.conftest import DEMO


def app_of(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> App:
    monkeypatch.chdir(shell.project)
    return CommandContext(parse([], "ra"), shell.env).app()


def shown(shell: Shell, monkeypatch: pytest.MonkeyPatch, path: Path) -> ShownSessions:
    sessions = ShownSessions(app_of(shell, monkeypatch), paths=[path])
    sessions.read_files()
    return sessions


@pytest.fixture
def orders(shell: Shell, monkeypatch: pytest.MonkeyPatch, transcript: Path) -> ShownSessions:
    return shown(shell, monkeypatch, transcript)


def test_a_stored_session_shows_the_figures_of_cost_and_context(
    shell: Shell, hello: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shell.project / "notes.md").write_text("The cart holds twelve apples.\n" * 40)
    shell.ra("-q", "What is in @notes.md ?")
    shell.ra("-q", "-c", "And what else?")
    sessions = ShownSessions(app_of(shell, monkeypatch))
    (card,) = sessions.catalog().cards
    overview = sessions.recording(card.id).session()
    costs = {by: json.loads(shell.ra("cost", "--by", by, "--json").stdout) for by in ("source", "tool", "model")}
    context = json.loads(shell.ra("context", "--json").stdout)
    upcoming = asyncio.run(sessions.next_request(card.id))
    found = sessions.findings(card.id)
    assert upcoming is not None
    assert (upcoming.total, upcoming.cached, upcoming.window) == (
        context["total"],
        context["cached"],
        context["window"],
    )
    assert upcoming.cost == pytest.approx(float(context["cost"]), abs=1e-9)
    (model,) = costs["model"]
    assert overview.total == pytest.approx(float(model["dollars"]), abs=1e-9)
    assert card.dollars == pytest.approx(float(model["dollars"]), abs=1e-9)
    assert len(overview.calls.at) == card.calls == model["calls"] == 2
    for by, lines in (("source", found.by_source), ("tool", found.by_tool), ("model", found.by_model)):
        assert [(line.key, line.calls, f"{line.dollars:.6f}") for line in lines] == [
            (row["key"], row["calls"], f"{float(row['dollars']):.6f}") for row in costs[by]
        ]


def test_an_imported_transcript_costs_what_ra_cost_says(shell: Shell, transcript: Path, orders: ShownSessions) -> None:
    (card,) = orders.catalog().cards
    shell.ra("sessions", "import", str(transcript))
    (row,) = json.loads(shell.ra("cost", "--json").stdout)
    overview = orders.recording(card.id).session()
    assert f"{overview.total:.6f}" == f"{card.dollars:.6f}" == f"{float(row['dollars']):.6f}"
    assert overview.calls.spent[-1] == pytest.approx(overview.total)


def test_what_if_is_the_row_of_the_bench(shell: Shell, transcript: Path, orders: ShownSessions) -> None:
    (card,) = orders.catalog().cards
    flags = ["--trace", str(transcript), "--window", "20000", "--strategies", "digest,nothing", "--json"]
    (trace,) = json.loads(shell.ra("bench", "context", *flags).stdout)["traces"]
    replayed = orders.what_if(card.id, WhatIfQuery(("digest", "nothing"), window=20_000))
    rows = {row["strategy"]: row for row in trace["rows"]}
    for curve in (replayed.recorded, *replayed.rows):
        row = rows[curve.strategy]
        figures = (curve.cost, curve.hit_rate, curve.peak, curve.rewrites)
        assert figures == (row["cost"], row["hitRate"], row["peak"], row["rewrites"])
        assert curve.spent[-1] == pytest.approx(curve.cost, abs=1e-6)
    assert replayed.billed == trace["calibration"]["billed"]


@pytest.mark.parametrize("name", ["orders", "demo"])
def test_an_import_has_the_figures_of_cost_context_and_bench_that_its_file_shows(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, transcript: Path, name: str
) -> None:
    file = {"orders": transcript, "demo": DEMO}[name]
    from_file = shown(shell, monkeypatch, file)
    id = from_file.catalog().cards[0].id
    shell.ra("sessions", "import", str(file))
    stored = ShownSessions(app_of(shell, monkeypatch), everywhere=True)
    (card,) = stored.catalog().cards
    for by in ("model", "tool", "source"):
        rows = json.loads(shell.ra("cost", "--session", card.id, "--by", by, "--json").stdout)
        expected = [(row["key"], row["calls"], f"{float(row['dollars']):.6f}") for row in rows]
        for sessions, each in ((from_file, id), (stored, card.id)):
            costs = sessions.findings(each)
            lines = getattr(costs, f"by_{by}")
            if costs.divided and by != "model":  # the same sum, and the page says that it divides more finely
                assert sum(line.dollars for line in lines) == pytest.approx(sum(float(row["dollars"]) for row in rows))
                assert expected[0][0] == "other input"
            else:
                assert [(line.key, line.calls, f"{line.dollars:.6f}") for line in lines] == expected, by
            assert costs.divided is (name == "orders")
    context = json.loads(shell.ra("context", "--session", card.id, "--json").stdout)
    upcoming = asyncio.run(stored.next_request(card.id))
    assert upcoming is not None
    assert (upcoming.total, upcoming.cached) == (context["total"], context["cached"])
    flags = ["--trace", str(file), "--strategies", "auto,truncate", "--json"]
    (trace,) = json.loads(shell.ra("bench", "context", *flags).stdout)["traces"]
    rows = {row["strategy"]: row for row in trace["rows"]}
    for curve in from_file.what_if(id, WhatIfQuery(("auto", "truncate"))).rows:
        assert (curve.cost, curve.names, curve.lines) == (
            rows[curve.strategy]["cost"],
            rows[curve.strategy]["recall"],
            rows[curve.strategy]["lines"],
        )


def test_areas_add_up_to_the_bill_of_each_call(orders: ShownSessions) -> None:
    overview = orders.recording(orders.catalog().cards[0].id).session()
    calls = overview.calls
    assert [sum(sizes) for sizes in calls.stack] == [
        sum(counts) for counts in zip(calls.input, calls.read, calls.write, strict=True)
    ]
    assert [sum(sizes) for sizes in calls.fresh] == [
        sum(counts) for counts in zip(calls.input, calls.write, strict=True)
    ]


def test_what_pieces_cost_is_what_was_paid_for_input(orders: ShownSessions) -> None:
    recording = orders.recording(orders.catalog().cards[0].id)
    overview = recording.session()
    output = sum(
        usage.output * rate.output / 1e6 for usage, rate in zip(recording.usages, recording.rates, strict=True)
    )
    assert sum(piece.dollars for piece in overview.pieces) + output == pytest.approx(overview.total, rel=1e-4)


def test_pauses_lost_caches_and_rereads_are_found(orders: ShownSessions) -> None:
    id = orders.catalog().cards[0].id
    found = orders.findings(id)
    costs = orders.recording(id).session().calls.dollars
    caches = {finding.kind: finding for finding in found.avoidable if finding.kind != "reread"}
    assert {kind: finding.call for kind, finding in caches.items()} == {
        "pause": transcripts.PAUSE_BEFORE,
        "lost": transcripts.LOST_AT,
    }
    assert all(0 < finding.dollars < costs[finding.call] for finding in caches.values())
    marks = orders.recording(id).session().marks
    assert [mark.call for mark in marks if mark.kind == "lost"] == [transcripts.LOST_AT]
    rereads = [finding for finding in found.avoidable if finding.kind == "reread"]
    assert len(rereads) == 3  # calls 21 to 23 read what 1 to 3 have read
    assert "while it was still in the window" in rereads[0].text


def test_a_short_prefix_that_no_provider_caches_is_no_lost_cache(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = shown(shell, monkeypatch, DEMO)
    found = sessions.findings(sessions.catalog().cards[0].id)
    assert "lost" not in {finding.kind for finding in found.avoidable}


def test_a_session_that_grows_is_read_again(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = transcripts.write(tmp_path / "growing.jsonl")
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[: len(lines) // 2]))
    sessions = shown(shell, monkeypatch, file)
    id = sessions.catalog().cards[0].id
    before, version = len(sessions.recording(id).session().calls.at), sessions.version(id)
    file.write_text("".join(lines))
    assert sessions.version(id) != version
    assert len(sessions.recording(id).session().calls.at) > before


def test_a_session_that_grows_between_the_list_and_the_picture_is_shown_whole(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = transcripts.write(tmp_path / "growing.jsonl")
    whole = file.read_text()
    lines = whole.splitlines(keepends=True)
    file.write_text("".join(lines[: len(lines) // 2]))
    sessions = shown(shell, monkeypatch, file)
    (card,) = sessions.catalog().cards
    file.write_text(whole)
    assert len(sessions.recording(card.id).session().calls.at) == 24 > card.calls


def test_a_folder_lists_what_it_can_read_and_says_what_not(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "all").mkdir()
    transcripts.write(tmp_path / "all/good.jsonl")
    (tmp_path / "all/bad.jsonl").write_text("{not json\n")
    sessions = shown(shell, monkeypatch, tmp_path / "all")
    listing = sessions.catalog()
    assert [card.calls for card in listing.cards] == [len(sessions.recording(listing.cards[0].id).session().calls.at)]
    assert len(listing.skipped) == 1
    assert "bad.jsonl" in listing.skipped[0]
    assert sum(day.calls for day in listing.days) == listing.cards[0].calls
    assert sum(day.dollars for day in listing.days) == pytest.approx(listing.cards[0].dollars)


def test_a_fork_has_not_paid_for_what_it_was_begun_with(
    shell: Shell, hello: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.ra("-q", "One.")
    shell.ra("-q", "-c", "--fork", "Two.")
    sessions = ShownSessions(app_of(shell, monkeypatch))
    rows = json.loads(shell.ra("cost", "--by", "session", "--json").stdout)
    totals = {card.id: f"{sessions.recording(card.id).session().total:.6f}" for card in sessions.catalog().cards}
    assert sorted(totals.values()) == sorted(f"{float(row['dollars']):.6f}" for row in rows)


def test_a_session_without_bills_is_estimated_and_says_so(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    talk = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello yourself."}]
    (tmp_path / "talk.json").write_text(json.dumps(talk))
    sessions = shown(shell, monkeypatch, tmp_path / "talk.json")
    overview = sessions.recording(sessions.catalog().cards[0].id).session()
    assert not overview.billed
    assert overview.total == overview.calls.spent[-1] > 0


def test_the_position_of_a_piece_is_what_recall_reads(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (shell.project / "apples.txt").write_text("twelve apples\n")

    def answer(body: dict[str, Any]) -> Step:
        done = len(body["messages"]) > 2
        return Step(text="Twelve.") if done else Step(calls=(ScriptedCall("Read", {"path": "apples.txt"}),))

    with LoopbackServer("anthropic", answer) as server:
        shell.serve(server)
        shell.ra("-q", "How many apples?")
    sessions = ShownSessions(app_of(shell, monkeypatch))
    recording = sessions.recording(sessions.catalog().cards[0].id)
    overview = recording.session()
    (result,) = [number for number, piece in enumerate(overview.pieces) if piece.role == "tool"]
    recalled = shell.ra("recall", f"#{overview.pieces[result].at}").stdout.decode()
    assert "twelve apples" in recalled
    assert "twelve apples" in piece_text(recording.requests.contents[result]).parts[0].text
    assert overview.sources[overview.pieces[result].source] == "tool:Read"
