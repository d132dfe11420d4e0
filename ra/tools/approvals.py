"""Decides about calls by the rules of a session, and asks the user where the rules leave it open."""

import asyncio
from collections.abc import Iterable, Sequence

import msgspec

from ra.core.asking import Answer, Asker, Question
from ra.core.errors import UsageError
from ra.core.events import Warned
from ra.core.functions import Emit
from ra.core.messages import ToolCall
from ra.core.value import Value
from ra.tools.policy.paths import Project, shown
from ra.tools.policy.permissions import Allow, Ask, Decision, Deny, decide
from ra.tools.policy.rules import Rule, parse_rule
from ra.tools.port import RuleKeeper
from ra.tools.settings import Edits
from ra.tools.tool import Mistake


class Consent(Value, frozen=True):
    """A call that may run: as the model made it, or `edited` by the user."""

    call: ToolCall
    edited: bool = False


class Approvals:
    """The rules that hold in a session. They grow by the user's answers, for everybody who holds this object.

    `edits` says what becomes of writes by the file tools in the project; `read_only`: they were turned off for good.
    `keeper` keeps the rules that the user wants to hold in this project.
    """

    def __init__(
        self,
        rules: Sequence[Rule] = (),
        *,
        edits: Edits = "off",
        read_only: bool = False,
        keeper: RuleKeeper | None = None,
    ) -> None:
        self.rules = tuple(rules)
        self._edits: Edits = edits
        self._read_only = read_only
        self._keeper = keeper
        self._asking = asyncio.Lock()

    @property
    def edits(self) -> Edits:
        return "off" if self._read_only else self._edits

    def set_edits(self, edits: Edits) -> None:
        """For the rest of the session. Raises UsageError where the session was started with edits off."""
        if self._read_only and edits != "off":
            raise UsageError("This session was started with edits off; start ra with --edits ask.")
        self._edits = edits

    def deny(self, tools: Iterable[str]) -> None:
        """Refuse these tools from now on, whatever other rules say."""
        self.rules = (*self.rules, *(Rule("deny", tool) for tool in tools))

    def take_over(self, other: "Approvals") -> None:
        """Go on with what was allowed before: the same session, with other tools."""
        self.rules, self._edits = other.rules, other._edits

    def decide(self, call: ToolCall, project: Project) -> Decision:
        """What the rules say of a call. Raises Mistake for a path that cannot be one."""
        return decide(call, self.rules, msgspec.structs.replace(project, edits=self._edits))

    async def ask(self, call: ToolCall, question: Ask, project: Project, ask: Asker) -> Consent:
        """Ask the user about a call. An answer for the session or the project becomes a rule.

        Raises Mistake when the answer is no.
        """
        async with self._asking:  # one question at a time, also for calls that run side by side
            if isinstance(self.decide(call, project), Allow):
                return Consent(call)  # an answer in between has allowed it
            from ra.tools.policy.preview import planned_change, preview  # difflib, only for a question

            change = planned_change(call, project)
            text = preview(call, change, cwd=project.cwd, outside=question.outside)
            answer = await ask(Question(call, question.reason, text, change, edits=question.edits))
            if answer.verdict == "no" and answer.why:
                raise Mistake(f"The user said no: {answer.why}")
            if answer.verdict == "no":
                raise Mistake("The user said no. Ask what to do instead, or go on without it.")
            if answer.verdict == "session" and question.edits:
                self.set_edits("auto")
            elif answer.verdict in ("session", "project") and question.rule and not answer.edited:
                rule = parse_rule(question.rule, "allow")
                self.rules = (*self.rules, rule)
                if answer.verdict == "project" and self._keeper:
                    self._keeper.remember(rule)
        if answer.edited and answer.edited != call:
            return Consent(ToolCall(call.id, call.name, answer.edited.args), edited=True)
        return Consent(call)

    async def answer(self, question: Question, ask: Asker) -> Answer:
        """Ask the user something that is no call, in turn with the questions about calls."""
        async with self._asking:
            return await ask(question)


def refuse(call: ToolCall, decision: Ask | Deny, project: Project, emit: Emit) -> Mistake:
    """The error result of a call that was refused; the user is told, with the way to allow it."""
    way = ""
    if isinstance(decision, Ask):
        quoted = shown(decision.rule).replace("'", "'\\''")
        way = f" To allow it: --allow '{quoted}'." if decision.rule else " Run ra on a terminal to be asked."
        if call.name == "Bash" and not project.boxed:
            way += " Or install bubblewrap: in a sandbox commands run without a question."
    subject = call.args.get("command") or call.args.get("path") or call.args.get("url") or ""
    emit(Warned(f"{call.name} {shown(str(subject))[:200]} was refused: {decision.reason}.{way}"))
    return Mistake(f"Refused: {decision.reason}. Do not try to get around this; go on without it, or tell the user.")
