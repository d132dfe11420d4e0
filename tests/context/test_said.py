"""What the user said is in every request, over generated sessions that are cut, rotated, rewound and resumed."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ra.context.compose.rotation import Segment, rotate
from ra.context.engine import Engine
from ra.context.tokens import Estimator
from ra.core.facts import EntrySet, Kept, Rewound
from ra.core.messages import Image, Message, say
from tests.context.sessions import Log, assemble, engine, paired, replayed, started, step, summaries, text_of

WINDOW = 16_000
RULES = (
    "Never push to the branch release/2.",
    "Antworte immer auf Deutsch.",
    "所有接口必须保持向后兼容。",
    "يجب أن تكون جميع التواريخ بتنسيق ISO.",
    "Le budget est de 340 euros.",
    "Спрашивай, прежде чем удалять файлы.",
    "テストは必ず実行してください。",
    "फ़ाइलें कभी मत हटाओ।",
)
SUMMARIES = ("<summary>Things were done.</summary>", "", "I cannot do that.", f"<summary>{'so on ' * 3000}</summary>")

moves = st.lists(
    st.one_of(
        st.tuples(st.just("rule"), st.integers(0, len(RULES) - 1)),
        st.tuples(st.just("step"), st.integers(10, 1500)),
        st.tuples(st.just("step"), st.integers(1500, 9000)),
        st.tuples(st.just("cut"), st.just(0)),
        st.tuples(st.just("rotate"), st.sampled_from([300, 3000])),
        st.tuples(st.sampled_from(["image", "resume", "pin", "keep"]), st.just(0)),
        st.tuples(st.just("rewind"), st.integers(1, 6)),
    ),
    min_size=5,
    max_size=40,
)


class Talk:
    """A session that is played move by move, and what must be seen in it."""

    def __init__(self, **how: Any) -> None:
        self.how = how
        self.one: Engine = engine(WINDOW, **how)
        self.log: Log = started(self.one, "Begin with the work.")
        self.said: dict[int, str] = {}  # by position
        self.pins: list[str] = []

    def move(self, number: int, kind: str, size: int) -> None:
        match kind:
            case "rule":
                self.log.say(say("user", f"{RULES[size]} ({number})"))
                self.said[len(self.log.written)] = f"{RULES[size]} ({number})"
            case "image":
                self.log.say(Message("user", (Image("image/png", b"\x89PNG" * 200),)))
            case "step":
                self.log.say(*step(number, "word " * size))
            case "cut":
                self.log.record(*assemble(self.one, force="manual").facts)
            case "rotate":
                segment = Segment()
                for event in self.log.written:
                    segment.apply(event)
                self.log.record(
                    rotate(self.one.view, "max-turns", segment, history=size, estimator=Estimator(), window=WINDOW)
                )
            case "resume":
                self.one = replayed(self.log.written, limit=WINDOW, **self.how)
                self.log.folds = (self.one.apply,)
            case "pin":
                self.pins.append(f"Pinned {number}.")
                self.log.record(EntrySet(f"e{number}", self.pins[-1], "pin"))
            case "keep" if self.one.view.hidden:
                self.log.record(Kept(self.one.view.hidden[0].at))
            case "rewind":
                to = max((at for at in self.said if at < len(self.log.written) - size), default=0)
                if to > self.one.view.rewrites.reach:
                    self.log.record(Rewound(to))
                    self.said = {at: text for at, text in self.said.items() if at <= to}

    def seen(self) -> str:
        assembly = assemble(self.one)
        self.log.record(*assembly.facts)
        assert paired(assembly.request.messages)
        return text_of(assembly.request)


@pytest.mark.parametrize("strategy", ["truncate", "digest", "auto", "summarize"])
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(moves, st.lists(st.sampled_from(SUMMARIES), min_size=1, max_size=4))
def test_rules_and_pins_are_in_every_request(strategy: str, script: list[tuple[str, int]], answers: list[str]) -> None:
    how = {"summarize": summaries(*answers)[0]} if strategy == "summarize" else {}
    talk = Talk(strategy=strategy, **how)
    for number, (kind, size) in enumerate(script):
        talk.move(number, kind, size)
        text = talk.seen()
        assert [words for words in (*talk.said.values(), *talk.pins) if words not in text] == []
