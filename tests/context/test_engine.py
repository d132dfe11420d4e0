import asyncio
import random
import sys
import time
import tracemalloc
from itertools import pairwise

import pytest

from ra.context.compaction.names import identifiers, spoken
from ra.context.engine import Assembly, Engine
from ra.context.render import COMPACTED
from ra.context.size import Window
from ra.context.tokens import Estimator
from ra.core.errors import UserError
from ra.core.facts import Checkpointed, Configured, Noticed, Said, Spent, TimelineEvent
from ra.core.messages import say
from ra.core.model import Effort, Request, Section, ToolSpec, Usage
from tests.context.sessions import (
    CONFIGURED,
    PROMPT,
    SYSTEM,
    TOOLS,
    Log,
    answers,
    asks,
    assemble,
    call_of,
    engine,
    paired,
    prose,
    replayed,
    run,
    started,
    step,
    text_of,
)

COUNT = Estimator()


def words(count: int, word: str = "word") -> str:
    return f"{word} " * count


def prose_of(seed: int, count: int) -> str:
    return prose(random.Random(seed), count)


# --- measuring ---


def test_nothing_is_counted_while_a_bound_proves_that_no_limit_is_near():
    one = engine(200_000)
    log = started(one)
    log.say(*step(1, words(1500)))
    assembly = assemble(one)
    assert assembly.tokens is None
    assert assembly.facts == ()
    assert not one.view.counted


def test_an_unknown_window_asks_for_nothing():
    one = engine(None)
    log = started(one)
    log.say(*step(1, words(500_000)[:900_000]))
    assert assemble(one).tokens is None
    assert assemble(one).facts == ()


def test_the_size_is_what_was_last_reported_and_an_estimate_of_what_came_since():
    one = engine(8000)
    log = started(one)
    assemble(one)
    call, answer = step(1, words(1000))
    log.say(call)
    log.record(Spent("script-1", Usage(input=100, cache_read=5000, cache_write=1000)))
    log.say(answer)
    added = COUNT.messages((call, answer))
    assert one.measure(exact=True) == 6100 + 2 * added  # so large a bill says that the model counts twice what we count


def test_a_report_that_leaves_out_what_the_cache_held_is_not_believed():
    one = engine(8000)
    log = started(one)
    log.say(*step(1, words(3000)))
    log.record(Spent("script-1", Usage(input=4000)))
    log.say(*step(2, words(1000))[:1])
    log.record(Spent("script-1", Usage(input=60)))
    log.say(step(2, words(3000))[1])
    total = one.measure(exact=True)
    assert total is not None
    assert total > 7000


def test_the_trigger_is_reached_by_what_the_provider_counts_not_by_what_we_do():
    """It counts twice as much: half of the window by our count is all of it."""
    one = engine(8000)
    log = started(one)
    requests = list(run(one, log, 60, words=120, bill=2.0))
    assert log.facts(Checkpointed)
    assert all(2 * COUNT.request(request) <= 7200 for request in requests[5:])


def test_replies_calibrate_the_estimator():
    one = engine(8000)
    log = started(one)
    log.say(*step(1, words(5000)))
    tokens = assemble(one).tokens
    assert tokens is not None
    one.observe_usage(Usage(input=int(tokens * 1.3)), tokens)
    assert one.estimator.factor == pytest.approx(1.3, rel=0.01)


# --- deciding ---


@pytest.mark.parametrize("strategy", ["truncate", "digest", "auto"])
def test_over_the_threshold_the_request_shrinks_and_already_stands_on_the_facts(strategy):
    one = engine(8000, strategy=strategy)
    log = started(one)
    for number in range(30):
        log.say(*step(number, prose_of(number, 250)))
    before = one.measure(exact=True)
    assembly = assemble(one)
    (fact,) = assembly.facts
    assert fact.reason == "threshold"
    assert (fact.before, fact.after) == (before, assembly.tokens)
    assert fact.after <= 6000
    log.record(*assembly.facts)
    assert one.request() == assembly.request
    assert assemble(one) == Assembly(assembly.request)


def test_compaction_that_is_turned_off_waits_for_the_provider_to_refuse():
    one = engine(8000, enabled=False)
    log = started(one)
    for number in range(30):
        log.say(*step(number, prose_of(number, 300)))
    assert assemble(one).facts == ()
    one.learn(8000, sent=11_000)
    forced = assemble(one, force="overflow")
    assert forced.facts[0].reason == "overflow"
    assert forced.tokens is not None
    assert forced.tokens <= 7200


def test_max_tokens_triggers_where_no_window_is_known():
    one = engine(None, max_tokens=3000)
    log = started(one)
    for number in range(20):
        log.say(*step(number, prose_of(number, 200)))
    assembly = assemble(one)
    assert assembly.facts
    assert assembly.tokens is not None
    assert assembly.tokens <= 2500


def test_a_compaction_that_would_not_shrink_by_a_tenth_does_not_happen():
    one = engine(10_000, threshold=0.3)
    log = started(one, words(4000))
    log.say(*step(1, words(30)), *step(2, words(30)), *step(3, words(30)))
    assembly = assemble(one)
    assert assembly.tokens is not None
    assert assembly.tokens > 3000
    assert assembly.facts == ()


def test_a_user_who_asks_for_it_gets_a_compaction_far_below_the_threshold():
    one = engine(200_000)
    log = started(one)
    for number in range(30):
        log.say(*step(number, prose_of(number, 200)))
    assembly = assemble(one, force="asked for")
    (fact,) = assembly.facts
    assert fact.reason == "asked for"
    assert fact.after <= fact.before // 2 + 200


def test_refit_is_the_most_that_a_request_may_have():
    one = engine(200_000)
    log = started(one)
    for number in range(30):
        log.say(*step(number, prose_of(number, 200)))
    fitted = assemble(one, refit=3000)
    assert fitted.tokens is not None
    assert fitted.tokens <= 3000
    assert assemble(one, refit=100_000).facts == ()


# --- overflow ---


def test_an_overflow_teaches_the_window_and_one_is_enough():
    one = engine(None)
    log = started(one)
    for number in range(40):
        log.say(*step(number, prose_of(number, 300)))
    assert assemble(one).facts == ()
    one.learn(8192, sent=14_000)
    assert one.window == Window(8192, "learned")
    assembly = assemble(one, force="overflow")
    log.record(*assembly.facts)
    assert 14_000 / 13_000 * COUNT.request(assembly.request) < 7400
    for request in run(one, log, 40):
        assert COUNT.request(request) <= 7400


@pytest.mark.parametrize("strategy", ["truncate", "digest"])
@pytest.mark.parametrize("rate", [0.8, 1.3, 1.75])
@pytest.mark.parametrize("reports", [True, False])
def test_a_server_that_counts_otherwise_refuses_at_most_once(reports, rate, strategy):
    """It counts `rate` times what we count and six tokens more for each message, and the answer must fit as well."""

    def counted(request: Request) -> int:
        return int((COUNT.request(request) + 6 * len(request.messages)) * rate)

    one = engine(None, strategy=strategy)
    log = started(one)
    refused = 0
    for number in range(100):
        request = sent_by(one, log)
        if counted(request) + request.max_output > 8000:
            refused += 1
            one.learn(8000, sent=counted(request))
            request = sent_by(one, log, force="overflow")
            assert counted(request) + request.max_output <= 8000
        call, answer = step(number, prose_of(number, 40 + 37 * number % 400))
        log.say(call)
        if reports:
            log.record(Spent("script-1", Usage(input=counted(request))))
            one.observe_usage(Usage(input=counted(request)), None)
        log.say(answer)
    assert refused == 1


def sent_by(one: Engine, log: Log, **how: str) -> Request:
    assembly = assemble(one, **how)
    log.record(*assembly.facts)
    return assembly.request


def test_a_server_that_names_no_limit_is_sent_less_each_time():
    one = engine(None)
    log = started(one)
    for number in range(40):
        log.say(*step(number, prose_of(number, 300)))
    sizes = [COUNT.request(assemble(one).request)]
    for _ in range(3):
        one.learn(None)
        assembly = assemble(one, force="overflow")
        log.record(*assembly.facts)
        sizes.append(COUNT.request(assembly.request))
    assert all(after < before * 0.75 for before, after in pairwise(sizes))


def test_a_server_that_names_no_limit_is_never_sent_less_than_it_took_before():
    one = engine(None)
    log = started(one)
    log.say(*step(1, prose_of(1, 900)), say("assistant", "Seen."))
    log.record(Spent("script-1", Usage(input=2000, output=2), parts={"conversation": 8000}))
    log.say(say("user", words(40_000)))
    for _ in range(3):
        one.learn(None)
        log.record(*assemble(one, force="overflow").facts)
    assert one.window == Window(2400, "guessed")


def test_a_guess_grows_with_what_the_server_takes():
    one = engine(None)
    started(one, words(4000))
    one.learn(None)
    assert one.window.origin == "guessed"
    one.observe_usage(Usage(input=9000), 8000)
    assert one.window == Window(9000, "guessed")
    one.observe_usage(Usage(input=9_000_000), 8000)  # a bill that cannot be
    assert one.window == Window(9000, "guessed")


@pytest.mark.parametrize("rate", [0.8, 2.5, 6.0])
def test_a_server_that_names_its_limit_but_not_what_was_sent_is_fitted_in_three_steps(rate):
    one = engine(None)
    log = started(one)
    for number in range(40):
        log.say(*step(number, prose_of(number, 300)))
    for _ in range(3):
        if COUNT.request(sent_by(one, log, force="overflow")) * rate <= 4000:
            break
        one.learn(4000)
    assert COUNT.request(sent_by(one, log, force="overflow")) * rate <= 4000


def test_a_limit_that_only_the_room_for_the_answer_exceeds_lowers_that_room():
    one = engine(None)
    log = started(one, configured=Configured("p", "script-1", "timeline", (SYSTEM,), TOOLS, max_output=8000))
    log.say(*step(1, words(3000)))
    sent = COUNT.request(assemble(one).request)
    one.learn(10_000, sent=sent)
    assembly = assemble(one, force="overflow")
    assert assembly.facts == ()
    assert assembly.request.max_output == 1000


def test_thinking_gives_way_where_the_answer_has_little_room():
    thinking = Configured("p", "script-1", "timeline", (SYSTEM,), (), Effort("high", 32_000), max_output=40_000)
    one = engine(100_000)
    log = started(one, configured=thinking)
    assert assemble(one).request.effort == Effort("high", 32_000)
    log.say(*step(1, words(9_000)), *[say("user", words(8_000)) for _ in range(7)])
    request = assemble(one).request
    assert request.max_output == 10_000
    assert request.effort == Effort("high", 5000)


def test_a_configured_window_is_lowered_by_what_the_server_says_and_never_raised():
    one = engine(8000)
    one.window = Window(8000, "configured")
    started(one)
    one.learn(100_000)
    assert one.window.limit == 8000
    one.learn(4000)
    assert one.window.limit == 4000


# --- hard cases ---


@pytest.mark.parametrize("strategy", ["truncate", "digest"])
@pytest.mark.parametrize("limit", [2000, 8000, 32_000])
def test_hundreds_of_steps_on_any_window(limit, strategy):
    one = engine(limit, strategy=strategy)
    log = started(one)
    budget = limit - min(1000, limit // 10)
    for request in run(one, log, 300, output=lambda n: prose_of(n, 40 + 37 * n % 200)):
        assert COUNT.request(request) <= budget
        assert request.messages[0].text.startswith(PROMPT)
        assert paired(request.messages)
    assert len(log.facts(Checkpointed)) < 150


@pytest.mark.parametrize("strategy", ["truncate", "digest"])
def test_a_first_prompt_five_times_the_window_is_cut_in_the_middle_and_says_so(strategy):
    one = engine(8000, strategy=strategy)
    log = started(one, f"BEGIN {words(40_000)} END")
    for request in run(one, log, 20):
        prompt = request.messages[0].text
        assert prompt.startswith("BEGIN word")
        assert "END" in prompt
        assert 'recall("#2")' in prompt
        assert COUNT.request(request) <= 7200


@pytest.mark.parametrize("strategy", ["truncate", "digest"])
def test_a_tool_result_twenty_times_the_window_is_shown_from_both_ends(strategy):
    one = engine(8000, strategy=strategy)
    log = started(one)
    huge = f"BEGIN {words(160_000)} END"
    requests = list(run(one, log, 6, output=lambda n: huge if n == 3 else words(50)))
    assert all(COUNT.request(request) <= 7200 for request in requests)
    assert all(request.messages[0].text == PROMPT for request in requests)
    after = text_of(requests[3])
    assert "BEGIN word" in after
    assert "word  END" in after


def test_a_window_of_two_thousand_with_fifteen_hundred_tokens_of_tools_works():
    tools = tuple(ToolSpec(f"tool_{n}", words(130), {"type": "object"}) for n in range(10))
    size = COUNT.tools(tools)
    assert 1400 < size < 1600
    one = engine(2000)
    log = started(one, configured=Configured("p", "script-1", "timeline", (SYSTEM,), tools, max_output=1000))
    for request in run(one, log, 40):
        assert COUNT.request(request) <= 1800
        assert paired(request.messages)
        assert request.messages[0].text.startswith(PROMPT)


def test_tools_that_leave_no_room_are_refused_with_a_sentence_that_says_so():
    tools = tuple(ToolSpec(f"tool_{n}", words(300), {"type": "object"}) for n in range(10))
    one = engine(2000)
    started(one, configured=Configured("p", "script-1", "timeline", (SYSTEM,), tools, max_output=1000))
    with pytest.raises(UserError, match=r"tool definitions \(3\d\d\d\) leave too little room .* 1800 tokens"):
        assemble(one)


def test_the_sentence_names_what_fills_the_window_largest_first():
    one = engine(2000)
    rules = Section("AGENTS.md", "stable", words(2500))
    started(one, configured=Configured("p", "script-1", "timeline", (SYSTEM, rules), TOOLS, max_output=1000))
    with pytest.raises(UserError, match=r"tokens: AGENTS.md 2\d\d\d, system \d\d\) .*agent.context.patterns"):
        assemble(one)


def test_a_compaction_that_would_make_the_request_larger_does_not_happen():
    one = engine(2000)
    log = started(one)
    log.say(*step(1, "ok"), *step(2, words(4000)))
    facts = assemble(one).facts
    assert facts
    assert all(fact.after < fact.before for fact in facts)


def test_chinese_and_minified_code_fit_too():
    one = engine(8000)
    log = started(one, "请修复缓存前缀的错误。")
    texts = ["压缩上下文时必须保留第一条提示。" * 60, "function a(b){return b?c(d,e):f[g]}" * 80, "QUJDREVG" * 300]
    for request in run(one, log, 60, output=lambda n: texts[n % 3]):
        assert COUNT.request(request) <= 7200


def test_switching_to_a_smaller_model_does_not_brick_the_session():
    one = engine(200_000)
    log = started(one)
    list(run(one, log, 100, words=400))
    small = replayed(log.written, limit=8000)
    assembly = assemble(small)
    assert assembly.tokens is not None
    assert assembly.tokens <= 6000


def test_fifty_parallel_calls_fit_into_a_small_window():
    one = engine(2000)
    log = started(one)
    calls = [call_of(n) for n in range(50)]
    log.say(asks(*calls), *(answers(call, words(40)) for call in calls))
    request = assemble(one).request
    assert COUNT.request(request) <= 1800
    assert paired(request.messages)


def test_the_newest_prompt_is_not_compacted_while_the_model_works_on_it():
    one = engine(4000)
    log = started(one)
    log.say(say("assistant", "Done."), say("user", "Now rename the module to ledger."))
    assert all("rename the module to ledger" in text_of(request) for request in run(one, log, 60))


def test_the_next_request_of_a_huge_session_costs_what_is_new_in_it():
    def session(steps: int) -> float:
        one = engine(2_000_000)
        log = started(one)
        text = words(180)
        for number in range(steps):
            log.say(*step(number, text))
        log.record(Spent("script-1", Usage(input=200 * steps)))
        assemble(one)
        times = []

        async def go_on() -> None:
            for number in range(41):
                log.say(*step(number, text))
                began = time.perf_counter()
                await one.assemble()
                times.append(time.perf_counter() - began)

        asyncio.run(go_on())
        return sorted(times)[20]

    small, huge = session(50), session(5000)
    assert huge < 0.050
    assert huge < 3 * small + 0.0005


def test_memory_of_a_session_stays_near_its_text():
    one = engine(2_000_000)
    log = started(one)
    texts = [prose_of(n, 180) for n in range(1000)]
    tracemalloc.start()
    for number, text in enumerate(texts):
        log.say(*step(number, text + f" {number}"))
    one.measure(exact=True)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used <= 3 * sum(map(sys.getsizeof, texts))


# --- economy ---


class Cheap:
    """An economy that wants a cut once there is something to cut."""

    asked: list[dict[str, int]]

    def __init__(self, *, index: int = 4_000) -> None:
        self.asked = []
        self.warm = True
        self._index = index

    def observe(self, event: TimelineEvent) -> None:
        pass

    def sizes(self, window: int | None, *, forced: bool = False) -> tuple[int, int]:
        return 1000, self._index

    def wants(self, **sizes: int) -> str:
        self.asked.append(sizes)
        return "rent paid" if sizes["zone"] > 4000 else ""


def markers(request: Request) -> list[str]:
    return [message.text for message in request.messages if message.name == COMPACTED]


def named(number: int) -> str:
    return f"{prose(random.Random(number), 100)} src/file_{number}.py id_{number} {number * 7919}"


def test_auto_cuts_when_its_economy_says_so():
    economy = Cheap()
    one = engine(200_000, strategy="auto", economy=economy)
    log = started(one)
    list(run(one, log, 60))
    facts = log.facts(Checkpointed)
    assert facts
    assert {(fact.strategy, fact.reason) for fact in facts} == {("digest", "rent paid")}
    assert all(fact.after < fact.before * 0.6 for fact in facts)
    assert economy.asked[0]["before"] < 200


def test_in_a_warm_cache_an_index_stays_and_the_next_stands_behind_it():
    one = engine(200_000, strategy="auto", economy=Cheap(index=30_000))
    log = started(one)
    requests = list(run(one, log, 150, output=named))
    stacks = [stack for stack in map(markers, requests) if stack]
    assert len(stacks[-1]) == len(log.facts(Checkpointed)) > 3
    assert all(stacks[-1][: len(stack)] == stack for stack in stacks)
    # All that was sent before the newest index is sent again, byte for byte.
    for before, after in pairwise(requests):
        same = 1 + len(markers(before))
        assert after.messages[:same] == before.messages[:same]


def test_a_cut_with_room_for_an_index_forgets_no_name():
    one = engine(200_000, strategy="auto", economy=Cheap(index=30_000))
    log = started(one)
    last = list(run(one, log, 150, output=named))[-1]
    seen = frozenset[str]().union(*map(spoken, last.messages))
    told = frozenset[str]().union(*(identifiers(named(number)) for number in range(1, 150)))
    assert len(log.facts(Checkpointed)) > 3
    assert told - seen == frozenset()


def test_indexes_name_nothing_twice():
    one = engine(200_000, strategy="auto", economy=Cheap(index=30_000))
    log = started(one)
    stack = markers(list(run(one, log, 150, output=named))[-1])
    paths = [name for index in stack for name in identifiers(index) if name.startswith("src/file_")]
    assert len(stack) > 3
    assert len(paths) == len(set(paths))


def test_indexes_that_fill_their_room_become_one():
    one = engine(200_000, strategy="auto", economy=Cheap(index=3_500))
    log = started(one)
    stacks = [markers(request) for request in run(one, log, 300, output=named)]
    sizes = [sum(map(Estimator().text, stack)) for stack in stacks]
    assert max(map(len, stacks)) > 1
    assert any(len(after) == 1 < len(before) for before, after in pairwise(stacks))
    assert max(sizes) <= 3_600


def test_in_a_cold_cache_all_indexes_become_one():
    economy = Cheap(index=30_000)
    one = engine(200_000, strategy="auto", economy=economy)
    log = started(one)
    assert len(markers(list(run(one, log, 100, output=named))[-1])) > 1
    economy.warm = False
    requests = list(run(one, log, 40, output=lambda number: named(1000 + number)))
    assert len(markers(requests[-1])) == 1


def test_notices_at_the_tail_belong_to_what_is_recent():
    one = engine(4000)
    log = started(one)
    list(run(one, log, 10, words=200))
    log.record(Noticed(Section("env", "volatile", "cwd: /src")), Said(say("user", "And now?")))
    assert "cwd: /src" in text_of(assemble(one).request)


def test_marks_and_the_cache_key_are_in_the_request():
    one = engine(8000)
    one._cache_key = "session-1"
    log = started(one)
    list(run(one, log, 3))
    request = assemble(one).request
    assert request.cache_key == "session-1"
    assert request.marks.tools
    assert request.marks.messages == (4, 6)
    assert CONFIGURED.tools
