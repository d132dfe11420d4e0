from decimal import Decimal

from ra.context.compaction.plan import preview
from ra.context.report import CompactionPreview
from ra.core.model import Usage
from tests.context.sessions import assemble, engine, started, step, summaries


def price(model: str, usage: Usage) -> Decimal:
    """A dollar for a hundred tokens read, ten for written ones."""
    return (usage.cache_read + 10 * usage.cache_write) / Decimal(100)


def session(**how):
    one = engine(20_000, **how)
    log = started(one)
    for number in range(1, 31):
        log.say(*step(number, "word " * 300))
    return one


def test_a_preview_says_what_the_compaction_then_does():
    for strategy in ("truncate", "digest"):
        one = session(strategy=strategy)
        shown = preview(one, price=price)
        (fact,) = assemble(one, force="asked for").facts
        assert (shown.before, shown.after, shown.text) == (fact.before, fact.after, fact.marker)
        assert shown.worth
        assert shown.hidden.startswith(f"#{fact.hidden[0][0]}-")


def test_a_preview_names_the_call_from_which_it_pays():
    shown = preview(session(strategy="digest"), price=price)
    before, after, rewrite = (Decimal(x) for x in (shown.dollars_before, shown.dollars_after, shown.rewrite))
    assert before == Decimal(shown.before) / 100
    assert after == Decimal(shown.after) / 100
    calls = shown.break_even
    assert calls is not None
    assert rewrite + (calls - 1) * after <= calls * before
    assert rewrite + (calls - 2) * after > (calls - 1) * before


def test_a_preview_without_a_price_shows_tokens_alone():
    shown = preview(session())
    assert (shown.dollars_before, shown.rewrite, shown.break_even) == ("", "", None)


def test_a_preview_of_nothing_to_hide():
    one = engine(20_000)
    started(one)
    tokens = one.measure(exact=True)
    assert preview(one) == CompactionPreview("truncate", tokens, tokens)


def test_a_preview_of_a_summary_asks_no_model():
    async def never(request):
        raise AssertionError

    shown = preview(session(strategy="summarize", summarize=never))
    assert shown.strategy == "summarize"
    assert shown.after < shown.before


def test_a_preview_of_a_summary_shows_the_gap_that_it_leaves_and_prices_what_it_rewrites():
    call, _ = summaries("<summary>Done.</summary>")
    one = session(strategy="summarize", summarize=call)
    shown = preview(one, price=price)
    fact = assemble(one, force="asked for").facts[-1]
    assert (shown.text, shown.hidden) == (fact.marker, f"#{fact.hidden[0][0]}-{fact.hidden[0][1] + 1}")
    assert fact.after <= shown.after
    fixed = one.estimator.scaled(one.view.fixed_tokens())
    assert Decimal(shown.rewrite) >= price("", Usage(cache_read=fixed, cache_write=shown.after - fixed))
