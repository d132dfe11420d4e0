"""Sends the same messages to your own agent once per strategy, each in a chat of its own."""

import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Literal

from ra.context.settings import STRATEGIES
from ra.core.errors import UserError
from ra.core.model import Usage
from ra.core.value import Value
from ra.session.settings import check_strategy

Tools = Literal["read-only", "none", "all"]

UNEQUAL = 1024  # tokens; no provider caches less
# An agent with permissions would carry out requests that begin with such words.
_COMMAND = re.compile(
    r"\W*(?:please\s+|now\s+)*(?:restart|reboot|stop|start|kill|delete|remove|drop|wipe|rm|deploy|release|publish|push|"
    r"merge|revert|reset|install|uninstall|upgrade|update|write|create|edit|run|execute|send|post|rotate|scale)\b",
    re.IGNORECASE,
)


class LivePlan(Value, frozen=True):
    """What to measure. `mark` is part of every chat's name, so that a chat of an earlier bench is never continued."""

    agent: str
    messages: tuple[str, ...]
    channel: str
    chat_id: str
    strategies: tuple[str, ...]
    runs: int
    turns: int
    tools: Tools
    mark: str
    warm: bool = False

    @property
    def calls(self) -> int:
        return self.runs * self.turns * len(self.strategies)

    def chat(self, strategy: str, run: int | str) -> str:
        return f"{self.chat_id}-{short(strategy)}-{run}-{self.mark}"


def plan(
    agent: str,
    messages: Sequence[str],
    channel: str,
    chat_id: str,
    strategies: Sequence[str],
    *,
    runs: int = 1,
    turns: int = 1,
    tools: Tools = "read-only",
    warm: bool = False,
) -> LivePlan:
    """Raises UserError for an empty message."""
    if not all(text.strip() for text in messages):
        raise UserError("--message is empty; say what to ask.")
    mark = secrets.token_hex(3)
    return LivePlan(agent, tuple(messages), channel, chat_id, tuple(strategies), runs, turns, tools, mark, warm)


class Order(Value, frozen=True):
    """One message to send."""

    strategy: str
    run: int
    turn: int
    chat_id: str
    message: str


class LiveAnswer(Value, frozen=True):
    """The answer. `dollars` is its price with that of a plan, "" if unknown; `error` is "" on success;
    `followed` is the strategy that the turn really had."""

    text: str
    usage: Usage
    dollars: str
    seconds: float
    followed: str = ""
    error: str = ""


class Measured(Value, frozen=True):
    order: Order
    answer: LiveAnswer


class Arm(Value, frozen=True):
    """A strategy and its turns. `compared` are those that every strategy answered: other sums would mean nothing."""

    strategy: str
    turns: tuple[Measured, ...]
    compared: tuple[Measured, ...]

    @property
    def errors(self) -> int:
        return sum(1 for measurement in self.turns if measurement.answer.error)

    @property
    def fallbacks(self) -> int:
        """The turns that were not planned although a plan was requested."""
        followed = [
            measurement.answer.followed
            for measurement in self.turns
            if measurement.answer.followed not in ("", self.strategy)
        ]
        return len(followed) if self.strategy == "planner" else 0

    @property
    def usage(self) -> Usage:
        return sum((measurement.answer.usage for measurement in self.compared), Usage())

    @property
    def dollars(self) -> Decimal | None:
        """None if a turn has no price, or if there is no turn."""
        return price(self.compared) if self.compared else None

    @property
    def seconds(self) -> float:
        return sum(measurement.answer.seconds for measurement in self.compared)

    def at(self, turn: int) -> tuple[Measured, ...]:
        """This turn of every run."""
        return tuple(measurement for measurement in self.compared if measurement.order.turn == turn)


AskAgent = Callable[[Order], LiveAnswer]


def measure(plan: LivePlan, ask: AskAgent) -> Iterator[Measured]:
    """Sends all messages, one after the other.

    Every other run goes through the list backwards, so that no strategy always comes first. `warm`: each strategy is
    asked once before, which does not count.
    """
    if plan.warm:
        for strategy in plan.strategies:
            ask(Order(strategy, 0, 0, plan.chat(strategy, "warm"), plan.messages[0]))
    for run in range(1, plan.runs + 1):
        for strategy in plan.strategies if run % 2 else reversed(plan.strategies):
            chat = plan.chat(strategy, run)
            for turn in range(1, plan.turns + 1):
                message = plan.messages[(turn - 1) % len(plan.messages)]
                order = Order(strategy, run, turn, chat, message)
                yield Measured(order, ask(order))


def arms(plan: LivePlan, measured: Sequence[Measured]) -> list[Arm]:
    """By strategy, in the order in which they were named."""
    turns = {
        name: tuple(measurement for measurement in measured if measurement.order.strategy == name)
        for name in plan.strategies
    }
    answered = {
        name: {(measurement.order.run, measurement.order.turn) for measurement in those if not measurement.answer.error}
        for name, those in turns.items()
    }
    common = set.intersection(*answered.values())
    return [
        Arm(
            name,
            those,
            tuple(
                measurement
                for measurement in those
                if (measurement.order.run, measurement.order.turn) in (common or answered[name])
            ),
        )
        for name, those in turns.items()
    ]


def price(turns: Sequence[Measured]) -> Decimal | None:
    if any(not measurement.answer.dollars for measurement in turns):
        return None
    return sum((Decimal(measurement.answer.dollars) for measurement in turns), Decimal(0))


def notes(found: Sequence[Arm]) -> list[str]:
    """What readers must know to interpret the figures."""
    lines = []
    silent = [short(arm.strategy) for arm in found if not arm.compared]
    if silent:
        lines.append(f"There is nothing to compare: {', '.join(silent)} answered no turn.")
    elif len({len(arm.turns) for arm in found}) > 1 or any(arm.errors for arm in found):
        lines.append(f"Sums are over the {len(found[0].compared)} turns that every strategy answered.")
    lines += [
        f"{arm.strategy} had no plan and was layered in {arm.fallbacks} of {len(arm.turns)} turns; "
        "AGENTX_PLANNER_DEBUG=1 says why."
        for arm in found
        if arm.fallbacks
    ]
    began = sorted((arm.at(1)[0].answer.usage.cache_read, arm.strategy) for arm in found if arm.at(1))
    if began and began[-1][0] - began[0][0] >= UNEQUAL:
        (least, cold), (most, warm) = began[0], began[-1]
        lines.append(
            f"Not a fair start: {short(warm)} found {most:,} tokens in the provider's cache, {short(cold)} {least:,}; "
            "the first one pays for what they share. --warm gives all the same start."
        )
    if any(arm.dollars is None for arm in found if arm.compared):
        lines.append("No price is known for the model; add one under app.prices in ra.yaml.")
    return lines


def warning(plan: LivePlan) -> str:
    """Whether an agent would carry out the message."""
    risky = next((text for text in plan.messages if _COMMAND.match(text)), None)
    if risky is None or plan.tools != "all":
        return ""
    return f"{risky[:60]!r} reads like a command, and with --tools all the agent may carry it out, once per strategy."


def chosen(text: str, *, cwd: Path, remote: bool) -> tuple[str, ...]:
    """The strategies that the user named, by default `layered` and `planner`. Raises UserError."""
    named = [name.strip() for name in text.split(",") if name.strip()] or ["layered", "planner"]
    if twice := next((name for name in named if named.count(name) > 1), None):
        raise UserError(f"--strategies names {twice!r} twice; use --runs to measure it more often.")
    for name in named:
        check_strategy(name, place="--strategies")
        if remote and name not in STRATEGIES:
            raise UserError(f"--strategies {name}: a daemon runs no files; use {', '.join(STRATEGIES)}, or no --url.")
    return tuple(name if name in STRATEGIES else str((cwd / Path(name).expanduser()).resolve()) for name in named)


def short(strategy: str) -> str:
    """A strategy's name; for a file, the part that distinguishes it."""
    return re.sub(r"[^\w-]", "-", Path(strategy).stem) if strategy.endswith(".py") else strategy
