"""What does it cost to finish a task under each strategy, for a model that acts on what it sees?

The loop, the tools and the store are real; the model is a program. Where the text that it needs is not in the request,
it reads the file again, or calls recall, and pays for that. RA_BFCL=FILE.whl adds the memory questions of the package
`bfcl-eval`.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ra.context.compaction.names import strings
from ra.context.compaction.summarize import ASK
from ra.core.facts import Checkpointed, Spent
from ra.core.messages import say
from ra.providers.script import Call, Step
from ra.testing import LoopbackServer, session
from tests.session.billing import prompt_cache

MODEL = "claude-opus-4-5"
WINDOW = 64_000
STRATEGIES = ("nothing", "truncate", "summarize", "digest", "auto")
FIRST = 5  # hits of a search that the model looks at
LOG_LINES = 300
SUMMARY_CHARS = 4000
_HIT = re.compile(r"^#(\d+):", re.M)


class Look(NamedTuple):
    """Read a file."""

    path: str


class Fix(NamedTuple):
    """Change a line of a file, which has to be seen for that."""

    path: str
    wrong: str
    right: str


class Answer(NamedTuple):
    """Answer a question, for which a sentence has to be seen."""

    question: str
    evidence: str


Goal = Look | Fix | Answer
Order = Literal["file by file", "back and forth"]


class Prompt(NamedTuple):
    """What the user says, and what the model has to do about it."""

    text: str
    goals: tuple[Goal, ...] = ()


class Task(NamedTuple):
    """A project, a conversation about it, and the test suite that has to pass in the end."""

    name: str
    files: dict[str, str]
    prompts: tuple[Prompt, ...]
    suite: str = ""


class Outcome(NamedTuple):
    """What a task cost. `counts`: files read again; of the facts that were asked for how many were visible, found by
    recall, or lost; lines that could not be mended."""

    dollars: Decimal
    calls: int
    cuts: int
    passed: bool
    counts: Counter[str]

    @property
    def recall_at_5(self) -> float:
        """Of the facts that were not visible, the share that recall found."""
        hidden = self.counts["recalled"] + self.counts["lost"]
        return self.counts["recalled"] / hidden if hidden else 1.0


class ConditionalModel:
    """Does one goal after the other, each as soon as the request shows what it needs."""

    def __init__(self) -> None:
        self.goals: list[Goal] = []
        self.counts: Counter[str] = Counter()
        self._tried = False
        self._hits: list[str] | None = None  # of the search for the goal's evidence that are not read yet

    def __call__(self, body: dict[str, Any]) -> Step:
        text = "\n".join(strings([body.get("system"), body["messages"]]))
        if ASK in text:
            said = (line for message in body["messages"] for line in strings(message["content"]) if line not in ASK)
            return Step(text=f"<summary>{' / '.join(line[:80] for line in said)[-SUMMARY_CHARS:]}</summary>")
        while self.goals:
            call = self._call(self.goals[0], text, newest="\n".join(strings(body["messages"][-1])))
            if call is not None:
                return Step(text="Next.", calls=(call,))
        return Step(text="That is done.")

    def _call(self, goal: Goal, text: str, *, newest: str) -> Call | None:
        """What the goal needs now; None when there is nothing more to do for it."""
        match goal:
            case Look(path):
                self._finish("looks")
                return Call("Read", {"path": path})
            case Fix(path, wrong, right):
                if wrong in text:
                    self._finish("fixes")
                    return Call("Edit", {"path": path, "old_string": wrong, "new_string": right})
                if self._tried:
                    self._finish("unmended")
                    return None
                self._tried = True
                self.counts["read again"] += 1
                return Call("Read", {"path": path})
            case Answer(question, evidence):
                return self._look_up(question, evidence, text, newest)

    def _look_up(self, question: str, evidence: str, text: str, newest: str) -> Call | None:
        if evidence in text:
            self._finish("visible" if not self._tried else "recalled")
            return None
        if not self._tried:
            self._tried = True
            return Call("Recall", {"query": question})
        if self._hits is None:
            self._hits = _HIT.findall(newest)[:FIRST]
        if not self._hits:
            self._finish("lost")
            return None
        return Call("Recall", {"query": f"#{self._hits.pop(0)}"})

    def _finish(self, outcome: str) -> None:
        self.counts[outcome] += 1
        self.goals.pop(0)
        self._tried, self._hits = False, None


def play(task: Task, strategy: str, folder: Path, *, window: int = WINDOW) -> Outcome:
    """The task from its first prompt to its suite."""
    project = folder / "project"
    for path, content in task.files.items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(content)
    model = ConditionalModel()
    settings: dict[str, Any] = {"compaction__strategy": strategy, "compaction__contextWindow": window}
    if strategy == "nothing":
        settings = {"compaction__enabled": False, "compaction__contextWindow": 1_000_000}
    with LoopbackServer("anthropic", model, cache=prompt_cache(MODEL)) as server:
        facts = asyncio.run(_converse(task, model, server, folder, settings))
    suite = subprocess.run([sys.executable, "-c", task.suite], cwd=project, capture_output=True)
    bills = [fact for fact in facts if isinstance(fact, Spent)]
    cuts = sum(isinstance(fact, Checkpointed) for fact in facts)
    dollars = sum((Decimal(bill.dollars) for bill in bills), Decimal(0))
    return Outcome(dollars, len(bills), cuts, suite.returncode == 0, model.counts)


async def _converse(
    task: Task, model: ConditionalModel, server: LoopbackServer, folder: Path, settings: dict[str, Any]
) -> list[object]:
    talk = session(folder, server, model=MODEL, **settings)
    for prompt in task.prompts:
        model.goals = list(prompt.goals)
        async for _ in talk.prompt(say("user", prompt.text)):
            pass
    facts: list[object] = [event.fact for event in talk.events()]
    await talk.close()
    return facts


# --- the tasks ---


def mend_a_library(order: Order, modules: int = 12, functions: int = 120, faults: int = 3) -> Task:
    """Modules are read one after the other; then their faults are mended, file by file or back and forth."""
    files, fixes, checks = {}, [], []
    for module in range(modules):
        lines = []
        for number in range(functions):
            name = f"{module}_{number:03}"
            wrong, right = (f"    return quantity * {module + 2} {sign} surcharge_{name}" for sign in "-+")
            faulty = number % (functions // faults) == module
            lines += [
                f"def price_{name}(quantity, surcharge_{name}={number + 1}):",
                f'    """The price of article {number} of catalogue {module}, surcharge included."""',
                f"{wrong if faulty else right}\n\n",
            ]
            if faulty:
                fixes.append((number, Fix(f"shop/catalogue_{module}.py", wrong, right)))
                checks.append(f"from shop.catalogue_{module} import price_{name}")
                checks.append(f"assert price_{name}(1) == {module + 2 + number + 1}")
        files[f"shop/catalogue_{module}.py"] = "\n".join(lines)
    if order == "back and forth":
        fixes.sort(key=lambda fix: fix[0])
    prompts = (
        Prompt("Read all catalogues of the shop.", tuple(map(Look, files))),
        Prompt("Surcharges are added, never subtracted. Mend the functions.", tuple(fix for _, fix in fixes)),
    )
    return Task(f"mend, {order}", files, prompts, "\n".join(checks))


THINGS = (
    *(
        "lighthouse",
        "crane",
        "ferry",
        "warehouse",
        "drawbridge",
        "canteen",
        "archive",
        "chapel",
        "weighbridge",
        "sluice",
    ),
    *("signal mast", "boat shed", "ice house", "tugboat", "customs gate", "rope store", "dry dock", "pilot house"),
    *("coal bunker", "fish hall", "tide gauge", "fuel pier", "net loft", "tram stop", "gate lodge", "oil tank"),
    *("cooperage", "slipway"),
)
PLANTED = (
    ("Who looks after the {thing}?", "The {thing} is looked after by Mr Osgood{number}."),
    ("With which code does the {thing} open?", "The {thing} opens with the code K{number}."),
    ("How much did the repair of the {thing} cost?", "The repair of the {thing} did cost {number} crowns in the end."),
    ("When was the {thing} built?", "The {thing} was built in the year {number}."),
)


def search_logs(logs: int = 14, facts: int = 2) -> Task:
    """Logs are read; later the user asks for what stood in them."""
    files, answers = {}, []
    for log in range(logs):
        lines = [
            f"{9 + n // 60:02}:{n % 60:02} worker {n * 7 % 13} moved parcel {log * 1000 + n} to depot {n * 3 % 40}"
            for n in range(LOG_LINES)
        ]
        for fact in range(log * facts, (log + 1) * facts):
            texts = (text.format(thing=THINGS[fact], number=1500 + 17 * fact) for text in PLANTED[fact % len(PLANTED)])
            answers.append(Answer(*texts))
            lines.insert(LOG_LINES * (fact % facts + 1) // (facts + 1), answers[-1].evidence)
        files[f"logs/day{log}.log"] = "\n".join(lines)
    asked = (Prompt(answer.question, (answer,)) for answer in answers)
    return Task("search logs", files, (Prompt("Read the logs.", tuple(map(Look, files))), *asked))


def remember_a_customer(package: Path, scenario: str) -> Task:
    """What a user told in several conversations, work that hides it, and the questions of BFCL about it."""
    prefix, answers = "bfcl_eval/data", []
    with zipfile.ZipFile(package) as archive:
        told = _rows(archive, f"{prefix}/memory_prereq_conversation/memory_{scenario}.json")
        questions = {row["id"]: row for row in _rows(archive, f"{prefix}/BFCL_v4_memory.json")}
        truths = _rows(archive, f"{prefix}/possible_answer/BFCL_v4_memory.json")
    prompts = [Prompt(turn[0]["content"]) for row in told for turn in row["question"]]
    for row in truths:
        question, evidence = questions[row["id"]], row["source"].strip(' ".…')
        if question["scenario"] == scenario and any(evidence in prompt.text for prompt in prompts):
            answers.append(Answer(question["question"][0][0]["content"], evidence))
    logs = search_logs(facts=0)
    work = (logs.prompts[0], *(Prompt(answer.question, (answer,)) for answer in answers))
    return Task(f"BFCL: {scenario}", logs.files, (*prompts, *work))


def _rows(archive: zipfile.ZipFile, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in archive.read(name).decode().splitlines()]


def tasks() -> Iterator[Task]:
    yield mend_a_library("file by file")
    yield mend_a_library("back and forth")
    yield search_logs()
    if package := os.environ.get("RA_BFCL"):
        for scenario in ("customer", "finance", "healthcare", "notetaker", "student"):
            yield remember_a_customer(Path(package), scenario)


def main(strategies: Sequence[str] = STRATEGIES) -> None:
    print(f"tasks, a window of {WINDOW:,} tokens, {MODEL}:")
    print(f"  {'':31}{'cost':>8} calls  cuts  read again  visible  recalled  lost  recall@5   suite")
    for task in tasks():
        for strategy in strategies:
            with tempfile.TemporaryDirectory() as folder:
                outcome = play(task, strategy, Path(folder))
            counts = outcome.counts
            facts = "".join(
                f"{counts[name]:{width}}" for name, width in (("visible", 9), ("recalled", 10), ("lost", 6))
            )
            suite = "passes" if outcome.passed else "fails"
            print(
                f"  {task.name:21}{strategy:10}{outcome.dollars:8.3f}{outcome.calls:6}{outcome.cuts:6}"
                f"{counts['read again']:12}{facts}{outcome.recall_at_5:10.2f}   {suite}"
            )


if __name__ == "__main__":
    main()
