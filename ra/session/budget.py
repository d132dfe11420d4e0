"""What a run and everything under it may spend: each call reserves its worst case first and is settled after."""

import math
import time
from collections.abc import Callable
from contextvars import ContextVar
from decimal import Decimal
from typing import TYPE_CHECKING

import msgspec

from ra.core.errors import Stopped, UserError
from ra.core.functions import Price
from ra.core.model import Effort, Request, Usage

if TYPE_CHECKING:
    from ra.timeline.spending import Purse

COUNT_MARGIN = 1.10  # our token count may be this far off
UNBILLED_MARGIN = 1.40  # before the model's first bill, while its tokenizer is unknown
LEAST_OUTPUT = 256  # tokens: an answer with less room than this is not worth its input
LEAST_THINKING = 1024  # tokens; providers refuse a smaller budget
ANSWER_TOKENS = 1024  # kept for the answer beside the thinking, when the limit makes both small


class Limits(msgspec.Struct, frozen=True):
    """0 means no limit."""

    iterations: int = 0
    tokens: int = 0
    dollars: float = 0
    seconds: float = 0


class Tally(msgspec.Struct, frozen=True):
    """What was spent so far. `priced` is False after a call without a known price."""

    usage: Usage = Usage()
    dollars: Decimal = Decimal(0)
    priced: bool = True

    def plus(self, usage: Usage, dollars: Decimal | None) -> "Tally":
        return Tally(self.usage + usage, self.dollars + (dollars or 0), self.priced and dollars is not None)

    @property
    def tokens(self) -> int:
        return self.usage.total_input + self.usage.output

    @property
    def amount(self) -> str:
        """Dollars as a decimal; "" when a price was unknown."""
        return str(self.dollars) if self.priced else ""


class Reservation(msgspec.Struct, frozen=True, eq=False):
    """The worst case of one call, held until the call is settled."""

    tokens: int = 0
    dollars: Decimal = Decimal(0)
    hold: str = ""  # of the agent's purse
    input_tokens: int = 0  # as counted, without a margin


class Budget:
    """One budget for a run and everything under it: sub-agents, summaries and the planner share it."""

    def __init__(
        self, limits: Limits, *, purse: "Purse | None" = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limits = limits
        self._purse = purse  # the agent's daily budget, shared by all processes that run it
        self.spent = Tally()
        self.iterations = 0
        self._clock = clock
        self._began = clock()
        self._reserved: set[Reservation] = set()
        self._billed: set[str] = set()  # models that have sent a bill

    @property
    def counts(self) -> bool:
        """Whether a limit on tokens or dollars is set; without one, requests need not be counted."""
        return bool(self.limits.tokens or self.limits.dollars or self._purse)

    @property
    def seconds_left(self) -> float | None:
        """None without a limit."""
        return max(0.0, self.limits.seconds - (self._clock() - self._began)) if self.limits.seconds else None

    def begin_iteration(self) -> None:
        """Count a turn of a loop. Raises Stopped at the limit of iterations or seconds."""
        limits = self.limits
        if limits.iterations and self.iterations >= limits.iterations:
            raise Stopped(f"Stopped by maxIterations: {self.iterations} model calls were made.")
        seconds = self._clock() - self._began
        if limits.seconds and seconds >= limits.seconds:
            raise Stopped(f"Stopped by maxDuration: {seconds:.1f} s of {limits.seconds:g} s have passed.")
        self.iterations += 1

    def reserve(self, request: Request, input_tokens: int, price: Price) -> tuple[Request, Reservation]:
        """Hold the request's worst case. Returns the request with no more output than the limits leave.

        Raises Stopped when even the smallest output could pass a limit.
        """
        if not self.counts:
            return request, Reservation()
        margin = COUNT_MARGIN if request.model in self._billed else UNBILLED_MARGIN
        worst_input = math.ceil(input_tokens * margin)
        output = min(
            request.max_output,
            self._tokens_left(input_tokens) - (worst_input - input_tokens) if self.limits.tokens else math.inf,
            self._affordable_output(request, worst_input, price) if self.limits.dollars else math.inf,
        )
        if output < LEAST_OUTPUT:
            raise self._stopped(input_tokens)
        request, hold = self._hold(_with_output(request, int(output)), worst_input, price)
        dollars = dearest(request.model, worst_input, request.max_output, price) or Decimal(0)
        reservation = Reservation(worst_input + request.max_output, dollars, hold, input_tokens)
        self._reserved.add(reservation)
        return request, reservation

    def again(self, request: Request, settled: Reservation, price: Price) -> Reservation:
        """Hold the worst case of a retry, after the failed attempt was billed. Raises Stopped."""
        lowered, reservation = self.reserve(request, settled.input_tokens, price)
        if lowered.max_output < request.max_output:
            self.release(reservation)
            raise self._stopped(settled.input_tokens)
        return reservation

    def _hold(self, request: Request, worst_input: int, price: Price) -> tuple[Request, str]:
        """Reserve in the agent's daily budget; lowers the output where less is left. Raises Stopped."""
        if self._purse is None:
            return request, ""
        full = dearest(request.model, worst_input, request.max_output, price)
        least = dearest(request.model, worst_input, min(LEAST_OUTPUT, request.max_output), price)
        if full is None or least is None:
            raise Stopped(f"Stopped by the agent's budget: no price is known for {request.model}.")
        hold, granted = self._purse.reserve(full, least)
        if granted < full:
            bare = dearest(request.model, worst_input, 0, price) or Decimal(0)
            request = _with_output(request, math.floor((granted - bare) / ((full - bare) / request.max_output)))
        return request, hold

    def settle(
        self, reservation: Reservation, model: str, usage: Usage, dollars: Decimal | None, *, known: bool = True
    ) -> None:
        """Replace the call's worst case by what it used.

        When the usage is not `known`, the worst case counts as spent: a provider may finish and charge for an answer
        that nobody receives, and the limit must hold by the provider's own meter.
        """
        self._reserved.discard(reservation)
        if self._purse is not None and reservation.hold:
            self._purse.settle(reservation.hold, dollars or Decimal(0))
        if not known:
            unreported = max(0, reservation.tokens - usage.total_input - usage.output)
            usage = msgspec.structs.replace(usage, output=usage.output + unreported)
            dollars = None if dollars is None else max(dollars, reservation.dollars)
        self.spent = self.spent.plus(usage, dollars)
        if usage != Usage():
            self._billed.add(model)

    def release(self, reservation: Reservation) -> None:
        """Free the reservation of a call that was never answered and costs nothing."""
        if reservation in self._reserved and self._purse is not None and reservation.hold:
            self._purse.settle(reservation.hold, Decimal(0))
        self._reserved.discard(reservation)

    def _tokens_left(self, input_tokens: int) -> int:
        held = sum(reservation.tokens for reservation in self._reserved)
        return self.limits.tokens - self.spent.tokens - held - input_tokens

    def _affordable_output(self, request: Request, worst_input: int, price: Price) -> float:
        held = sum((reservation.dollars for reservation in self._reserved), Decimal(0))
        available = Decimal(str(self.limits.dollars)) - self.spent.dollars - held
        bare = dearest(request.model, worst_input, 0, price)
        full = dearest(request.model, worst_input, request.max_output, price)
        if bare is None or full is None or bare == full:
            return math.inf if bare is None or bare <= available else 0
        return math.floor((available - bare) / ((full - bare) / request.max_output))

    def _stopped(self, input_tokens: int) -> Stopped:
        limits, spent = self.limits, self.spent
        if limits.tokens and self._tokens_left(input_tokens) < LEAST_OUTPUT + (COUNT_MARGIN - 1) * input_tokens:
            reason = f", and the next call needs about {input_tokens}" if spent.tokens < limits.tokens else ""
            return Stopped(f"Stopped by maxTokenBudget: {spent.tokens} of {limits.tokens} tokens are spent{reason}.")
        if limits.dollars:
            reason = ", and the next call could pass it" if spent.dollars < Decimal(str(limits.dollars)) else ""
            return Stopped(f"Stopped by maxCost: ${spent.dollars:.4f} of ${_plain(limits.dollars)} are spent{reason}.")
        return Stopped(f"Stopped by maxTokenBudget: {spent.tokens} of {limits.tokens} tokens are used.")


def _plain(dollars: float) -> str:
    """An amount in plain notation: 0.000001, not 1e-06."""
    return f"{Decimal(str(dollars)).normalize():f}"


RUNNING: ContextVar[Budget | None] = ContextVar("RUNNING", default=None)
"""The budget of the current run: an agent that a user's tool function starts spends from it as well."""


def dearest(model: str, input_tokens: int, output: int, price: Price) -> Decimal | None:
    """The highest price of a call: input costs most when written to the cache, or when nothing is cached."""
    uncached = price(model, Usage(input=input_tokens, output=output))
    cached = price(model, Usage(cache_write=input_tokens, output=output))
    if uncached is None or cached is None:
        return None
    return max(uncached, cached)


def _with_output(request: Request, output: int) -> Request:
    """The request with a smaller output limit; thinking is lowered with it, then turned off."""
    if output >= request.max_output:
        return request
    thinking = min(request.effort.budget, output - ANSWER_TOKENS)
    effort = Effort(request.effort.level, thinking) if thinking >= LEAST_THINKING else Effort()
    return msgspec.structs.replace(request, max_output=output, effort=effort)


def need_price(key: str, model: str, *, known: bool) -> None:
    """Raise UserError when a limit in dollars cannot be enforced, because the model has no known price."""
    if not known:
        raise UserError(
            f"{key} is set, but no price is known for {model!r}. Add it under app.prices in ra.yaml, "
            f"such as `{model}: {{input: 3, output: 15}}` (dollars per million tokens), or drop {key}."
        )
