"""Model calls: the connection they share, what one on its way has used, and those beside the conversation."""

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
    """The provider of a recipe, connected when it is first needed: looking at a session needs no key."""

    def __init__(self, recipe: Recipe, services: Services) -> None:
        self._recipe = recipe
        self._factory = services.providers
        self._provider: Provider | None = None

    def provider(self) -> Provider:
        """Raises UserError when something that the user must supply is missing."""
        if self._provider is None:
            self._provider = self._factory.connect(self._recipe.provider, self._recipe.model)
        return self._provider

    async def close(self) -> None:
        if self._provider is not None:
            provider, self._provider = self._provider, None
            await provider.close()


class CallUnderway(msgspec.Struct):
    """A call on its way: what it has said and told so far. Whatever ends it, this much was paid for."""

    request: Request
    reservation: Reservation
    began: float
    text: str = ""
    silent: list[str] = msgspec.field(default_factory=list)  # what it thought
    usage: Usage = Usage()
    heard: bool = False  # something of the present attempt's answer has come
    sent: bool = False  # the present attempt has left; not so while it connects, or one that failed is waited for
    settled: bool = False  # what the attempts so far cost is settled
    message: Message | None = None  # the whole answer, once it is there
    partial: Message | None = None  # what is kept of it, when it was interrupted

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
        """The attempt broke off and is settled."""
        self.usage, self.heard, self.sent, self.silent = Usage(), False, False, []

    def wait(self, retrying: Retrying, budget: Budget, price: Price) -> None:
        """An attempt failed and another follows. What the one was charged, the other may cost again: or Stopped."""
        self.sent = False
        if retrying.restart:
            self.text = ""
        if self.settled:
            self.reservation, self.settled = budget.again(self.request, self.reservation, price), False

    def used(self, estimator: Estimator, answer: Message | None = None, *, window: int | None = None) -> Usage:
        """What it has used: as told, where that can be; of an answer without an end at least what was heard."""
        believed = credible(self.usage, self.request, window, estimator)
        if believed and self.message is not None:
            return self.usage
        told = self.usage if believed else Usage(estimator.request(self.request))
        heard = estimator.message(answer) if answer else estimator.text(self.text + "".join(self.silent))
        return msgspec.structs.replace(told, output=max(told.output, estimator.scaled(heard)))


class BudgetedCalls:
    """Model calls beside the conversation. They take from the same budget; their bills wait to be recorded.

    The bill of a summary that was answered is recorded with its checkpoint; it waits here too, in case there is none.
    """

    def __init__(self, estimator: Estimator, pricing: Pricing, progress: Progress, connection: ModelConnection) -> None:
        self._estimator = estimator
        self._price = pricing
        self._progress = progress
        self._connection = connection
        self._bills: list[Spent] = []
        self._of_summaries: list[Spent] = []

    def take_bills(self, *, with_checkpoint: bool = False) -> tuple[Spent, ...]:
        """What is not recorded yet. `with_checkpoint`: those of answered summaries are."""
        bills = tuple(self._bills if with_checkpoint else (*self._of_summaries, *self._bills))
        self._bills, self._of_summaries = [], []
        return bills

    async def ask(self, provider: Provider | None, request: Request, *, purpose: Purpose) -> Reply:
        """An answer without its deltas; of the session's own provider when None is named.

        Raises what the provider raises, and Stopped.
        """
        provider = provider or self._connection.provider()
        budget = self._progress.budget
        size = self._estimator.request(request) if budget.counts else 0
        request, reservation = await self._progress.reserve(request, size, self._price.of(request))
        call = CallUnderway(request, reservation, time.monotonic())
        try:
            # The stream is closed however this ends: a call that is given up is hung up on.
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
            call.heard = call.heard or call.sent  # it was not told, and will be billed all the same
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
    """How a summary is asked for: within the budget; one that cannot be paid makes the engine fall back to a digest."""

    def __init__(self, side_calls: BudgetedCalls) -> None:
        self._side_calls = side_calls

    async def ask(self, request: Request) -> Reply:
        try:
            return await self._side_calls.ask(None, request, purpose="summary")
        except Stopped as stop:
            raise ProviderError(str(stop)) from stop
