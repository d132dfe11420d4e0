"""Model calls: their connection, the state of a call in progress, and calls outside the conversation."""

import asyncio
import time
from contextlib import aclosing

import msgspec

from ra.context.size import credible
from ra.context.tokens import Estimator
from ra.core.errors import BadStream, ProviderError, Stopped
from ra.core.events import Broken, Delta, Retrying, Sent, TextDelta, ThinkingDelta
from ra.core.facts import Purpose, Spent
from ra.core.functions import Price
from ra.core.messages import Message
from ra.core.model import Reply, Request, Usage
from ra.core.ports import Provider
from ra.session.budget import Budget, Reservation
from ra.session.journal import Progress
from ra.session.recipe import Pricing, Recipe, Services


class ModelConnection:
    """The provider of a recipe, connected on first use: reading a session needs no key."""

    def __init__(self, recipe: Recipe, services: Services) -> None:
        self._recipe = recipe
        self._factory = services.providers
        self._provider: Provider | None = None

    def provider(self) -> Provider:
        """The connected provider. Raises UserError when the user must supply something first, such as a key."""
        if self._provider is None:
            self._provider = self._factory.connect(self._recipe.provider, self._recipe.model)
        return self._provider

    async def close(self) -> None:
        if self._provider is not None:
            provider, self._provider = self._provider, None
            await provider.close()


class CallUnderway(msgspec.Struct):
    """A call in progress: what it has streamed so far. However it ends, this much is billed."""

    request: Request
    reservation: Reservation
    began: float
    text: str = ""
    silent: list[str] = msgspec.field(default_factory=list)  # thinking
    usage: Usage = Usage()
    heard: bool = False  # the current attempt has streamed something
    sent: bool = False  # the current attempt has left; False while connecting or waiting for a retry
    settled: bool = False  # the attempts so far are billed
    message: Message | None = None  # the complete answer
    partial: Message | None = None  # the part of an interrupted answer that is kept

    def hear(self, delta: Delta | Usage) -> None:
        self.sent = True
        if isinstance(delta, Sent):
            return
        self.heard = True
        if isinstance(delta, Usage):
            self.usage = delta
        elif isinstance(delta, TextDelta):
            self.text += delta.text
        elif isinstance(delta, ThinkingDelta):
            self.silent.append(delta.text)

    def forget(self) -> None:
        """Reset after an attempt that broke off and was billed."""
        self.usage, self.heard, self.sent, self.silent = Usage(), False, False, []

    def wait(self, retrying: Retrying, budget: Budget, price: Price) -> None:
        """Prepare for a retry. If the failed attempt was billed, reserve the retry anew. Raises Stopped."""
        self.sent = False
        if retrying.restart:
            self.text = ""
        if self.settled:
            self.reservation, self.settled = budget.again(self.request, self.reservation, price), False

    def used(self, estimator: Estimator, answer: Message | None = None, *, window: int | None = None) -> Usage:
        """The usage: as reported, if plausible; for an unfinished answer at least what was streamed."""
        plausible = credible(self.usage, self.request, window, estimator)
        if plausible and self.message is not None:
            return self.usage
        usage = self.usage if plausible else Usage(estimator.request(self.request))
        streamed = estimator.message(answer) if answer else estimator.text(self.text + "".join(self.silent))
        return msgspec.structs.replace(usage, output=max(usage.output, estimator.scaled(streamed)))


class BudgetedCalls:
    """Model calls outside the conversation. They spend from the same budget; the caller takes and records their bills.

    The bill of an answered summary is normally recorded with its checkpoint; it waits here in case there is none.
    """

    def __init__(self, estimator: Estimator, pricing: Pricing, progress: Progress, connection: ModelConnection) -> None:
        self._estimator = estimator
        self._price = pricing
        self._progress = progress
        self._connection = connection
        self._bills: list[Spent] = []
        self._of_summaries: list[Spent] = []

    def take_bills(self, *, with_checkpoint: bool = False) -> tuple[Spent, ...]:
        """The bills not recorded yet. With `with_checkpoint`, without those of answered summaries."""
        bills = tuple(self._bills if with_checkpoint else (*self._of_summaries, *self._bills))
        self._bills, self._of_summaries = [], []
        return bills

    async def ask(self, provider: Provider | None, request: Request, *, purpose: Purpose) -> Reply:
        """The complete answer; from the session's provider unless another one is given.

        Raises what the provider raises, and Stopped.
        """
        provider = provider or self._connection.provider()
        budget = self._progress.budget
        size = self._estimator.request(request) if budget.counts else 0
        request, reservation = await self._progress.reserve(request, size, self._price.of(request))
        call = CallUnderway(request, reservation, time.monotonic())
        try:
            # Always close the stream: giving up a call closes its connection.
            async with aclosing(provider.stream(request)) as stream:
                async for item in stream:
                    match item:
                        case Reply():
                            call.message, call.usage, call.heard = item.message, item.usage, True
                            return item
                        case Broken(message, usage):
                            call.usage = usage
                            self._settle(call, purpose, message)
                            call.forget()
                        case Retrying():
                            call.wait(item, budget, self._price.of(request))
                        case _:
                            call.hear(item)
            raise BadStream(f"{provider.name} ended its stream without an answer.")
        except BadStream as error:
            call.usage = error.usage if error.usage != Usage() else call.usage
            raise
        except asyncio.CancelledError:
            call.heard = call.heard or call.sent  # no usage was reported, but it will be billed
            raise
        finally:
            if call.heard:
                self._settle(call, purpose)
            else:
                budget.release(call.reservation)

    def _settle(self, call: CallUnderway, purpose: Purpose, answer: Message | None = None) -> None:
        request, answered = call.request, call.message is not None
        usage = call.used(self._estimator, answer or call.message)
        dollars = self._price.of(request)(request.model, usage)
        self._progress.budget.settle(call.reservation, request.model, usage, dollars, known=answered)
        call.settled = True
        amount, seconds = "" if dollars is None else str(dollars), round(time.monotonic() - call.began, 3)
        estimated, hour = usage.total_input != call.usage.total_input, request.marks.long_lived
        bill = Spent(
            request.model, usage, amount, purpose=purpose, seconds=seconds, estimated=estimated, long_lived=hour
        )
        (self._of_summaries if purpose == "summary" and answered else self._bills).append(bill)


class SummaryCalls:
    """Asks for summaries within the budget. One that the budget cannot pay makes the engine fall back to a digest."""

    def __init__(self, side_calls: BudgetedCalls) -> None:
        self._side_calls = side_calls

    async def ask(self, request: Request) -> Reply:
        try:
            return await self._side_calls.ask(None, request, purpose="summary")
        except Stopped as stop:
            raise ProviderError(str(stop)) from stop
