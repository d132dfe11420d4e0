"""One model call: assemble, reserve, send, record. After an overflow: learn the window and assemble again."""

import asyncio
import functools
import time
from collections.abc import Awaitable, Sequence
from contextlib import aclosing, suppress

import msgspec

from ra.context.engine import OVERFLOW, Assembly, Engine
from ra.context.settings import CompactionName
from ra.context.size import Sizes, Window, too_small
from ra.core.errors import BadStream, Overflowed, ProviderError, Stopped
from ra.core.events import (
    Broken,
    CallDelta,
    Compacted,
    Retrying,
    Sent,
    TextDelta,
    ThinkingDelta,
    TurnEnded,
    TurnStarted,
)
from ra.core.facts import Checkpointed, Cut, Fact, Said, Spent
from ra.core.messages import Message, Text
from ra.core.model import Reply, Request, Usage
from ra.session.budget import Reservation
from ra.session.hooks import SessionHooks
from ra.session.journal import Journal, Progress
from ra.session.learned import LearnedEndpoint
from ra.session.recipe import Pricing, Recipe, Services
from ra.session.side_calls import BudgetedCalls, CallUnderway, ModelConnection
from ra.session.thinking import effort, output_limit

BREATH_S = 0.003  # a fast stream yields to the event loop this often, so that the keyboard stays responsive
MAX_REFITS = 3  # each overflow teaches something; a server that keeps refusing is given up


class Turn:
    """Makes the model calls of one session, and bills each of them, failed ones included."""

    def __init__(
        self,
        recipe: Recipe,
        services: Services,
        *,
        engine: Engine,
        journal: Journal,
        hooks: SessionHooks,
        connection: ModelConnection,
        progress: Progress,
        endpoint: LearnedEndpoint,
        side_calls: BudgetedCalls,
    ) -> None:
        self._engine = engine
        self._endpoint = endpoint
        self._journal = journal
        self._hooks = hooks
        self._connection = connection
        self._progress = progress
        self._side_calls = side_calls
        self._price = Pricing(services.prices, recipe.provider)
        self._underway: CallUnderway | None = None
        self._estimate_told = False
        self._sizes = Sizes()

    def begin(self) -> None:
        """Start a new run."""
        self._underway = None
        self._estimate_told = False

    async def take(self, recipe: Recipe) -> Reply:
        """Return the model's next answer, recorded and billed. Raises what the provider raises, and Stopped."""
        progress = self._progress
        progress.budget.begin_iteration()
        progress.iteration += 1
        self._set_effort(recipe)
        window = self._engine.window
        error: Overflowed | None = None
        for refit in range(MAX_REFITS + 1):
            suspected = error is not None and error.suspected
            assembly = await self.assemble(OVERFLOW if error else "", record=not suspected)
            progress.emit(TurnStarted(progress.iteration, assembly.tokens, self._engine.window.limit))
            try:
                reply = await self._send(assembly, record=suspected)
            except Overflowed as overflow:
                # The one backward edge: learn what the server said, then assemble a request that fits.
                error = overflow
                no_overflow = error.suspected and self._engine.took(assembly.tokens)
                if no_overflow or not self._engine.believes(error.limit, error.sent):
                    self._give_up(assembly, window if suspected else self._engine.window)
                    raise
                self._engine.learn(error.limit, sent=error.sent)
                if error.limit is not None:
                    self._endpoint.learn_window(error.limit, str(error))
                if refit == MAX_REFITS:
                    self._give_up(assembly, window if suspected else self._engine.window)
                    raise self._unfixable(error) from error
            except ProviderError:
                if suspected:  # refused for another reason than its size: undo what was guessed
                    self._give_up(assembly, window)
                raise
            except Stopped:
                if self._underway is None:  # nothing was sent, so no call is counted
                    progress.iteration -= 1
                raise
            else:
                self._remember(window, error)
                return reply
        raise AssertionError("unreachable: the last refit returns or raises")

    async def assemble(
        self, reason: str = "", *, focus: str = "", strategy: CompactionName | None = None, record: bool = True
    ) -> Assembly:
        """The next request. A compaction that is due, or that `reason` asks for, is recorded; hooks fire around it.

        Without `record` the caller records the facts, once it knows that the compaction helped.
        """
        if self._hooks.take_compaction():
            reason = reason or "asked by a hook"
        try:
            assembly = await self._engine.assemble(force=reason, focus=focus, strategy=strategy)
        except BaseException:
            self._pay(self._side_calls.take_bills())  # for a summary that was cancelled with the run
            raise
        self._pay(self._side_calls.take_bills(with_checkpoint=True))
        for checkpoint in _checkpoints(assembly):
            await self._hooks.before_compaction(checkpoint)
        if record:
            await self._record(assembly)
        for warning in assembly.warnings:
            self._progress.warn(warning)
        return assembly

    def _pay(self, bills: Sequence[Spent]) -> None:
        self._journal.record(*bills)
        self._progress.count(*bills)

    async def _record(self, assembly: Assembly) -> None:
        self._journal.record(*assembly.facts)
        self._progress.count(*assembly.facts)
        for checkpoint in _checkpoints(assembly):
            if checkpoint.after < checkpoint.before:  # report only steps that shrank the request
                self._progress.compactions += 1
                self._progress.emit(Compacted(checkpoint))
            await self._hooks.after_compaction(checkpoint)

    def _give_up(self, assembly: Assembly, window: Window) -> None:
        """Drop a cut that did not help; bill the summary that was made for it."""
        bills = [fact for fact in assembly.facts if isinstance(fact, Spent)]
        if window is not self._engine.window:
            self._pay(bills)
            self._engine.unlearn(window)

    async def outgoing(self, assembly: Assembly) -> tuple[Request, Reservation]:
        """The request as it will be sent: with the hooks' edits, and no more output than the budget allows."""
        request = await self._hooks.before_model_call(assembly.request)
        size = 0
        if self._progress.budget.counts:
            edited = request is not assembly.request
            estimator = self._engine.estimator
            size = estimator.request(request) if edited else self._engine.measure(exact=True) or 0
        return await self._progress.reserve(request, size, self._price.of(request))

    def partial(self) -> tuple[Said, ...]:
        """The partial answer of an interrupted call, which the next prompt shows. `partial_bill` prices it."""
        call = self._underway
        if call is None:
            return ()
        self._progress.last_text = call.text or self._progress.last_text
        if not call.text.strip():
            return ()
        call.partial = Message("assistant", (Text(f"{call.text}\n[interrupted]"),), model=call.request.model)
        return (Said(call.partial),)

    async def partial_bill(self) -> tuple[Spent, ...]:
        """The bill of an interrupted call. Counted in a thread: loading the tokenizer would block the keyboard."""
        call, self._underway = self._underway, None
        if call is None or not (call.heard or call.sent or call.partial):
            self._release(call)
            return ()
        used = functools.partial(call.used, self._engine.estimator, call.partial, window=self._engine.window.limit)
        await _uninterrupted(asyncio.to_thread(used))  # the counts are memoised, so `_bill` is quick
        return (self._bill(call.partial, call),)

    def given_up(self, reason: str) -> tuple[Fact, ...]:
        """The unfinished answer of a failed or stopped call, and its bill. It is never sent to the model again."""
        call, self._underway = self._underway, None
        if call is None or not call.heard:
            self._release(call)
            return ()
        answer = call.message or Message("assistant", (Text(call.text),) if call.text else (), model=call.request.model)
        return (Cut(answer, reason), self._bill(answer, call))

    def _release(self, call: CallUnderway | None) -> None:
        if call is not None:
            self._progress.budget.release(call.reservation)

    def _set_effort(self, recipe: Recipe) -> None:
        """Record a new effort when `adaptive` steps down: effort is part of the recorded configuration."""
        current = self._engine.configured
        if current is None:
            return
        info = self._engine.info
        next_effort = effort(
            recipe.thinking,
            iteration=self._progress.iteration,
            cap=recipe.thinking_cap,
            provider=current.provider,
            info=info,
        )
        if next_effort != current.effort:
            limit = output_limit(info, next_effort)
            # Not the base again: it started this run, and would now replace the messages recorded since.
            self._journal.record(msgspec.structs.replace(current, effort=next_effort, max_output=limit, base=None))

    async def _send(self, assembly: Assembly, *, record: bool) -> Reply:
        """Send the request. With `record`, record the assembly's facts once the server has accepted it."""
        await self._journal.durable()
        request, reservation = await self.outgoing(assembly)
        breathed = time.monotonic()
        call = self._underway = CallUnderway(request, reservation, breathed)
        provider = self._connection.provider()
        reply: Reply | None = None
        try:
            async with aclosing(provider.stream(request)) as stream:
                async for item in stream:
                    if time.monotonic() - breathed > BREATH_S:
                        await asyncio.sleep(0)
                        breathed = time.monotonic()
                    match item:
                        case Reply():
                            reply = item
                            call.message, call.usage, call.heard = reply.message, reply.usage, True
                        case Broken(message, usage, reason):
                            call.usage = usage
                            cut = (Cut(message, reason),) if message.blocks else ()
                            self._journal.record(*cut, self._bill(message, call))
                            call.forget()
                        case Retrying():
                            await self._relay(item)
                            call.wait(item, self._progress.budget, self._price.of(request))
                        case _:
                            call.hear(item)
                            if not isinstance(item, Usage | Sent):
                                await self._relay(item)
        except Overflowed:
            self._release(call)  # a refused request costs nothing
            raise
        if reply is None:
            raise BadStream(f"{provider.name} ended its stream without an answer.")
        if record:
            await self._record(assembly)
        self._progress.last_text = reply.message.text or self._progress.last_text
        reply = await self._hooks.after_model_response(reply)
        self._underway = None
        # The answer and its bill in one write: a crash leaves both or neither.
        self._journal.record(Said(reply.message), self._bill(reply.message, call))
        if assembly.tokens is not None:  # it was counted anyway, so the bill can calibrate the estimate
            self._engine.observe_usage(reply.usage, assembly.tokens)  # which ignores impossible figures
        if reply.stop == "length":
            self._progress.warn(f"The answer was cut at {request.max_output} output tokens; ask the model to continue.")
        return reply

    async def _relay(self, delta: TextDelta | ThinkingDelta | CallDelta | Retrying) -> None:
        for warning in await self._hooks.on_stream_chunk(delta):
            self._progress.warn(warning)
        self._progress.emit(delta)

    def _bill(self, answer: Message | None, call: CallUnderway) -> Spent:
        request = call.request
        answered = call.message is not None
        usage = call.used(self._engine.estimator, answer, window=self._engine.window.limit)
        if answered and usage != call.usage:
            self._warn_of_estimate(call.usage)
        dollars = self._price.of(request)(request.model, usage)
        self._progress.budget.settle(call.reservation, request.model, usage, dollars, known=answered)
        call.settled = True
        spent = Spent(
            request.model,
            usage,
            "" if dollars is None else str(dollars),
            parts=self._sizes.of(request),
            seconds=round(time.monotonic() - call.began, 3),
            estimated=usage.total_input != call.usage.total_input,
            long_lived=request.marks.long_lived,
        )
        self._progress.count(spent)
        self._progress.emit(TurnEnded(self._progress.iteration, request.model, usage, spent.dollars))
        return spent

    def _warn_of_estimate(self, reported: Usage) -> None:
        """Warn, once a run, that the provider reported no usage or an impossible one, so that an estimate is billed."""
        if self._estimate_told:
            return
        self._estimate_told = True
        name = self._connection.provider().name
        what = _impossible(reported) if reported.total_input else "did not report what the call used"
        self._progress.warn(f"{name} {what}; tokens and cost are estimated.")

    def _unfixable(self, error: Overflowed) -> Overflowed:
        """The error for a server that refuses every size: the part before the conversation is too large."""
        engine = self._engine
        space = engine.room(engine.measure(exact=True) or 0)
        why = too_small(engine.view, space, engine.estimator)
        return Overflowed(f"{error} {why}", limit=error.limit, sent=error.sent)

    def _remember(self, before: Window, error: Overflowed | None) -> None:
        """Store a guessed window, now that the server accepted a request of that size."""
        window = self._engine.window
        if window.origin == "guessed" and window != before and window.limit is not None:
            text = str(error) if error else f"A request of {window.limit} tokens was accepted."
            self._endpoint.learn_window(window.limit, text, guessed=True)


async def _uninterrupted(work: Awaitable[object]) -> None:
    """Wait until `work` is done, however often the run is interrupted: the bill must be recorded."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    task.result()


def _checkpoints(assembly: Assembly) -> list[Checkpointed]:
    return [fact for fact in assembly.facts if isinstance(fact, Checkpointed)]


def _impossible(reported: Usage) -> str:
    return f"reported {reported.total_input:,} tokens in and {reported.output:,} out, which is impossible"
