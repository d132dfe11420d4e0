"""Does the estimator count like o200k_base, quickly, and does it learn the model's own count?"""

import base64
import hashlib
import random
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ra.context import ranks
from ra.context.ranks import encoder, pack
from ra.context.tokens import IMAGE, MESSAGE, PAGE, Estimator, Memory, scaled
from ra.core.messages import Document, Image, Message, Text, Thinking, ToolCall, result, say
from ra.core.model import Request, Section, ToolSpec
from ra.core.value import same_head

_chance = random.Random(7)  # the same text in every run

KINDS = {
    "English": "The quick brown fox jumps over the lazy dog, doesn't it? " * 900,
    "Chinese": "".join(chr(_chance.randrange(0x4E00, 0x9FA5)) for _ in range(20_000)),
    "Chinese prose": "床前明月光，疑是地上霜。举头望明月，低头思故乡。" * 800,
    "Japanese": "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。" * 600,
    "emoji": "👩‍👩‍👧‍👦😀🏳️‍🌈👍🏽" * 2_500,
    "minified JavaScript": "!function(e,t){var n=e.length;for(;n--;)t[n]=e[n]<<2^0x1f;return t.map(x=>x*x)}(a,b);"
    * 500,
    "base64": base64.b64encode(_chance.randbytes(40_000)).decode(),
    "blanks": " " * 50_000,
    "lines": "\n" * 50_000,
    "one letter": "a" * 50_000,
    "tabs and blanks": "\t " * 25_000,
    "code": "def f(x: int) -> int:\n    return x + 1  # one more\n\n\n" * 900,
    "digits": "1234567890" * 5_000,
}


@pytest.fixture
def estimator() -> Estimator:
    return Estimator()


def request_of(*messages: Message, sections: tuple[Section, ...] = (), tools: tuple[ToolSpec, ...] = ()) -> Request:
    return Request("m", sections, messages, tools)


def seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def test_packed_ranks_are_the_original_file() -> None:
    loaded = ranks.load()
    original = b"".join(base64.b64encode(token) + b" " + str(rank).encode() + b"\n" for token, rank in loaded.items())
    assert hashlib.sha256(original).hexdigest() == ranks.ORIGINAL_SHA256


def test_ranks_survive_packing() -> None:
    tokens = [b"a", b"bc", b"\xff" * 128, b" "]
    assert ranks.expand(ranks.compress(tokens)) == {token: rank for rank, token in enumerate(tokens)}


def test_packing_refuses_a_file_with_another_hash(tmp_path) -> None:
    (tmp_path / "wrong").write_bytes(b"YQ== 0\n")
    with pytest.raises(SystemExit, match="expected 446a9538"):
        pack.main([str(tmp_path / "wrong")])


def test_packing_reads_lines_of_base64_and_rank() -> None:
    assert pack.tokens_of(b"YmM= 1\nYQ== 0\n") == [b"a", b"bc"]
    with pytest.raises(SystemExit, match="holes"):
        pack.tokens_of(b"YmM= 2\nYQ== 0\n")


def test_packing_looks_into_a_wheel(tmp_path) -> None:
    for name, said in ((pack.NAME_IN_WHEEL, "expected 446a9538"), ("other", "holds no file named")):
        with zipfile.ZipFile(tmp_path / name, "w") as wheel:
            wheel.writestr(f"package/{name}", b"YQ== 0\n")
        with pytest.raises(SystemExit, match=said):
            pack.main([str(tmp_path / name)])
    with pytest.raises(SystemExit, match="Usage"):
        pack.main([])


@pytest.mark.parametrize("kind", KINDS)
def test_estimate_is_within_two_percent_of_o200k(kind: str, estimator: Estimator) -> None:
    plain = len(encoder.encoding().encode_ordinary(KINDS[kind]))
    assert estimator.text(KINDS[kind]) == pytest.approx(plain, rel=0.02)


@pytest.mark.parametrize("character", [" ", "\n", "a", ".", "あ", "\t", "\0", "́"])
def test_a_megabyte_of_one_character_is_counted_in_time(character: str, estimator: Estimator) -> None:
    assert seconds(lambda: estimator.text(character * 1_000_000)) < 3  # 0.05 to 0.4 s; a quadratic count takes minutes


@given(st.text(max_size=200), st.integers(1, 200))
@settings(max_examples=60, deadline=None)
def test_pieces_are_the_text(text: str, times: int) -> None:
    long = text * times
    assert "".join(encoder.pieces(long)) == long


def test_text_with_lone_surrogates_is_counted(estimator: Estimator) -> None:
    call = Message("assistant", (ToolCall("1", "f", {"x": "\ud800"}),))
    assert estimator.text("a\ud800b") > 0
    assert estimator.message(call) > 0
    assert estimator.bound(request_of(call)) >= estimator.request(request_of(call))


def test_special_tokens_in_text_are_plain_text(estimator: Estimator) -> None:
    assert estimator.text("<|endoftext|>") > 1


def test_seen_text_costs_a_hundredth(estimator: Estimator) -> None:
    text = KINDS["code"] * 10
    new = seconds(lambda: estimator.text(text))
    assert seconds(lambda: estimator.text(text)) < new / 100


def test_messages_that_were_seen_are_not_counted_again(estimator: Estimator) -> None:
    request = request_of(*(say("user", f"message number {n} of many") for n in range(10_000)))
    first = seconds(lambda: estimator.request(request))
    assert min(seconds(lambda: estimator.request(request)) for _ in range(5)) < first / 5


def test_memory_is_bounded_and_forgets_the_oldest() -> None:
    memory: Memory[str] = Memory(str, weight=1_000)
    for n in range(1_000):
        memory.put(f"text {n}", n, weight=36)
        assert memory.get(f"text {n}") == n
    known = [n for n in range(1_000) if memory.get(f"text {n}") is not None]
    assert known == list(range(known[0], 1_000))
    assert len(known) <= 2 * 1_000 / 100


def test_message_counts_text_and_frame(estimator: Estimator) -> None:
    assert estimator.message(say("user", "hello world")) == MESSAGE + 2


def test_every_kind_of_block_has_a_price(estimator: Estimator) -> None:
    image = Message("user", (Image("image/png", b"\x89PNG"),))
    pdf = Message("user", (Document("application/pdf", b"<< /Type /Page >> << /Type/Page >> << /Type /Pages >>"),))
    note = Message("user", (Document("text/plain", b"hello world"),))
    call = ToolCall("1", "Read", {"path": "a.py"})
    sealed = Message("assistant", (Thinking("", "x" * 400),))
    assert estimator.message(image) == MESSAGE + IMAGE
    assert estimator.message(pdf) == MESSAGE + 2 * PAGE
    assert estimator.message(note) == MESSAGE + 2
    assert estimator.message(sealed) == MESSAGE + 100
    assert estimator.message(Message("assistant", (call,))) > estimator.text('{"path":"a.py"}')
    assert estimator.message(result(call, "hello world")) > MESSAGE + 2


def test_factor_scales_requests_and_nothing_else() -> None:
    estimator = Estimator(1.25)
    request = request_of(say("user", "hello world"))
    assert estimator.message(request.messages[0]) == 6
    assert estimator.request(request) == 8  # 7.5, rounded up


BLOCKS = st.one_of(
    st.builds(Text, st.text(max_size=80)),
    st.builds(Thinking, st.text(max_size=40), st.text("ab", max_size=40)),
    st.builds(Image, st.just("image/png"), st.binary(max_size=9)),
    st.builds(Document, st.sampled_from(["text/plain", "application/pdf"]), st.binary(max_size=99)),
    st.builds(ToolCall, st.text("x", max_size=3), st.text(max_size=9), st.dictionaries(st.text(max_size=9), st.text())),
)
MESSAGES = st.builds(Message, st.sampled_from(["user", "assistant"]), st.lists(BLOCKS, max_size=3).map(tuple))


@given(st.lists(MESSAGES, max_size=5), st.floats(0.5, 3))
@settings(max_examples=60, deadline=None)
def test_bound_is_never_below_the_estimate(messages: list[Message], factor: float) -> None:
    estimator = Estimator(factor)
    request = request_of(*messages, sections=(Section("s", "pinned", "text"),), tools=(ToolSpec("t", "d", {"a": 1}),))
    assert estimator.bound(request) >= estimator.request(request)


def test_bound_loads_no_ranks() -> None:
    code = (
        "import sys; from ra.context.tokens import Estimator; from ra.core.model import Request; "
        "from ra.core.messages import Document, Message, say; "
        "note = Message('user', (Document('text/plain', b'x'),)); "
        "print(Estimator().bound(Request('m', (), (say('user', 'hello'), note))) > 0, 'tiktoken' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


@given(st.text(max_size=300), st.integers(0, 60), st.sampled_from(["head", "tail", "both"]), st.sampled_from(["…", ""]))
@settings(max_examples=100, deadline=None)
def test_clip_keeps_the_budget_and_only_what_was_there(text: str, keep: int, where: str, marker: str) -> None:
    estimator = Estimator()
    clipped = estimator.clip(text, keep, where, marker=marker)
    if estimator.text(text) <= keep:
        assert clipped == text
        return
    assert estimator.text(clipped) <= keep
    clean = text.encode("utf-8", "replace").decode()
    if marker and clipped:
        assert any(
            clean.startswith(clipped[:at]) and clean.endswith(clipped[at + 1 :])
            for at, character in enumerate(clipped)
            if character == marker
        )


def test_clip_keeps_the_wanted_end(estimator: Estimator) -> None:
    text = " ".join(f"word{n}" for n in range(500))
    head, tail, both = (estimator.clip(text, 21, where) for where in ("head", "tail", "both"))
    assert (head[:5], head[-1]) == ("word0", "…")
    assert (tail[0], tail[-7:]) == ("…", "word499")
    assert (both[:5], both[-7:]) == ("word0", "word499")


def test_clip_uses_its_budget(estimator: Estimator) -> None:
    assert estimator.text(estimator.clip(KINDS["English"], 1000, "both")) >= 990


@pytest.mark.parametrize("cluster", ["👩‍👩‍👧‍👦", "e\u0301", "👍🏽", "🏳️\u200d🌈"])
@pytest.mark.parametrize("where", ["head", "tail"])
def test_clip_never_tears_a_character(cluster: str, where: str, estimator: Estimator) -> None:
    for keep in range(2, 40):
        clipped = estimator.clip(cluster * 50, keep, where, marker="")
        assert clipped == cluster * (len(clipped) // len(cluster))


@given(st.floats(0.7, 2.5), st.lists(st.integers(50, 200_000), min_size=3, max_size=3), st.floats(0.7, 2.0))
@settings(max_examples=60, deadline=None)
def test_three_replies_teach_the_factor(truth: float, sizes: list[int], start: float) -> None:
    estimator = Estimator(start)
    for plain in sizes:
        estimator.observe(round(plain * estimator.factor), round(plain * truth))
    assert estimator.factor == pytest.approx(truth, rel=0.03)


@pytest.mark.parametrize("reported", [0, -5, 100_000, 10**12])
def test_a_nonsense_report_teaches_nothing(reported: int) -> None:
    estimator = Estimator(1.25)
    assert estimator.observe(1000, reported) == 1.25


def test_one_odd_report_among_good_ones_does_not_move_the_factor() -> None:
    estimator = Estimator()
    for reported in (1300, 1310, 4000, 1290):
        estimator.observe(round(1000 * estimator.factor), reported)
    assert estimator.factor == pytest.approx(1.3, rel=0.03)


def test_an_empty_request_teaches_nothing(estimator: Estimator) -> None:
    assert estimator.observe(0, 10) == 1.0


def test_an_impossible_stored_factor_is_brought_into_range() -> None:
    assert [Estimator(factor).factor for factor in (0.0, -1.0, float("nan"), float("inf"))] == [0.2, 0.2, 0.2, 6.0]


@given(st.integers(1, 10_000_000), st.integers(1, 10_000_000))
def test_a_size_that_was_measured_scales_to_itself(plain: int, total: int) -> None:
    assert scaled(plain, total / plain) == total


def test_estimators_of_several_factors_count_a_text_once_and_scale_it_apart() -> None:
    estimator, message = Estimator(1.0), say("user", "one two three")
    twin = estimator.at(2.0)
    request = Request("m", (), (message,))
    assert twin.request(request) == 2 * estimator.request(request)
    twin.observe(100, 150)
    assert estimator.factor == 1.0


@given(st.lists(st.sampled_from(["a", "b"]), max_size=6), st.lists(st.sampled_from(["a", "b"]), max_size=6))
def test_the_shared_head_of_two_requests_is_what_both_begin_with(old: list[str], new: list[str]) -> None:
    shared = same_head(old, new)
    assert old[:shared] == new[:shared]
    assert shared == min(len(old), len(new)) or old[shared] != new[shared]
