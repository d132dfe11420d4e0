"""Answers one prompt: calls the model, runs its tools, and repeats until there is an answer or a reason to stop."""

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import msgspec

from ra.context import size
from ra.context.compose import rotation
from ra.context.compose.strategy import Composed, LogLine, SessionView, TaskOrigin
from ra.context.engine import Engine
from ra.context.tokens import Estimator
from ra.core import errors
from ra.core.events import Outcome, Rotated, RunEnded, RunStopped
from ra.core.facts import Configured, Failed, Interrupted, Noticed, Said
from ra.core.facts import Rotated as Rotation
from ra.core.functions import Emit
from ra.core.messages import Message
from ra.core.model import Effort, Reply, Request, Section
from ra.core.ports import Timeline
from ra.core.value import JsonObject
from ra.costs.lifetime import CacheLifetime
from ra.costs.promptcache import rules_for
from ra.providers.vendors import BY_NAME
from ra.session import log
from ra.session.budget import RUNNING, Budget
from ra.session.calls import Calls
from ra.session.hooks import SessionHooks
from ra.session.journal import Journal, Progress
from ra.session.learned import LearnedEndpoint
from ra.session.recipe import Pricing, Recipe, Services
from ra.session.run import Prompt
from ra.session.side_calls import BudgetedCalls, ModelConnection, SummaryCalls
from ra.session.thinking import effort, output_limit
from ra.session.turn import Turn
from ra.timeline import folds
from ra.tools.port import SideCall

if TYPE_CHECKING:
    from ra.costs.economy import SessionEconomy


class Loop:
    """Answers prompts on one timeline with one model. Everything that must survive a crash is in the journal.

    A prompt may bring its own recipe, as long as the recipe names the same model.
    """

    def __init__(
        self,
        timeline: Timeline,
        recipe: Recipe,
        services: Services,
        *,
        preview: bool = False,
        learns: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.recipe = recipe
        self.progress = Progress(services.notices)
        self.connection = ModelConnection(recipe, services)
        # With --no-session nothing is stored: what an endpoint teaches is forgotten when the process ends.
        stores = not preview and (timeline.durable if learns is None else learns)
        self.endpoint = LearnedEndpoint(recipe, services, self.progress, durable=timeline.durable, stores=stores)
        learned = self.endpoint.learned
        self.estimator = Estimator(learned.factor or recipe.info.tokens_per_o200k)
        self.segment = rotation.Segment()
        self._services = services
        self._preview = preview
        self._clock = clock
        self.pricing = Pricing(services.prices, recipe.provider)
        self._side_calls = BudgetedCalls(self.estimator, self.pricing, self.progress, self.connection)
        self.engine = Engine(
            recipe.compaction,
            estimator=self.estimator,
            window=size.resolve(
                recipe.compaction.context_window, learned.window, recipe.info.window, guessed=learned.guessed
            ),
            info=recipe.info,
            must_keep=recipe.must_keep,
            summarize=None if preview else SummaryCalls(self._side_calls).ask,
            summary_info=services.providers.info(recipe.provider, recipe.compaction.model or recipe.model),
            price=self.pricing,
            economy=_economy(recipe, services),
            lifetime=_lifetime(recipe, services),
            cache_key=timeline.session,
        )
        repairs = folds.Repairs()
        self.journal = Journal(timeline, (self.engine, self.segment, repairs), self.progress)
        self.journal.record(*repairs.facts())  # first close the calls that a crash left without a result
        self.hooks = SessionHooks(services.hooks, self.journal, self.engine, self.progress, model=recipe.model)
        self.turn = Turn(
            recipe,
            services,
            engine=self.engine,
            journal=self.journal,
            hooks=self.hooks,
            connection=self.connection,
            progress=self.progress,
            endpoint=self.endpoint,
            side_calls=self._side_calls,
        )
        self._calls = Calls(
            engine=self.engine,
            journal=self.journal,
            hooks=self.hooks,
            instructions=services.instructions,
            progress=self.progress,
            clock=clock,
        )

    # --- one prompt ---

    async def answer(self, prompt: Prompt, emit: Emit) -> None:
        """Run until there is an answer or a reason to stop. The last event is always RunEnded."""
        progress, recipe = self.progress, prompt.recipe
        progress.begin(emit, prompt.budget or self._budget(prompt))
        RUNNING.set(progress.budget)
        self.turn.begin()
        self._calls.begin()
        started = self._clock()
        answer, error = "", ""
        deadline = asyncio.timeout(progress.budget.seconds_left)
        outcome: Outcome
        try:
            async with deadline:
                reply = await self._answer(prompt)
            answer = _answer_text(reply, prompt)
            outcome = "refused" if reply.stop == "refused" else "answered" if answer.strip() else "empty"
            await self.hooks.after_loop_complete(reply)
        except asyncio.CancelledError:
            outcome, error = "interrupted", "Interrupted."
            self._calls.close("interrupted by the user; it may or may not have run")
            await self._stopped("user")
        except TimeoutError:
            if not deadline.expired():
                raise
            outcome, error = "limit", f"Stopped by maxDuration: {progress.budget.limits.seconds:g} s have passed."
            self._calls.close("stopped by maxDuration; it may or may not have run")
            await self._stopped("maxDuration")
        except errors.Stopped as stop:
            outcome, error = "limit", str(stop)
            self._calls.close(f"not run: {stop}")
            self.journal.record(*self.turn.given_up(error), Interrupted(error))
        except errors.RaError as failure:
            outcome, error = "unfit" if isinstance(failure, errors.Unfit) else "failed", str(failure)
            self._calls.close(f"not run: {failure}")
            self.journal.record(*self.turn.given_up(error), Failed(type(failure).__name__, error))
            for warning in await self.hooks.on_error(failure):
                progress.warn(warning)
        if recipe.tier_two is not None:
            self._note(prompt.task, log.tier_two_hit(prompt.task.place, self.segment.last, recipe.tier_two))
        saved = await self._saved(outcome)
        if not saved and outcome == "answered":
            error = "The answer is complete, but the session could not be saved."
        progress.emit(
            RunEnded(
                outcome=outcome,
                answer=answer or progress.last_text,
                session=self.journal.session,
                model=self.engine.configured.model if self.engine.configured else "",
                usage=progress.spent.usage,
                dollars=progress.spent.amount,
                iterations=progress.iteration,
                seconds=self._clock() - started,
                compactions=progress.compactions,
                error=error,
            )
        )
        progress.end()

    async def _stopped(self, reason: Literal["user", "maxDuration"]) -> None:
        """Record the partial answer and report the stop at once; the price follows, since it may need the tokenizer."""
        self.journal.record(*self.turn.partial(), Interrupted(reason))
        self.progress.emit(RunStopped(reason))
        self.journal.record(*await self.turn.partial_bill())

    async def _saved(self, outcome: Outcome) -> bool:
        """Whether the run is stored. Waits for an unreachable database, except after an interruption."""
        left_s = 0.0 if outcome == "interrupted" else self.progress.budget.seconds_left
        try:
            async with asyncio.timeout(left_s):
                await self.journal.durable()
        except (TimeoutError, asyncio.CancelledError):
            return False
        return not self.journal.torn_off

    def _budget(self, prompt: Prompt) -> Budget:
        spending = None if self._preview else self._services.spending
        purse = spending.purse(prompt.task.channel, prompt.task.sender) if spending else None
        return Budget(prompt.recipe.limits, purse=purse, clock=self._clock)

    async def _answer(self, prompt: Prompt) -> Reply:
        await self.stage(prompt)
        corrections = 0
        while True:
            reply = await self.turn.take(prompt.recipe)
            if not reply.message.calls and not self._to_correct(reply, prompt, corrections):
                return reply
            if not reply.message.calls:
                corrections += 1
                continue
            await self._calls.run(reply.message.calls, prompt.toolbox, prompt.recipe, prompt.ask)
            if prompt.toolbox.refresh() and (configured := self.engine.configured) is not None:
                # Not the base again: it started this run, and would now replace the messages recorded since.
                tools = prompt.toolbox.specs
                self.journal.record(msgspec.structs.replace(configured, tools=tools, base=None))
            await self.hooks.after_loop_iteration()

    def _to_correct(self, reply: Reply, prompt: Prompt, corrections: int) -> bool:
        """Whether the model has to correct its answer, because it does not fit the requested format. Raises Unfit."""
        if prompt.answer_format is None or reply.stop == "refused":
            return False
        from ra.session import structured  # only where the answer must have a form

        problem = prompt.answer_format.problem(structured.json_text(reply.message.text))
        if not problem:
            return False
        if corrections == structured.MAX_CORRECTIONS:
            raise errors.Unfit(f"The answer does not fit, after {corrections} corrections: {problem}.")
        self.journal.record(Said(structured.correction(problem)))
        return True

    async def stage(self, prompt: Prompt) -> None:
        """Record the prompt and its configuration: everything that happens before the first request is assembled."""
        message = await self.hooks.before_loop_begin(prompt.message)
        # Before the message is recorded: the message itself must not count as recent activity.
        if rotated := self._rotation(prompt.recipe, prompt.task):
            self.journal.record(rotated)
            self.progress.emit(Rotated(rotated))
        self.journal.record(Said(message))
        await self.compose(message, prompt)

    async def compose(self, message: Message, prompt: Prompt) -> None:
        """Record what the strategy decided, as far as it differs from the last run."""
        recipe, task = prompt.recipe, prompt.task
        try:
            view = self.view(message, prompt)
            composed = await recipe.strategy.compose(view, message)
        finally:
            bills = self._side_calls.take_bills()
            self.progress.count(*bills)
            self.journal.record(*bills)
        composed = await self.hooks.on_context_build(composed, view)
        self.journal.keep(composed.texts)
        for warning in composed.warnings:
            self._services.notices.warn(warning)
        for line in (*composed.log, self._large(composed, message, task)):
            self._note(task, line)
        thinking = effort(
            recipe.thinking, iteration=1, cap=recipe.thinking_cap, provider=recipe.provider, info=self.engine.info
        )
        sections = tuple(composed.sections)
        schema: JsonObject = {}
        if prompt.answer_format is not None:
            from ra.providers.structured import native
            from ra.session.structured import told

            answer_schema = prompt.answer_format.schema
            schema = native(recipe.provider, recipe.model, answer_schema, has_tools=bool(prompt.toolbox.specs))
            # A compatible server may ignore the schema field, so the system part states the schema as well.
            if not schema or recipe.provider == "openai-chat":
                sections = (*sections, told(answer_schema))
        configured = Configured(
            provider=recipe.provider,
            model=recipe.model,
            strategy=composed.name or recipe.strategy.name,
            sections=sections,
            tools=prompt.toolbox.specs,
            effort=thinking,
            max_output=output_limit(self.engine.info, thinking),
            base=composed.base,
            answer_schema=schema,
            base_url=self.endpoint.base_url,
        )
        notices = self.engine.view.notices()
        changed_notices = [Noticed(section) for section in composed.noticed if notices.get(section.name) != section]
        # A base replaces the conversation so far, so it is recorded even when it equals the last one.
        unchanged = configured == self.engine.configured and configured.base is None
        self.journal.record(*([] if unchanged else [configured]), *changed_notices)

    def view(self, message: Message, prompt: Prompt) -> SessionView:
        """The session as a strategy sees it."""
        return SessionView(
            self.journal.timeline,
            self.engine,
            message=message,
            sections=prompt.recipe.sections,
            tools=prompt.toolbox.specs,
            task=prompt.task,
            side_calls=self._side_calls,
            preview=self._preview,
        )

    async def outgoing(self) -> Request:
        """The next request exactly as it would be sent, hooks included. Sends nothing."""
        request, reservation = await self.turn.outgoing(await self.turn.assemble())
        self.progress.budget.release(reservation)
        return request

    def _rotation(self, recipe: Recipe, task: TaskOrigin) -> Rotation | None:
        """The fact that starts a new segment, or None when no rotation is due."""
        now, segment = self._services.clock(), self.segment
        last = self.engine.configured
        was_layered = last is not None and last.strategy == "layered"
        limits = (was_layered and recipe.fallback_rotation) or recipe.rotation
        reason = rotation.due(segment, limits, now=now)
        if reason is None:
            return None
        details = {
            "stale": f"— idle for {(now - (segment.heard or 0)) / 60:.0f} minutes",
            "tier-2": f"— prior turn had {segment.last.total_input} total input tokens",
            "max-turns": f"— {segment.turns} turns",
        }
        self._note(task, log.rotation(task.place, reason, details[reason]))
        return rotation.rotate(
            self.engine.view,
            reason,
            segment,
            history=recipe.handover_tokens,
            estimator=self.estimator,
            window=self.engine.window.limit,
        )

    def _large(self, composed: Composed, message: Message, task: TaskOrigin) -> LogLine | None:
        system = sum(len(section.content) for section in composed.sections)
        replayed = sum(len(replay.text) for replay in composed.base or () if replay is not message)
        history = replayed + sum(len(section.content) for section in composed.noticed)
        return log.large_context(task.place, history=history, system=system, message=len(message.text))

    def _note(self, task: TaskOrigin, line: LogLine | None) -> None:
        if line is not None and not self._preview:
            self._services.log.note(task, line)

    # --- calls outside a prompt ---

    async def keep_warm(self, request: Request) -> None:
        """Make a small call that only reads the cached prefix. Its bill is recorded, its answer is not."""
        try:
            await self._side_calls.ask(None, request, purpose="bridge")
        finally:
            self.journal.record(*self._side_calls.take_bills())

    async def ask_model(self, call: SideCall) -> Reply:
        """Answer a request of an MCP server, outside the conversation. The run's budget pays; the bill is recorded.

        Raises what the provider raises, and Stopped.
        """
        section = (Section("system", "pinned", call.system),) if call.system else ()
        most = output_limit(self.engine.info, Effort())
        request = Request(self.recipe.model, section, call.messages, max_output=max(1, min(call.max_output, most)))
        try:
            return await self._side_calls.ask(None, request, purpose="sampling")
        finally:
            bills = self._side_calls.take_bills()
            self.progress.count(*bills)
            self.journal.record(*bills)

    # --- the end ---

    async def close(self) -> None:
        """Close the connection and store the learned token factor. The timeline stays open."""
        self.endpoint.learn_factor(self.estimator.factor)
        await self.connection.close()


def _answer_text(reply: Reply, prompt: Prompt) -> str:
    if prompt.answer_format is None or reply.stop == "refused":
        return reply.message.text
    from ra.session.structured import json_text

    return json_text(reply.message.text)


def _economy(recipe: Recipe, services: Services) -> "SessionEconomy | None":
    """Decides by price when to compact; None unless the strategy is `auto`."""
    if recipe.compaction.strategy != "auto":
        return None
    from ra.costs.economy import economy_for  # only `auto` needs prices before the first request

    return economy_for(services.prices, recipe.provider)


def _lifetime(recipe: Recipe, services: Services) -> CacheLifetime:
    """Decides how long the provider keeps the cached prefix."""
    return CacheLifetime(
        lambda model: services.prices.row(model, recipe.provider),
        lambda model: rules_for(model, recipe.provider),
        settings=recipe.cache,
        # Gateways and clouds offer the one-hour cache for some models only: use it there only on request.
        hour=services.providers.address(recipe.provider) == BY_NAME["anthropic"].home,
    )
