"""Sessions of many shapes, made by a program: what a strategy does must not hang on one recording."""

import random
from collections.abc import Iterator

from ra.core.facts import Fact, Said, Spent, TimelineEvent
from ra.core.messages import Message, Text, ToolCall, result, say
from ra.core.model import Usage
from ra.costs.promptcache import rules_for

WORDS = (
    *("the", "file", "was", "changed", "so", "that", "every", "caller", "now", "waits", "for", "a", "lock"),
    *("before", "it", "reads", "or", "writes", "this", "table"),
)


class Shape:
    """Steps per prompt, prompts, words of a result, words of an answer, seconds per step, seconds between prompts.

    Of so many words of a result one is a new name; so many calls are made at once in a step.
    """

    def __init__(
        self,
        name: str,
        *,
        prompts: int,
        steps: int,
        result_words: int,
        answer_words: int,
        step_s: float = 8.0,
        idle_s: float = 60.0,
        files: int = 30,
        dense: int = 60,
        parallel: int = 1,
    ) -> None:
        self.name = name
        self.prompts, self.steps = prompts, steps
        self.result_words, self.answer_words = result_words, answer_words
        self.step_s, self.idle_s = step_s, idle_s
        self.files = files
        self.dense, self.parallel = dense, parallel


SHAPES = (
    Shape("short chat", prompts=4, steps=0, result_words=0, answer_words=60),
    Shape("long chat", prompts=120, steps=0, result_words=0, answer_words=250, idle_s=90),
    Shape("one question", prompts=1, steps=3, result_words=400, answer_words=80),
    Shape("short tool run", prompts=2, steps=8, result_words=900, answer_words=60),
    Shape("tool run", prompts=5, steps=30, result_words=700, answer_words=60),
    Shape("large reads", prompts=6, steps=12, result_words=4000, answer_words=100),
    Shape("many small calls", prompts=3, steps=120, result_words=60, answer_words=25),
    Shape("long idle gaps", prompts=25, steps=6, result_words=500, answer_words=80, idle_s=1800),
    Shape("long run", prompts=12, steps=40, result_words=800, answer_words=80),
)

CODE = (
    Shape("dense code", prompts=4, steps=6, result_words=2500, answer_words=60, dense=4),
    Shape("dense code at once", prompts=5, steps=12, result_words=120, answer_words=60, dense=4, parallel=10),
)
"""Sessions whose results are full of names: their indexes are long."""


def session(shape: Shape, *, model: str, seed: int = 1) -> list[TimelineEvent]:
    """A session in which files are read, named again and changed, the recent ones more often."""
    facts = list(_facts(shape, model, random.Random(seed)))
    return [TimelineEvent(at, time, fact) for at, (time, fact) in enumerate(facts, 1)]


def _facts(shape: Shape, model: str, dice: random.Random) -> Iterator[tuple[float, Fact]]:
    now = 1_790_000_000.0
    total, sent, sent_at = 3000, 0, now
    lifetime_s = rules_for(model).lifetime_s
    known: list[str] = []
    paths = [f"src/package_{index % 5}/module_{index}.py" for index in range(shape.files)]
    for prompt in range(shape.prompts):
        now += shape.idle_s * dice.uniform(0.3, 1.7) if prompt else 0.0
        text = f"Task {prompt}: please look at {dice.choice(paths)} and " + _prose(dice, 25, known)
        total += _tokens(text)
        yield now, Said(say("user", text))
        for step in range(shape.steps + 1):
            now += shape.step_s * dice.uniform(0.4, 1.6)
            words = _prose(dice, shape.answer_words, known)
            calls: list[ToolCall] = []
            for number in range(shape.parallel if step < shape.steps else 0):
                near = known[-40:] if dice.random() < 0.8 else known
                names = dice.sample(near, min(len(near), 3))
                args = {"path": dice.choice(paths), "pattern": " ".join(names), "line": dice.randrange(10, 900)}
                calls.append(ToolCall(f"c{prompt}-{step}-{number}", dice.choice(["Read", "Grep", "Edit"]), args))
            size = _tokens(words) + 40 * max(1, len(calls))
            yield now, Said(Message("assistant", (Text(words), *calls), model=model))
            cached = sent if now - sent_at <= lifetime_s else 0
            yield now, Spent(model, Usage(input=total - cached, output=size, cache_read=cached))
            sent, sent_at = total, now
            total += size
            for call in calls:
                output = _prose(dice, shape.result_words, known, fresh=shape.result_words // shape.dense)
                total += _tokens(output)
                now += shape.step_s * 0.1
                yield now, Said(result(call, output))


def _prose(dice: random.Random, words: int, known: list[str], fresh: int = 0) -> str:
    made = [f"handle{dice.choice('ABCDEFGH')}{dice.choice(WORDS).title()}{dice.randrange(400)}" for _ in range(fresh)]
    known += made
    again = dice.sample(known[-60:], min(len(known[-60:]), words // 40))
    text = [dice.choice(WORDS) for _ in range(words)] + made + again
    dice.shuffle(text)
    return " ".join(text)


def _tokens(text: str) -> int:
    return len(text) * 3 // 10 + 5
