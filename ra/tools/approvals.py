"""Decides about calls by the rules of a session, and asks the user if the rules leave it open."""

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
    """Permission to run a call: as the model made it, or `edited` by the user."""

    call: ToolCall
    edited: bool = False


class Approvals:
    """The rules in force in a session. The user's answers add to them, for everybody who shares this object.

    `edits` is the permission for the file tools to write in the project; `read_only` turns it off for good.
    `keeper` stores the rules that the user makes permanent for this project.
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
        """Sets `edits` for the rest of the session. Raises UsageError if the session was started with edits off."""
        if self._read_only and edits != "off":
            raise UsageError("This session was started with edits off; start ra with --edits ask.")
        self._edits = edits

    def deny(self, tools: Iterable[str]) -> None:
        """Refuses these tools from now on, whatever other rules say."""
        self.rules = (*self.rules, *(Rule("deny", tool) for tool in tools))

    def take_over(self, other: "Approvals") -> None:
        """Takes over what the user has allowed: the same session continues with other tools."""
        self.rules, self._edits = other.rules, other._edits

    def decide(self, call: ToolCall, project: Project) -> Decision:
        """The decision of the rules about a call. Raises Mistake for an impossible path."""
        return decide(call, self.rules, msgspec.structs.replace(project, edits=self._edits))

    async def ask(self, call: ToolCall, question: Ask, project: Project, ask: Asker) -> Consent:
        """Asks the user about a call. An answer for the session or the project becomes a rule.

        Raises Mistake if the answer is no.
        """
        async with self._asking:  # one question at a time, even from concurrent calls
            if isinstance(self.decide(call, project), Allow):
                return Consent(call)  # the answer to another question has allowed it meanwhile
            from ra.tools.policy.preview import planned_change, preview  # start-up time: difflib, only for a question

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
        """Asks the user a question that is not about a call, in turn with those that are."""
        async with self._asking:
            return await ask(question)


def refuse(call: ToolCall, decision: Ask | Deny, project: Project, emit: Emit) -> Mistake:
    """The error result of a refused call. The user is warned, and told how to allow it."""
    way = ""
    if isinstance(decision, Ask):
        quoted = shown(decision.rule).replace("'", "'\\''")
        way = f" To allow it: --allow '{quoted}'." if decision.rule else " Run ra on a terminal to be asked."
        if call.name == "Bash" and not project.boxed:
            way += " Or install bubblewrap: in a sandbox commands run without a question."
    subject = call.args.get("command") or call.args.get("path") or call.args.get("url") or ""
    emit(Warned(f"{call.name} {shown(str(subject))[:200]} was refused: {decision.reason}.{way}"))
    return Mistake(f"Refused: {decision.reason}. Do not try to get around this; go on without it, or tell the user.")
