"""One conversation with a model, and its verbs: the only way to use it."""

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

ASKED = "asked"  # the reason of a compaction that the user asked for
DROPPED = "dropped by the user"


class PromptHandler(Protocol):
    """An agent file as its session sees it; a Protocol, because agent files import the session."""

    def answering(self, session: "Session") -> Answering:
        """What answers the next prompt instead of the plain loop."""
        ...


class Session:
    """A timeline, the recipe that answers its prompts, and the services that this needs.

    One run at a time. `agent_file` is a handler that runs instead of the plain loop. A sub-agent's session shares the
    `budget` of its parent run. With `learns`, what the endpoint teaches is stored.
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

    # --- state ---

    @property
    def id(self) -> str:
        return self._timeline.session

    @property
    def configured(self) -> Configured | None:
        """The configuration of the last request; None before the first."""
        return self._loop.engine.configured

    @property
    def window(self) -> int | None:
        """The model's window in tokens; None while it is unknown."""
        return self._loop.engine.window.limit

    @property
    def saved(self) -> bool:
        """Whether everything was stored; False after a full disk."""
        return self._loop.journal.timeline.durable or not self._timeline.durable

    @property
    def is_cold(self) -> bool:
        """Whether the provider's cache of this session has expired."""
        from ra.session.snapshot import is_cold

        return is_cold(self.events(), self.recipe)

    @property
    def pricing(self) -> Pricing:
        """The prices of its provider's models."""
        return self._loop.pricing

    @property
    def cache_lifetime_s(self) -> float:
        """How long the provider caches the last request, in seconds; 0 where it caches nothing."""
        lifetime = self._loop.engine.lifetime
        return lifetime.lifetime_s if lifetime else 0.0

    @property
    def cache_due_s(self) -> float | None:
        """Seconds until `settle_cache` must be called; None when there is nothing to decide or cache upkeep is off."""
        lifetime = self._loop.engine.lifetime
        return lifetime.due_in_s(self.services.clock()) if lifetime else None

    async def settle_cache(self) -> CacheDecided:
        """In a pause: refresh the cache by a small call, compact, or let it expire, whichever is cheapest."""
        from ra.session.cache_pause import settle  # only where the user allows small paid calls

        return await settle(self._loop)

    def events(self) -> Iterable[TimelineEvent]:
        """The whole timeline, oldest event first."""
        return self._loop.journal.timeline.events()

    # --- prompts ---

    async def prepare(
        self, text: str, *, piped: str = "", files: Sequence[Path] = (), ask_outside: AskOutside | None = None
    ) -> Prepared:
        """Turn what the user typed into a message, with its references resolved."""
        return await self.services.prompts.prepare(text, piped=piped, files=files, ask_outside=ask_outside)

    def ready(self) -> None:
        """Raise UserError when the user must supply something, such as a key, before a prompt can be answered."""
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
        """Answer a message.

        `task` says who sent it, if not the one who opened the session. `budget` is shared with the run that this one
        is part of. The answer has to fit `answer_format`.

        Raises UserError, before anything is recorded, when the user must supply something first.
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
        """The exact request that a prompt would send, hooks included. Sends and records nothing.

        Without a message: the part that every request has.
        """
        from ra.session.snapshot import previewed  # not needed to answer a prompt

        if self._agent_file is not None:
            self.services.notices.warn(
                "the agent file decides what is sent; a preview does not run it and shows the request without it."
            )
        empty = message is None or not (message.text or len(message.blocks) > 1)
        prompt = Prompt(message or say("user", ""), self._task, self.recipe, self.tools())
        return await previewed(self._copy(), prompt, self.services, said=not empty)

    async def context(self, at: int | None = None) -> "Snapshot":
        """What the model sees: the next request without a new message, or the request at a past position."""
        from ra.session.snapshot import snapshot  # not needed to answer a prompt

        if at is None and not self._matches_recipe():
            return await self.preview()
        return await snapshot(self._copy(), self.recipe, self.services, at=at)

    def _matches_recipe(self) -> bool:
        """Whether the recipe has the provider, model and strategy of the last request."""
        before, recipe = self.configured, self.recipe
        if before is None:
            return False
        used = (before.provider, before.model, before.strategy)
        return used == (recipe.provider, recipe.model, recipe.strategy.name)

    async def use(self, recipe: Recipe) -> None:
        """Answer prompts with this recipe from now on. Permissions given and undo steps stay.

        Raises UserError, before anything has changed, when the user must supply something first.
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
        """What `compact` would do, and after how many calls it pays off. Makes no model call."""
        from ra.context.compaction.plan import preview

        return preview(self._loop.engine, strategy=strategy, price=self._loop.pricing)

    async def compact(
        self, focus: str = "", *, strategy: CompactionName | None = None, reason: str = ASKED
    ) -> Checkpointed | None:
        """Shorten what the model sees, now. `strategy` replaces the recipe's; a summary concentrates on `focus`.

        Returns None when there was nothing to gain.
        """
        if self.configured is None:
            raise UsageError("There is nothing to compact yet; ask something first.")
        assembly = await self._loop.turn.assemble(reason, focus=focus, strategy=strategy)
        steps = [fact for fact in assembly.facts if isinstance(fact, Checkpointed)]
        return msgspec.structs.replace(steps[0], after=steps[-1].after) if steps else None

    def attachments(self) -> "list[Attachment]":
        """What the model still sees of attached files, pages and outputs."""
        from ra.session.attachments import attachments  # not needed to answer a prompt

        return attachments(self._loop.engine)

    def drop(self, attachments: "Sequence[Attachment]") -> None:
        """Hide attachments from the model. `recall` still reads them."""
        tokens = self._loop.engine.measure(exact=True) or 0
        clips = tuple(Clip(attachment.at, attachment.block, 0) for attachment in attachments)
        self._loop.journal.record(Checkpointed("truncate", DROPPED, clips=clips, before=tokens))

    # --- changing the window, going back ---

    def messages(self) -> "list[SessionMessage]":
        """The conversation, numbered for the user; with hidden messages, without those that a rewind removed."""
        from ra.session.message_list import messages  # not needed to answer a prompt

        return messages(self._loop.engine, self.events())

    def omit(self, message: "SessionMessage", *, preview: bool = False) -> "WindowChange":
        """Hide a message or result from the model; `recall` still reads it. `preview` records nothing."""
        from ra.session.message_list import omission

        return self._change_window(omission(self._loop.engine, message), preview=preview)

    def keep(self, message: "SessionMessage", *, preview: bool = False) -> "WindowChange":
        """Show a message or result in full, and never hide it in a compaction. `preview` records nothing."""
        return self._change_window(Kept(message.at), preview=preview)

    def rewind(self, prompt: "SessionMessage", *, preview: bool = False) -> "WindowChange":
        """Go back to the state before a prompt. Nothing is deleted: `recall` still reads what came after it."""
        if prompt.at - 1 < self._loop.engine.view.rewrites.reach:
            raise UsageError(
                f"Message {prompt.number} is too far back: the window has been rewritten too often since then."
            )
        return self._change_window(Rewound(prompt.at - 1), preview=preview)

    def changed_files(self, since: "SessionMessage") -> list[str]:
        """The files that the file tools of this process changed since a prompt."""
        return self._toolbox.undo.changed_since(self._prompt_before(since)) if self._toolbox else []

    def restore_files(self, since: "SessionMessage") -> list[str]:
        """Restore the files that were changed since a prompt. Returns a line about each."""
        return self._toolbox.undo.restore_since(self._prompt_before(since)) if self._toolbox else []

    def _prompt_before(self, prompt: "SessionMessage") -> int:
        """The position of the previous prompt, after which the turn of this one began."""
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
        """The exact text behind a reference, or the places where the words occur. Searches hidden parts too."""
        from ra.context.recall import recall  # not needed to answer a prompt

        return recall(query, self._loop.journal.timeline, view=self._loop.engine.view)

    async def said(self) -> "list[Statement]":
        """The user's rules and decisions: where stated, what replaced them, whether the next request has them."""
        from ra.context.compaction.quotes import Quotes  # not needed to answer a prompt

        engine = self._loop.engine
        return Quotes(engine.estimator).statements(engine.view, (await self.context()).request)

    def entries(self) -> tuple[Entry, ...]:
        """The entries, in the order in which they were added."""
        return entries.all_of(self._loop.engine.view)

    def pin(self, id: str, content: str, *, name: str = "", attrs: Mapping[str, str] | None = None) -> bool:
        """Keep a text in every request. Replaces the entry of this id; False when that has the same text already."""
        facts = entries.insert(self._loop.engine.view, id, content, name=name, attrs=attrs)
        self._loop.journal.record(*facts)
        return bool(facts)

    def unpin(self, id: str) -> bool:
        """Remove an entry. False when there is none with this id."""
        facts = entries.remove(self._loop.engine.view, id)
        self._loop.journal.record(*facts)
        return bool(facts)

    # --- forks, files, closing ---

    def fork(self) -> "Session":
        """An independent copy in the same store."""
        if not self._timeline.durable:
            raise UsageError("This session is not stored, so there is nothing to copy.")
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
        """Whether changes by the file tools are asked about, made or refused."""
        return self.tools().edits

    def set_edits(self, edits: Edits) -> None:
        """Set `edits` for the rest of this session. Raises UsageError if the session was started with edits off."""
        self.tools().set_edits(edits)

    def rename(self, title: str) -> None:
        """Give the session a title instead of its first prompt."""
        self._loop.journal.record(Titled(title))

    def undo(self) -> list[str]:
        """Restore the files that the last prompt changed. Returns a line about each."""
        return self._toolbox.undo.restore_last() if self._toolbox else []

    async def close(self) -> None:
        """Close the connection, the tools and the timeline. What was recorded stays."""
        await self._loop.close()
        if self._toolbox is not None:
            await self._close_tools(self._toolbox)
        await self.recipe.strategy.close()
        self._timeline.close()

    async def _close_tools(self, toolbox: Toolbox) -> None:
        for note in await toolbox.close():
            self.services.notices.warn(note)

    # --- for this package and for tools ---

    @property
    def loop(self) -> Loop:
        return self._loop

    async def loop_for(self, recipe: Recipe) -> Loop:
        """The loop for a prompt with its own recipe. Another model needs another loop."""
        if not recipe.same_model(self._loop.recipe):
            await self._loop.close()
            self._loop = Loop(self._loop.journal.timeline, recipe, self.services, learns=self._learns)
        return self._loop

    def tools(self) -> Toolbox:
        """The toolbox, created on first use: reading a session needs none."""
        if self._toolbox is None:
            offered, nested = self.recipe.info.tools, self._budget is not None
            self._toolbox = self.services.toolboxes.toolbox(self, offered=offered, nested=nested)
        return self._toolbox

    async def run_agent(self, task: str) -> Output:
        """Run a sub-agent: it has its own window and spends from the budget of the run that asked."""
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
                self._pay(run.ended)  # also when the parent run is interrupted
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
        """Answer a request of an MCP server, from the budget of the run whose tool call asked for it."""
        return await self._loop.ask_model(call)

    def _copy(self) -> MemoryTimeline:
        timeline = self._loop.journal.timeline
        events, clock = timeline.events(), self.services.clock
        return MemoryTimeline(timeline.session, events=events, texts=timeline.kept, clock=clock)
