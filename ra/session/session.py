"""One conversation with a model, and the verbs that everybody uses on it."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from ra.context import entries
from ra.context.compose.rotation import RotationLimits
from ra.context.compose.strategy import TaskOrigin, TimelineStrategy
from ra.context.settings import CompactionName
from ra.core.asking import Asker
from ra.core.errors import UsageError
from ra.core.events import RunEnded, ToolEnded, ToolStarted, Warned
from ra.core.facts import (
    CacheDecided,
    Checkpointed,
    Clip,
    Configured,
    Entry,
    Kept,
    Rewound,
    Spent,
    TimelineEvent,
    Titled,
)
from ra.core.messages import Message, say
from ra.core.model import Reply
from ra.core.ports import Timeline
from ra.resolvers.resolver import AskOutside
from ra.session.budget import Budget
from ra.session.loop import Loop
from ra.session.prepare import Prepared
from ra.session.recipe import Pricing, Recipe, Services
from ra.session.run import Answering, Prompt, Run
from ra.timeline.in_memory import MemoryTimeline
from ra.tools.port import SideCall
from ra.tools.settings import Edits
from ra.tools.tool import Output, text_output
from ra.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from ra.context.report import CompactionPreview, Statement
    from ra.session.attachments import Attachment
    from ra.session.message_list import SessionMessage, WindowChange
    from ra.session.snapshot import Snapshot
    from ra.session.structured import AnswerFormat
    from ra.session.telemetry import RunTrace

ASKED = "asked"  # the reason of a compaction that the user wanted
DROPPED = "dropped by the user"


class PromptHandler(Protocol):
    """An agent file as its session sees it. It is made of the session's verbs, so the import is turned around here."""

    def answering(self, session: "Session") -> Answering:
        """What answers the next prompt in the place of the plain loop."""
        ...


class Session:
    """A timeline, the recipe that its prompts are answered with, and the services that this takes.

    Only one run goes on at a time. `agent_file` is a handler that runs instead of the plain loop; `budget` is that of
    the run above, when this is a sub-agent's session; what its endpoint teaches is stored if it `learns`.
    """

    def __init__(
        self,
        timeline: Timeline,
        recipe: Recipe,
        services: Services,
        *,
        task: TaskOrigin | None = None,
        agent_file: "PromptHandler | None" = None,
        budget: Budget | None = None,
        learns: bool | None = None,
    ) -> None:
        self.recipe = recipe
        self.services = services
        self._timeline = timeline
        self._task = task or TaskOrigin("ra", "api", timeline.session, local=True)
        self._agent_file = agent_file
        self._budget = budget
        self._learns = timeline.durable if learns is None else learns
        self._loop = Loop(timeline, recipe, services, learns=self._learns)
        self._toolbox: Toolbox | None = None
        self._prompt: Prompt | None = None  # the one that is being answered

    # --- what is known of it ---

    @property
    def id(self) -> str:
        return self._timeline.session

    @property
    def configured(self) -> Configured | None:
        """What the last request was made with; None before the first."""
        return self._loop.engine.configured

    @property
    def window(self) -> int | None:
        """The tokens of the model's window; None while nobody knows."""
        return self._loop.engine.window.limit

    @property
    def saved(self) -> bool:
        """Whether everything was recorded where it was meant to be; not so after a full disk."""
        return self._loop.journal.timeline.durable or not self._timeline.durable

    @property
    def is_cold(self) -> bool:
        """Whether the provider's cache of this session has run out."""
        from ra.session.snapshot import is_cold

        return is_cold(self.events(), self.recipe)

    @property
    def pricing(self) -> Pricing:
        """The prices of its provider's models."""
        return self._loop.pricing

    @property
    def cache_lifetime_s(self) -> float:
        """Seconds for which the provider keeps the last request; 0 where it keeps nothing."""
        lifetime = self._loop.engine.lifetime
        return lifetime.lifetime_s if lifetime else 0.0

    @property
    def cache_due_s(self) -> float | None:
        """Seconds until `settle_cache` has to be called; None when there is nothing to decide, or it is not wanted."""
        lifetime = self._loop.engine.lifetime
        return lifetime.due_in_s(self.services.clock()) if lifetime else None

    async def settle_cache(self) -> CacheDecided:
        """In a pause: keep the provider's cache by a small call, compact, or let it go, whichever is cheapest."""
        from ra.session.cache_pause import settle  # only where the user allows small paid calls

        return await settle(self._loop)

    def events(self) -> Iterable[TimelineEvent]:
        """Everything that has happened, oldest first."""
        return self._loop.journal.timeline.events()

    # --- prompts ---

    async def prepare(
        self, text: str, *, piped: str = "", files: Sequence[Path] = (), ask_outside: AskOutside | None = None
    ) -> Prepared:
        """What the user typed as a message, with its references resolved."""
        return await self.services.prompts.prepare(text, piped=piped, files=files, ask_outside=ask_outside)

    def ready(self) -> None:
        """Make sure that a prompt could be answered. Raises UserError for what the user must supply first."""
        self._loop.connection.provider()
        self.tools()

    def prompt(
        self,
        message: Message,
        *,
        ask: Asker | None = None,
        task: TaskOrigin | None = None,
        budget: Budget | None = None,
        answer_format: "AnswerFormat | None" = None,
    ) -> Run:
        """Answer a message. `task` says who sent it and from where, when that is not who opened the session.

        `budget` is that of the run that this one is part of. `answer_format` is what the answer must be.

        Raises UserError, before anything is recorded, when something that the user must supply is missing.
        """
        self.ready()
        toolbox = self.tools()
        toolbox.refresh()
        toolbox.undo.begin_turn(self._loop.engine.view.at)
        prompt = self._prompt = Prompt(
            message, task or self._task, self.recipe, toolbox, ask, budget or self._budget, answer_format
        )
        trace = self._trace(prompt)
        answering = self._loop if self._agent_file is None else self._agent_file.answering(self)
        return Run(answering, prompt, trace)

    def _trace(self, prompt: Prompt) -> "RunTrace | None":
        if self.services.telemetry is None:
            return None
        recipe = prompt.recipe
        return self.services.telemetry.run(
            agent=prompt.task.agent, conversation=self.id, provider=recipe.provider, model=recipe.model
        )

    async def preview(self, message: Message | None = None) -> "Snapshot":
        """The request that a prompt would send, exactly: hooks included. Nothing is sent and nothing is recorded.

        Without a message: what is sent always.
        """
        from ra.session.snapshot import previewed  # only for who looks

        if self._agent_file is not None:
            self.services.notices.warn(
                "the agent file decides what is sent, and a preview does not run it; this is the request without it."
            )
        empty = message is None or not (message.text or len(message.blocks) > 1)
        prompt = Prompt(message or say("user", ""), self._task, self.recipe, self.tools())
        return await previewed(self._copy(), prompt, self.services, said=not empty)

    async def context(self, at: int | None = None) -> "Snapshot":
        """What the model sees: the next request before anything new is said, or as it was at a position."""
        from ra.session.snapshot import snapshot  # only for who looks

        if at is None and not self._stands_on_recipe():
            return await self.preview()
        return await snapshot(self._copy(), self.recipe, self.services, at=at)

    def _stands_on_recipe(self) -> bool:
        """Whether the next request would be made with what the last one was made with."""
        before, recipe = self.configured, self.recipe
        if before is None:
            return False
        used = (before.provider, before.model, before.strategy)
        return used == (recipe.provider, recipe.model, recipe.strategy.name)

    async def use(self, recipe: Recipe) -> None:
        """Answer prompts with this recipe from now on. What was allowed and what can be undone stays so.

        Raises UserError, before anything has changed, when something that the user must supply is missing.
        """
        loop = Loop(self._loop.journal.timeline, recipe, self.services, learns=self._learns)
        loop.connection.provider()
        before = self.recipe
        await self._loop.close()
        self._loop, self.recipe = loop, recipe
        if recipe.strategy is not before.strategy:
            await before.strategy.close()
        if recipe.info.tools != before.info.tools and self._toolbox is not None:
            toolbox, self._toolbox = self._toolbox, None
            self.tools().take_over(toolbox)
            await self._close_tools(toolbox)

    # --- compaction ---

    def preview_compaction(self, strategy: CompactionName | None = None) -> "CompactionPreview":
        """What `compact` would do, and from when on that pays; by another strategy, if one is named. Asks no model."""
        from ra.context.compaction.plan import preview

        return preview(self._loop.engine, strategy=strategy, price=self._loop.pricing)

    async def compact(
        self, focus: str = "", *, strategy: CompactionName | None = None, reason: str = ASKED
    ) -> Checkpointed | None:
        """Shorten what the model sees, now; by another strategy than the usual one, if one is named.

        A summary keeps to `focus`. None when there was nothing to gain.
        """
        if self.configured is None:
            raise UsageError("There is nothing to compact yet; ask something first.")
        assembly = await self._loop.turn.assemble(reason, focus=focus, strategy=strategy)
        steps = [fact for fact in assembly.facts if isinstance(fact, Checkpointed)]
        return msgspec.structs.replace(steps[0], after=steps[-1].after) if steps else None

    def attachments(self) -> "list[Attachment]":
        """What the model still sees of attached files, pages and outputs."""
        from ra.session.attachments import attachments  # only for who looks

        return attachments(self._loop.engine)

    def drop(self, attachments: "Sequence[Attachment]") -> None:
        """Take attachments out of what the model sees. `recall` still reads them."""
        tokens = self._loop.engine.measure(exact=True) or 0
        clips = tuple(Clip(attachment.at, attachment.block, 0) for attachment in attachments)
        self._loop.journal.record(Checkpointed("truncate", DROPPED, clips=clips, before=tokens))

    # --- messages in and out of the window, and going back ---

    def messages(self) -> "list[SessionMessage]":
        """What was said, as its user counts it; hidden messages too, not those that were taken back."""
        from ra.session.message_list import messages  # only for who looks

        return messages(self._loop.engine, self.events())

    def omit(self, message: "SessionMessage", *, preview: bool = False) -> "WindowChange":
        """Take a message or result out of what the model sees; `recall` still reads it. `preview` records nothing."""
        from ra.session.message_list import omission

        return self._change_window(omission(self._loop.engine, message), preview=preview)

    def keep(self, message: "SessionMessage", *, preview: bool = False) -> "WindowChange":
        """Bring a message or result back, whole, and hide it in no compaction. `preview` records nothing."""
        return self._change_window(Kept(message.at), preview=preview)

    def rewind(self, prompt: "SessionMessage", *, preview: bool = False) -> "WindowChange":
        """Go back to before a prompt. Nothing is deleted: `recall` still reads what came after."""
        if prompt.at - 1 < self._loop.engine.view.rewrites.reach:
            raise UsageError(f"Message {prompt.number} is too far back: the window was rewritten too often since.")
        return self._change_window(Rewound(prompt.at - 1), preview=preview)

    def changed_files(self, since: "SessionMessage") -> list[str]:
        """The files that the file tools changed since a prompt, in this process."""
        return self._toolbox.undo.changed_since(self._prompt_before(since)) if self._toolbox else []

    def restore_files(self, since: "SessionMessage") -> list[str]:
        """Put back the files that were changed since a prompt. Says what became of each."""
        return self._toolbox.undo.restore_since(self._prompt_before(since)) if self._toolbox else []

    def _prompt_before(self, prompt: "SessionMessage") -> int:
        """The position of the prompt before this one: the turn of this one began after it."""
        return max((group.at for group in self._loop.engine.view.prompted if group.at < prompt.at), default=0)

    def _change_window(self, fact: "Checkpointed | Kept | Rewound", *, preview: bool) -> "WindowChange":
        from ra.session.message_list import changed

        change = changed(self._loop.engine, fact, self._loop.pricing)
        if not preview:
            if isinstance(fact, Checkpointed):
                fact = msgspec.structs.replace(fact, before=change.before, after=change.after)
            self._loop.journal.record(fact)
        return change

    # --- memory ---

    async def recall(self, query: str) -> str:
        """What a reference holds, word for word, or where words are found; hidden parts included."""
        from ra.context.recall import recall  # only when somebody asks

        return recall(query, self._loop.journal.timeline, view=self._loop.engine.view)

    async def said(self) -> "list[Statement]":
        """What the user laid down, where, what replaced it, and whether it is in the next request."""
        from ra.context.compaction.quotes import Quotes  # only for who looks

        engine = self._loop.engine
        return Quotes(engine.estimator).statements(engine.view, (await self.context()).request)

    def entries(self) -> tuple[Entry, ...]:
        """What is pinned, in the order in which it came."""
        return entries.all_of(self._loop.engine.view)

    def pin(self, id: str, content: str, *, name: str = "", attrs: Mapping[str, str] | None = None) -> bool:
        """Keep a text in every request. An entry with this id is replaced. False when it already says exactly that."""
        facts = entries.insert(self._loop.engine.view, id, content, name=name, attrs=attrs)
        self._loop.journal.record(*facts)
        return bool(facts)

    def unpin(self, id: str) -> bool:
        """False when there is no such entry."""
        facts = entries.remove(self._loop.engine.view, id)
        self._loop.journal.record(*facts)
        return bool(facts)

    # --- copies, files, the end ---

    def fork(self) -> "Session":
        """A copy that goes on by itself, stored where this one is."""
        if not self._timeline.durable:
            raise UsageError("There is nothing stored to copy; this session leaves no trace.")
        timeline = self.services.store.open(self.services.store.fork(self.id), write=True)
        return Session(
            timeline,
            self.recipe,
            self.services,
            task=msgspec.structs.replace(self._task, chat=timeline.session),
            agent_file=self._agent_file,
        )

    @property
    def edits(self) -> Edits:
        """What becomes of changes that the file tools make in the project."""
        return self.tools().edits

    def set_edits(self, edits: Edits) -> None:
        """For the rest of this session. Raises UsageError where it was started with edits off."""
        self.tools().set_edits(edits)

    def rename(self, title: str) -> None:
        """Give the session a title, in place of its first prompt."""
        self._loop.journal.record(Titled(title))

    def undo(self) -> list[str]:
        """Put back the files that the last prompt changed. Says what became of each."""
        return self._toolbox.undo.restore_last() if self._toolbox else []

    async def close(self) -> None:
        """Let go of everything. What was recorded stays."""
        await self._loop.close()
        if self._toolbox is not None:
            await self._close_tools(self._toolbox)
        await self.recipe.strategy.close()
        self._timeline.close()

    async def _close_tools(self, toolbox: Toolbox) -> None:
        for note in await toolbox.close():
            self.services.notices.warn(note)

    # --- inside the package, and for tools ---

    @property
    def loop(self) -> Loop:
        return self._loop

    async def loop_for(self, recipe: Recipe) -> Loop:
        """The loop for a prompt with a recipe of its own: another model needs another."""
        if not recipe.same_model(self._loop.recipe):
            await self._loop.close()
            self._loop = Loop(self._loop.journal.timeline, recipe, self.services, learns=self._learns)
        return self._loop

    def tools(self) -> Toolbox:
        """Made when first needed: who only looks at a session has none."""
        if self._toolbox is None:
            offered, nested = self.recipe.info.tools, self._budget is not None
            self._toolbox = self.services.toolboxes.toolbox(self, offered=offered, nested=nested)
        return self._toolbox

    async def run_agent(self, task: str) -> Output:
        """A sub-agent's answer: it has a window of its own, and takes from the budget of the run that asked."""
        recipe = msgspec.structs.replace(
            self.recipe, strategy=TimelineStrategy(self.services.environment), rotation=RotationLimits(), tier_two=None
        )
        nested = Session(
            MemoryTimeline(),
            recipe,
            self.services,
            task=self._task,
            budget=self._loop.progress.budget,
            learns=self._learns,
        )
        run = nested.prompt(say("user", task), ask=self._prompt.ask if self._prompt else None)
        try:
            async for event in run:
                if isinstance(event, ToolStarted | ToolEnded | Warned):
                    self._loop.progress.emit(event)
        finally:
            await nested.close()
            if run.ended is not None:
                self._pay(run.ended)  # also when the run that asked is interrupted: it was paid for
        end = run.ended
        assert end is not None, "a run ends with RunEnded"
        if end.outcome == "answered":
            return text_output(end.answer)
        return text_output(f"The sub-agent gave no answer: {end.error or end.outcome}.", is_error=True)

    def _pay(self, end: RunEnded) -> None:
        spent = Spent(end.model, end.usage, end.dollars, purpose="agent", seconds=round(end.seconds, 3))
        self._loop.journal.record(spent)
        self._loop.progress.count(spent)

    async def ask_model(self, call: SideCall) -> Reply:
        """An answer for an MCP server, from the budget of the run whose tool asked it."""
        return await self._loop.ask_model(call)

    def _copy(self) -> MemoryTimeline:
        timeline = self._loop.journal.timeline
        events, clock = timeline.events(), self.services.clock
        return MemoryTimeline(timeline.session, events=events, texts=timeline.kept, clock=clock)
