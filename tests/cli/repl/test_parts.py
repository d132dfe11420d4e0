"""The parts that cut, fold and parse, without a terminal."""

import asyncio
import re
import time
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prompt_toolkit.keys import Keys
from rich.cells import cell_len

from ra.cli.markdown import MarkdownStream
from ra.cli.render import Paper
from ra.cli.repl.pastes import Pastes
from ra.cli.repl.question import ALONE_S, QUIET_S, SEEN_S, QuestionPanel
from ra.cli.repl.resume_banner import Exchange, Recap, recap
from ra.cli.repl.screen import PASTE_END, _Parser
from ra.cli.repl.status import Status
from ra.cli.repl.wrap import last_rows, question_rows
from ra.core.facts import Said, TimelineEvent
from ra.core.messages import Message, Text, ToolCall, say
from ra.core.model import Usage
from ra.core.text import visible
from ra.costs.promptcache import CacheRules

ESCAPE = re.compile(r"\x1b\[[\d;]*m")

BLOCKS = ["# t\n", "**b** ", "`c`", "\n", "\n\n", "- i\n", "1. n\n", "> q\n", "```py\n", "```\n", "~~~\n", "    z\n"]
INLINES = ["***\n", "[l](u)", "<b>", "\\", "_", "漢字", "x", " y ", "\x1b[31m", "\r\n", "\u202e"]
TABLES = ["| a | b |\n", "|-|-|\n"]

pieces = st.lists(st.sampled_from([*BLOCKS, *INLINES, *TABLES]), max_size=30)


def rendered(text: str, cuts: list[int], *, width: int = 40) -> str:
    stream = MarkdownStream(Paper(colour=True, width=width))
    out, begin = [], 0
    for cut in [*sorted(cut % (len(text) + 1) for cut in cuts), len(text)]:
        stream.feed(text[begin:cut])
        begin = cut
        while stream.more:
            out.append(stream.take(3))
    return "".join([*out, stream.finish()])


@settings(max_examples=100, deadline=None)
@given(pieces, st.lists(st.integers(0, 10_000), max_size=8))
def test_markdown_shows_the_same_however_the_stream_is_cut(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    plain = ESCAPE.sub("", rendered(text, cuts))
    assert plain == ESCAPE.sub("", rendered(text, []))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", plain)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), max_size=20), max_size=20))
def test_code_is_shown_as_it_is_written_without_frame_or_padding(lines: list[str]) -> None:
    lines = [visible(line) for line in lines if "```" not in line]
    text = ESCAPE.sub("", rendered("```python\n" + "\n".join([*lines, "```", ""]), []))
    assert text == "".join(line + "\n" for line in lines)


def test_a_question_is_broken_between_words_and_never_inside_what_a_key_does() -> None:
    keys = {"n": "no", "y": "yes", "a": "all edits this session", "e": "edit"}
    rows = question_rows("Edit 文档/很长的中文文件名称测试.py?", keys, 39)
    assert rows == ["Edit 文档/很长的中文文件名称测试.py?", "n no · y yes ·", "a all edits this session · e edit"]
    assert max(map(cell_len, question_rows("文" * 60, keys, 30))) <= 30
    assert question_rows("Send it?", {"n": "no", "y": "yes"}, 80) == ["Send it?  n no · y yes"]


def test_a_plain_paper_shows_the_source() -> None:
    stream = MarkdownStream(Paper(colour=False, plain=True))
    stream.feed("# a\n\n\n**b**")
    assert stream.take() + stream.finish() == "# a\n\n\n**b**\n"


def test_a_link_shows_where_it_leads() -> None:
    assert ESCAPE.sub("", rendered("see [here](http://a.b/c) and <http://a.b>", [])) == (
        "see here (http://a.b/c) and http://a.b\n"
    )


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=3000))
def test_a_paste_unfolds_to_itself_unless_its_label_was_edited(text: str) -> None:
    pastes = Pastes()
    label = pastes.fold(text)
    whole = text.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "replace").decode()
    assert pastes.unfold(f"a {label} b") == f"a {whole} b"
    if label != whole:
        assert pastes.unfold(label[:-1]) == label[:-1]
        assert Pastes().unfold(label) == label


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(exclude_characters="\x1b"), max_size=200), st.integers(1, 50))
def test_a_paste_is_one_key_however_it_arrives(text: str, size: int) -> None:
    got = []
    parser = _Parser(got.append)
    sent = f"a\x1b[200~{text}{PASTE_END}b"
    for begin in range(0, len(sent), size):
        parser.feed(sent[begin : begin + size])
    assert [(key.key, key.data) for key in got] == [("a", "a"), (Keys.BracketedPaste, text), ("b", "b")]


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300), st.integers(1, 30), st.integers(1, 10))
def test_the_last_rows_fit(text: str, width: int, rows: int) -> None:
    found = last_rows(visible(text), width, rows)
    assert len(found) <= rows
    assert all(cell_len(row) <= max(width, 2) for row in found)


def pressed(*keys: tuple[str, float], writing: bool = False, before: float = -100.0) -> tuple[str, str]:
    """The answer to a question at time 0 to which these keys were pressed, and what was typed instead."""

    async def ask() -> tuple[str, str]:
        now = [0.0]
        question = QuestionPanel("?", {"y": "yes", "n": "no"}, clock=lambda: now[0])
        typed, last = "", before
        for key, at in keys:
            now[0] = at
            typed += question.press(key, before=last, writing=writing or bool(typed))
            last = at
        answer = asyncio.wait_for(asyncio.shield(question.answer), ALONE_S + 0.1)
        return await asyncio.gather(answer, return_exceptions=True), typed

    (answer,), typed = asyncio.run(ask())
    return (answer if isinstance(answer, str) else ""), typed


def test_enter_alone_answers_nothing_and_says_what_does() -> None:
    async def ask() -> tuple[bool, bool, bool]:
        question = QuestionPanel("Compact?", {"y": "yes", "n": "no"})
        hinted_before = question.hinted
        question.press("\r", before=0.0, writing=False)
        return hinted_before, question.hinted, question.answer.done()

    assert asyncio.run(ask()) == (False, True, False)


def test_which_keys_answer() -> None:
    later = SEEN_S + 0.01
    assert pressed(("y", later)) == ("y", "")
    assert pressed(("N", later)) == ("n", "")
    assert pressed(("y", later), ("\r", later)) == ("y", "")
    assert pressed(("y", SEEN_S / 2)) == ("", "y")  # nobody has read it yet
    assert pressed(("y", later), ("e", later), ("s", later)) == ("", "yes")  # a word, or a paste
    assert pressed(("x", later), ("y", later + 0.2)) == ("", "xy")  # in mid-sentence
    assert pressed(("y", 0.5), writing=True, before=0.0) == ("", "y")
    assert pressed(("y", QUIET_S + 0.1), writing=True, before=0.0) == ("y", "")


def test_the_status_line_leaves_out_what_matters_least() -> None:
    status = Status(clock=lambda: 1000.0)
    status.model, status.strategy, status.window = "claude-x", "timeline", 200_000
    status.rules = CacheRules("marks")
    status.lifetime_s, status.price = 300.0, lambda model, usage: Decimal(usage.cache_write) / 100_000
    status.pay(Usage(10_000, 2_000, 80_000, 8_000), "0.1234", at=900.0)

    def line(width: int) -> str:
        return "".join(text for _, text in status.line(width))

    assert line(200) == (
        "claude-x · timeline · ████▓░░░░░ 50% of 200k · 82% hit · $0.1234 turn · $0.1234 all · warm 3:20 · then $1.00"
    )
    assert line(70) == "claude-x · ████▓░░░░░ 50% of 200k · 82% hit · $0.1234 all · warm 3:20"
    assert line(40) == "████▓░░░░░ 50% of 200k · $0.1234 all"
    assert line(5) == "████▓░░░░░ 50% of 200k"
    assert status.session == Decimal("0.1234")


def test_a_status_without_prices_or_window_says_what_it_knows() -> None:
    status = Status(clock=lambda: 1000.0)
    status.model = "local"
    status.pay(Usage(input=100, output=20), "", at=0.0)
    assert "".join(text for _, text in status.line(80)) == "local · 120 tokens · 0% hit"


def test_a_recap_knows_what_was_left_open() -> None:
    def events(*messages: Message) -> list[TimelineEvent]:
        return [TimelineEvent(at, 0.0, Said(message)) for at, message in enumerate(messages, 1)]

    calling = Message("assistant", (Text("I look."), ToolCall("1", "LS", {})), model="m")
    assert recap([]) == Recap()
    assert recap(events(say("user", "a"))) == Recap(1, (Exchange(1, "a"),), unfinished=True)
    assert recap(events(say("user", "a"), calling)) == Recap(
        1, (Exchange(1, "a", "I look.", ("LS",)),), unfinished=True
    )
    assert recap(events(say("user", "a"), say("assistant", "b"))) == Recap(1, (Exchange(1, "a", "b"),))


@pytest.mark.parametrize("line", ["*a " * 46_000, "[" * 140_000, "[a](b)" * 23_000, "# " + " " * 140_000 + "x"])
def test_a_line_that_is_hard_to_read_as_markdown_is_shown_as_it_is(line: str) -> None:
    stream = MarkdownStream(Paper(colour=True, width=80))
    began = time.process_time()
    stream.feed(line + "\n")
    shown = stream.take() + stream.finish()
    assert time.process_time() - began < 1
    assert re.sub(r"\s", "", ESCAPE.sub("", shown)) == re.sub(r"\s", "", line)


def test_code_on_a_light_background_has_no_bright_colours() -> None:
    """Bright green and cyan, which a dark background needs, cannot be read on white."""

    def colours(*, light: bool) -> set[str]:
        stream = MarkdownStream(Paper(colour=True, width=80, light=light))
        stream.feed("```python\ndef greet(name: str) -> str:\n    return 1\n```\n\n```diff\n-old\n+new\n```\n")
        text = "".join([*(stream.take(9) for _ in range(20) if stream.more), stream.finish()])
        return set(re.findall(r"\x1b\[(9[2-7]);", text))

    assert colours(light=False)
    assert colours(light=True) == set()
