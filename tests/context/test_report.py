from decimal import Decimal

from hypothesis import given, settings

from ra.context.compose.slots import Slots
from ra.context.report import Report, Row, report
from ra.context.tokens import Estimator
from ra.core.facts import EntrySet, Noticed
from ra.core.messages import say
from ra.core.model import Section, Usage
from ra.core.text import reference
from tests.context.sessions import CONFIGURED, SYSTEM, TOOLS, engine, play, replayed, run, scripts, started, step

COUNT = Estimator()


def price(model: str, usage: Usage) -> Decimal:
    return (usage.cache_read + 10 * usage.cache_write) / Decimal(1000)


def test_a_report_names_every_source_with_its_size_and_what_is_cached():
    one = engine(100_000)
    log = started(one)
    before = one.request()
    log.record(Noticed(Section("env", "volatile", "cwd: /src")))
    ask, answer = step(1, "word " * 50)
    log.say(ask, answer)
    found = report(one.request(), estimator=COUNT, window=100_000, previous=before, price=price)
    prompt, system, tools = (
        COUNT.message(before.messages[0]),
        COUNT.section(SYSTEM),
        COUNT.tools(TOOLS),
    )
    cached = prompt + system + tools
    assert found == Report(
        model="script-1",
        window=100_000,
        total=COUNT.request(one.request()),
        cached=cached,
        cost=str(price("", Usage(cache_read=cached, cache_write=COUNT.request(one.request()) - cached))),
        rows=(
            Row("tools", "pinned", "system", tools, cached=tools),
            Row("system", "pinned", "system", system, cached=system),
            Row("conversation", "volatile", "user", prompt, cached=prompt),
            Row("env", "volatile", "system", COUNT.message(say("system", "cwd: /src", name="env"))),
            Row("conversation", "volatile", "assistant", COUNT.message(ask)),
            Row("tool:Read", "volatile", "tool", COUNT.message(answer)),
        ),
    )


@settings(deadline=None, max_examples=30)
@given(scripts)
def test_rows_add_up_to_the_size_that_is_sent(script):
    one = engine(5000, factor=1.37)
    log = started(one)
    for sent in play(script, one, log):
        request = sent.assembly.request
        found = report(request, estimator=one.estimator, window=5000)
        assert found.total == sum(row.tokens for row in found.rows) == one.estimator.request(request)
        assert found.cached == 0


def test_a_report_says_what_was_cut_and_how_to_recall_it():
    one = engine(8000)
    log = started(one)
    list(run(one, log, 60))
    log.say(*step(99, "x " * 30_000))
    found = {row.name: row.cut for row in report(one.request(), estimator=COUNT, window=8000).rows}
    assert found["compacted"].startswith("hidden: recall #")
    assert found["tool:Read"] == f"shortened: recall #{len(log.written)}"
    assert found["system"] == ""


def test_a_report_names_what_sources_and_slots_cut_from_messages():
    one = engine(8000)
    log = started(one)
    slots = Slots(400, COUNT)
    slots.add("notes", "word " * 900, trim_behavior="char")
    rendered = slots.render()
    log.say(*rendered.messages)
    found = {row.name: row.cut for row in report(one.request(), estimator=COUNT, window=8000).rows}
    assert found["notes"] == f"shortened: recall {reference('word ' * 900)}"


def test_a_section_keeps_its_maximum_and_its_cut():
    cut = Section("docs", "stable", "…", max=100, cut="900 tokens; recall ~0123456789ab")
    one = engine()
    started(one, configured=CONFIGURED.__class__("p", "m", "timeline", (cut,)))
    row = report(one.request(), estimator=COUNT, window=None).rows[0]
    assert (row.name, row.tier, row.max, row.cut) == ("docs", "stable", 100, "900 tokens; recall ~0123456789ab")


def test_a_past_request_is_reported_by_folding_up_to_it():
    one = engine(4000)
    log = started(one)
    log.record(EntrySet("a", "b"))
    for request in run(one, log, 40):
        then = replayed(log.written, limit=4000).request()
        assert report(then, estimator=COUNT, window=4000) == report(request, estimator=COUNT, window=4000)
