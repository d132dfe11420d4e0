from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from ra.core.model import Usage
from ra.costs.promptcache import CachePiece, CacheRules, PromptCache, rules_for

MARKS = CacheRules("marks", 1000, writes=True)
STEPS = CacheRules("automatic", 1024, 128)


def pieces(*tokens: int) -> list[CachePiece]:
    return [CachePiece(count, index) for index, count in enumerate(tokens)]


def test_a_mark_writes_and_the_next_request_reads() -> None:
    cache = PromptCache(MARKS)
    first = pieces(2000, 500)
    assert cache.send(first, now=0, marks=[1]) == Usage(cache_write=2500)
    assert cache.send([*first, CachePiece(300, 9), CachePiece(7, 8)], now=10, marks=[1, 2]) == Usage(7, 0, 2500, 300)


def test_without_a_mark_nothing_is_cached() -> None:
    cache = PromptCache(MARKS)
    assert cache.send(pieces(5000), now=0) == Usage(5000)
    assert cache.send(pieces(5000), now=1, marks=[0]) == Usage(cache_write=5000)


def test_a_prefix_below_the_minimum_is_not_kept() -> None:
    cache = PromptCache(MARKS)
    assert cache.send(pieces(999), now=0, marks=[0]) == Usage(999)
    assert cache.send(pieces(999, 1), now=1, marks=[1]) == Usage(cache_write=1000)
    assert cache.send(pieces(999, 1), now=2, marks=[1]) == Usage(cache_read=1000)


def test_the_lifetime_is_refreshed_by_use() -> None:
    cache = PromptCache(MARKS)
    request = pieces(2000)
    cache.send(request, now=0, marks=[0])
    assert cache.send(request, now=300, marks=[0]).cache_read == 2000
    assert cache.send(request, now=600, marks=[0]).cache_read == 2000
    assert cache.warm(now=900)
    assert not cache.warm(now=901)
    assert cache.send(request, now=901, marks=[0]).cache_read == 0


def test_one_hour_entries_live_an_hour() -> None:
    cache = PromptCache(rules_for("claude-opus-4-6", long_lived=True))
    cache.send(pieces(5000), now=0, marks=[0])
    assert cache.send(pieces(5000), now=3600, marks=[0]) == Usage(cache_read=5000)


def test_a_changed_piece_is_read_up_to_the_mark_before_it() -> None:
    cache = PromptCache(MARKS)
    request = pieces(2000, 100, 100)
    cache.send(request, now=0, marks=[0, 2])
    changed = [request[0], CachePiece(100, 77), request[2]]
    assert cache.send(changed, now=1, marks=[0, 2]) == Usage(0, 0, 2000, 200)


def test_the_look_back_ends_after_twenty_blocks() -> None:
    for added, read in ((19, 2000), (20, 0)):
        cache = PromptCache(MARKS)
        request = pieces(2000)
        cache.send(request, now=0, marks=[0])
        longer = request + [CachePiece(10, 100 + index) for index in range(added)]
        assert cache.send(longer, now=1, marks=[len(longer) - 1]).cache_read == read


def test_only_the_last_four_marks_count() -> None:
    cache = PromptCache(MARKS)
    request = pieces(*[2000] * 30)
    cache.send(request, now=0, marks=[0, 26, 27, 28, 29])
    assert cache.send(request[:1], now=1, marks=[0]).cache_read == 0


def test_automatic_caching_reads_in_steps() -> None:
    cache = PromptCache(STEPS)
    assert cache.send(pieces(1000, 100), now=0) == Usage(1100)
    assert cache.send(pieces(1000, 100, 50), now=1) == Usage(1150 - 1024, 0, 1024)
    assert cache.send(pieces(1000, 100, 50, 130), now=2) == Usage(1280 - 1024, 0, 1024)
    assert cache.send(pieces(1000, 100, 50, 130), now=3) == Usage(0, 0, 1280)
    assert cache.send(pieces(1000), now=4) == Usage(1000)


def test_models_that_bill_writes_report_them() -> None:
    cache = PromptCache(rules_for("gpt-6-sol", "openai", write_costs_more=True))
    assert cache.send(pieces(2000), now=0) == Usage(cache_write=2000)
    assert cache.send(pieces(2000, 48), now=0) == Usage(0, 0, 1920, 128)


def test_rules_follow_the_published_ones() -> None:
    assert rules_for("claude-opus-4-5") == CacheRules("marks", 4096, writes=True)
    assert rules_for("anthropic/claude-opus-4.1") == CacheRules("marks", 1024, writes=True)
    assert rules_for("claude-sonnet-4-6") == CacheRules("marks", 1024, writes=True)
    assert rules_for("claude-haiku-4-5") == CacheRules("marks", 4096, writes=True)
    assert rules_for("claude-3-5-haiku-20241022") == CacheRules("marks", 2048, writes=True)
    assert rules_for("gpt-5.1") == CacheRules("automatic", 1024, 128, lifetime_s=600.0)
    assert rules_for("deepseek-chat") == CacheRules("automatic", 64, 64, lifetime_s=3600.0)
    assert rules_for("gemini-3.8-flash") == CacheRules("automatic", 4096)
    assert rules_for("gemini-2.5-flash") == CacheRules("automatic", 2048)


def test_looking_changes_nothing() -> None:
    cache = PromptCache(MARKS)
    request = pieces(2000)
    assert cache.look(request, now=0, marks=[0]) == Usage(cache_write=2000)
    assert cache.look(request, now=0, marks=[0]) == Usage(cache_write=2000)
    cache.send(request, now=0, marks=[0])
    assert cache.look(request, now=1, marks=[0]) == Usage(cache_read=2000)


def naive(rules: CacheRules, sent: Sequence[tuple[Sequence[CachePiece], float, Sequence[int]]]) -> list[Usage]:
    """The same rules, written down plainly: compare every kept prefix piece by piece."""
    kept: list[tuple[list[CachePiece], float]] = []
    bills = []
    for request, now, marks in sent:
        ends = sorted({mark for mark in marks if 0 <= mark < len(request)})[-4:]
        if rules.kind == "automatic":
            ends = [len(request) - 1] if request else []
        alive = [prefix for prefix, until in kept if until >= now]
        back = 10**9 if rules.kind == "automatic" else 20
        hit = 0
        for mark in reversed(ends):
            found = [len(p) for p in alive if p == list(request[: len(p)]) and mark + 1 - back < len(p) <= mark + 1]
            if found:
                hit = max(found)
                break
        sizes = [sum(piece.tokens for piece in request[:end]) for end in range(len(request) + 1)]
        read = sizes[hit] // rules.step * rules.step
        read = read if read >= rules.minimum else 0
        last = sizes[ends[-1] + 1] if ends else 0
        written = max(0, last - read) if rules.writes and last >= rules.minimum else 0
        bills.append(Usage(sizes[-1] - read - written, 0, read, written))
        used = [len(prefix) for prefix, _ in kept if prefix == list(request[: len(prefix)]) and len(prefix) <= hit]
        fresh = range(hit + 1, len(request) + 1) if rules.kind == "automatic" else [end + 1 for end in ends]
        keep = [*used, *fresh]
        kept += [(list(request[:end]), now + rules.lifetime_s) for end in keep if end and sizes[end] >= rules.minimum]
    return bills


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([CacheRules("marks", 20, writes=True), CacheRules("automatic", 16, 8), CacheRules("none")]),
    st.lists(
        st.tuples(
            st.lists(
                st.tuples(st.integers(0, 30), st.integers(0, 1)).map(lambda p: CachePiece(p[0], p[0] * 2 + p[1])),
                max_size=30,
            ),
            st.integers(0, 200),
            st.lists(st.integers(-1, 32), max_size=6),
            st.integers(0, 30),
        ),
        max_size=8,
    ),
)
def test_the_simulator_equals_the_rules_written_down_plainly(
    rules: CacheRules, steps: list[tuple[list[CachePiece], int, list[int], int]]
) -> None:
    sent: list[tuple[list[CachePiece], float, list[int]]] = []
    now, last = 0.0, []
    for tail, wait, marks, keep in steps:
        now += wait
        last = last[:keep] + tail
        sent.append((last, now, marks))
    cache = PromptCache(rules)
    bills = [cache.send(request, now=at, marks=marks) for request, at, marks in sent]
    assert bills == naive(rules, sent)
    assert [bill.total_input for bill in bills] == [sum(p.tokens for p in request) for request, _, _ in sent]
