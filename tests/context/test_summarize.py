import asyncio

import pytest

from ra.context.compaction.cut import split
from ra.context.compaction.digest import Digest
from ra.context.compaction.summarize import Summarizer
from ra.context.compaction.summary import Summary, fitted, merged, parse, paths, tagged
from ra.context.tokens import Estimator
from ra.core.errors import BadStream, Unavailable
from ra.core.facts import Checkpointed, Spent
from ra.core.messages import say
from ra.core.model import ModelInfo, Reply, Request, Usage
from tests.context.sessions import PROMPT, assemble, engine, paired, run, started, step, summaries, text_of

ANSWER = """<summary>The parser drops the last token; mended in src/parser.py.</summary>
<pending_work>
- add a test
- tell the user
</pending_work>
<key_files>
./src/module_1.py
src/parser.py
</key_files>"""

OTHER = ModelInfo("small-1", 4000, max_output=500)


def words(count: int, word: str = "word") -> str:
    return f"{word} " * count


def filled(**how):
    one = engine(8000, strategy="summarize", **how)
    log = started(one)
    for number in range(1, 14):
        log.say(*step(number, words(512)))
    return one, log


def test_a_summary_stands_under_the_first_prompt_with_what_a_program_saw():
    call, asked = summaries(ANSWER)
    one, log = filled(summarize=call)
    assembly = assemble(one)
    log.record(*assembly.facts)
    prompt = assembly.request.messages[0]
    assert prompt.blocks[0].text == PROMPT
    summary = prompt.blocks[1].text
    assert "The parser drops the last token; mended in src/parser.py." in summary
    assert "## Tools used\n- Read" in summary
    assert summary.count("src/module_1.py") == 1
    assert "- src/parser.py" in summary
    assert "## Pending work\n- add a test\n- tell the user" in summary
    assert [type(fact) for fact in assembly.facts] == [Spent, Checkpointed]
    assert assembly.facts[0].purpose == "summary"
    assert len(asked) == 1
    assert paired(assembly.request.messages)
    assert one.request() == assembly.request


def test_the_model_at_work_is_asked_at_the_end_of_the_request_it_has_in_its_cache():
    call, asked = summaries(ANSWER)
    one, _ = filled(summarize=call)
    before = one.request()
    assemble(one)
    (request,) = asked
    assert request.messages[:-1] == before.messages
    assert (request.sections, request.tools, request.model) == (before.sections, before.tools, before.model)
    assert "<summary>" in request.messages[-1].text


def test_another_model_gets_the_bare_text_in_pieces_that_fit_its_window():
    call, asked = summaries(ANSWER)
    one, _ = filled(summarize=call, summary_info=OTHER, model="small-1")
    assembly = assemble(one)
    assert len(asked) > 1
    assert all(Estimator().request(request) + request.max_output <= 4000 for request in asked)
    assert all(request.model == "small-1" and not request.tools for request in asked)
    assert "Step 1." in text_of(asked[0])
    assert "The parser drops the last token" in text_of(asked[1])  # what was said so far
    assert len([fact for fact in assembly.facts if isinstance(fact, Spent)]) == len(asked)


def test_a_custom_prompt_uses_the_answer_as_it_is():
    call, asked = summaries("- one\n- two")
    one, _ = filled(summarize=call, prompt="In bullet points.")
    assembly = assemble(one)
    assert assembly.facts[-1].summary == "- one\n- two"
    assert asked[0].messages[-1].text.endswith("In bullet points.")


def test_a_focus_is_passed_on():
    call, asked = summaries(ANSWER)
    one, _ = filled(summarize=call)
    assemble(one, force="asked for", focus="the billing table")
    assert "the billing table" in asked[0].messages[-1].text


async def _fails(request: Request) -> Reply:
    raise Unavailable("529 overloaded")


async def _breaks(request: Request) -> Reply:
    raise BadStream("cut", usage=Usage(input=70))


@pytest.mark.parametrize(
    ("call", "reason"), [(_fails, "529 overloaded"), (_breaks, "cut"), (summaries(" ")[0], "the answer was empty")]
)
def test_when_the_model_fails_an_index_stands_in_and_a_warning_is_given(call, reason):
    one, _ = filled(summarize=call)
    assembly = assemble(one)
    assert assembly.facts[-1].strategy == "digest"
    assert reason in assembly.warnings[0]
    assert assembly.tokens is not None
    assert assembly.tokens <= 6000
    spent = [fact.usage for fact in assembly.facts if isinstance(fact, Spent)]
    # An answer that broke off is billed by the session, which heard it.
    assert spent == ([Usage(input=100, output=20)] if reason == "the answer was empty" else [])


def test_a_model_that_never_answers_is_given_up():
    async def hangs(request: Request) -> Reply:
        await asyncio.sleep(60)
        raise AssertionError

    one, _ = filled()
    summarizer = Summarizer(
        hangs,
        model=None,
        info=one.info,
        window=lambda: one.window.limit,
        estimator=one.estimator,
        digest=Digest(one.estimator),
        prompt=None,
        price=lambda model, usage: None,
        timeout_s=0.05,
    )
    groups = split(one.view, 500).compactable
    answer = asyncio.run(summarizer.sum_up(one.view, groups, one.room(7000), sent=one.view.request()))
    assert (answer.text, answer.spent) == ("", ())
    assert "it took longer than 0.05 s" in answer.warning


def test_no_summary_is_bought_that_would_not_shrink_the_request():
    call, asked = summaries(ANSWER)
    one = engine(8000, strategy="summarize", summarize=call, threshold=0.3)
    log = started(one, words(3000))
    log.say(*step(1, words(20)), *step(2, words(20)))
    assert assemble(one).facts == ()
    assert asked == []


def test_summaries_do_not_grow_over_thirty_compactions():
    def answer(number: int) -> str:
        return (
            f"<summary>Round {number}: {words(200, f'fact{number}')}</summary><key_files>src/f{number}.py</key_files>"
        )

    call, asked = summaries(*(answer(n) for n in range(1, 60)))
    one = engine(8000, strategy="summarize", summarize=call)
    log = started(one)
    for request in run(one, log, 1200, words=150):
        assert Estimator().request(request) <= 7200
        if len(asked) >= 31:
            break
    sizes = [Estimator().text(fact.summary) for fact in log.facts(Checkpointed)]
    assert len(sizes) >= 30
    assert max(sizes) <= 800
    last = log.facts(Checkpointed)[-1].summary
    assert f"Round {len(asked)}:" in last
    assert f"Round {len(asked) - 1}:" in parse(last).previous
    assert last.count("Previously compacted context") == 1


def test_a_summary_reads_back_what_it_wrote():
    summary = Summary("It went well.", ("a.py", "b.py"), ("make → exit 0 #4",), ("Read",), ("test it",), "Older words.")
    assert parse(fitted(summary, 800, Estimator())) == summary
    assert parse("Just words.") == Summary("Just words.")


def test_tags_that_the_model_did_not_close_end_where_the_next_begins():
    assert tagged("<summary>a b\n<pending_work>c", "summary") == "a b"
    assert tagged("<summary>a b\n<pending_work>c", "pending_work") == "c"
    assert tagged("no tags", "summary") == ""


def test_merged_lists_keep_the_newest_of_what_is_the_same():
    assert merged(["a.py", "./b.py", "Test it."], ["b.py", "test it"]) == ("a.py", "b.py", "test it")


def test_a_zone_that_holds_nothing_but_an_old_gap_is_not_summed_up_again():
    call, asked = summaries("<summary>Done.</summary>")
    one = engine(2000, strategy="summarize", summarize=call)
    log = started(one)
    log.say(*step(1, "ok"))
    log.record(Checkpointed("truncate", "", hidden=((3, 4),), marker="gap " * 600))
    log.say(*step(99, "word " * 900))
    assert Estimator().request(assemble(one).request) <= 1800
    assert asked == []


def test_nothing_of_a_summary_is_dropped_while_all_of_it_fits():
    files = tuple(f"src/part_{number}.py" for number in range(60))
    summary = Summary("Short.", files, pending=("a", "b"), decisions=("tabs",), previous="Older words. " * 40)
    written = fitted(summary, 1400, Estimator())
    assert all(f"- {path}" in written for path in files)
    assert parse(written).previous == summary.previous.strip()


def test_what_a_summary_repeats_of_the_one_before_is_kept_once():
    summary = Summary("The id is X-17. It went well.", previous="The id is X-17. The port is 81.")
    assert fitted(summary, 400, Estimator()).count("X-17") == 1
    assert parse(fitted(summary, 400, Estimator())).previous == "The port is 81."


def test_pending_work_and_decisions_stay_until_they_are_done():
    first = "<summary>One.</summary><decisions>use tabs</decisions><pending_work>write docs\nfix B</pending_work>"
    second = "<summary>Two.</summary><pending_work>ship it</pending_work><done_work>- Fix B.</done_work>"
    call, _ = summaries(first, second)
    one, log = filled(summarize=call)
    log.record(*assemble(one).facts)
    for number in range(20, 33):
        log.say(*step(number, words(512)))
    log.record(*assemble(one).facts)
    summary = parse(one.view.summary)
    assert (summary.decisions, summary.pending) == (("use tabs",), ("write docs", "ship it"))


def test_another_model_is_given_the_summary_before():
    call, asked = summaries(*["<summary>The vault is at X-17.</summary>"] * 9)
    one, log = filled(summarize=call, summary_info=OTHER, model="small-1")
    log.record(*assemble(one).facts)
    count = len(asked)
    for number in range(20, 33):
        log.say(*step(number, words(512)))
    log.record(*assemble(one).facts)
    assert "The vault is at X-17." in asked[count].messages[0].text


def test_files_named_in_text_count_as_files():
    call, _ = summaries("<summary>Done.</summary>")
    one = engine(8000, strategy="summarize", summarize=call)
    log = started(one)
    log.say(say("assistant", "The fault is in lib/core/parse.rs, see also Makefile.am (v1.2.3, e.g. here)."))
    for number in range(1, 14):
        log.say(*step(number, words(512)))
    log.record(*assemble(one).facts)
    files = parse(one.view.summary).files
    assert files[:2] == ("lib/core/parse.rs", "Makefile.am")
    assert not {"v1.2.3", "e.g"} & set(files)


def test_twenty_poor_summaries_in_a_row_leave_the_facts_of_each_stretch():
    """The model says next to nothing; what a program sees fills the allowance."""
    call, asked = summaries(*["<summary>Some work was done.</summary>"] * 40)
    one = engine(16_000, strategy="summarize", summarize=call)
    log = started(one)
    for number in range(1, 21):
        for part in range(14):
            fact = f"the ticket of stretch {number} is TICKET-{number:03}" if part == 3 else ""
            log.say(*step(number * 100 + part, words(700) + fact))
            assembly = assemble(one)
            log.record(*assembly.facts)
    assert len(asked) >= 18
    assert max(Estimator().text(fact.summary) for fact in log.facts(Checkpointed)) <= 1600
    text = text_of(assembly.request)
    assert [number for number in range(1, 21) if f"TICKET-{number:03}" not in text] == []


def test_paths_on_one_line_are_one_each():
    answer = "src/a.ts, cmd/main.go\n- `src/b.py`,\n* ./src/a.ts\n1,2.csv"
    assert merged(paths(answer)) == ("cmd/main.go", "src/b.py", "./src/a.ts", "1,2.csv")
