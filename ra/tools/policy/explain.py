"""Explains a decision to a person: part by part, and rule by rule."""

from collections.abc import Sequence
from typing import Literal

from ra.core.messages import ToolCall
from ra.core.value import Value
from ra.tools.policy.paths import Project
from ra.tools.policy.permissions import HARMLESS, Allow, Ask, Deny, allows_part, decide, harmless_cd, part_matches
from ra.tools.policy.rules import Rule
from ra.tools.policy.shell import SimpleCommand, parse


class PartView(Value, frozen=True):
    """A command inside the command. `nested`: it occurs in a substitution, or is passed to a program that runs it."""

    text: str
    words: str
    nested: bool = False


class Explanation(Value, frozen=True):
    """`decision` applies if there is somebody to ask; otherwise `ask` means a refusal. `rule` would allow the call."""

    decision: Literal["allow", "ask", "deny"]
    reason: str
    rule: str = ""
    outside: bool = False
    network: bool = False
    git: bool = False
    parts: tuple[PartView, ...] = ()
    unclear: str = ""


def explain(call: ToolCall, rules: Sequence[Rule], place: Project) -> Explanation:
    """Raises Mistake for an invalid path."""
    parts: tuple[PartView, ...] = ()
    unclear = ""
    if call.name == "Bash":
        command = str(call.args.get("command", ""))
        script = parse(command)
        concerned = [rule for rule in rules if rule.tool in ("Bash", "*")]
        parts = tuple(
            PartView(part.text, _words(part, concerned, place, command, first=number == 0), part.nested)
            for number, part in enumerate(script.parts)
        )
        unclear = script.unclear
    match decide(call, rules, place):
        case Allow(reason=reason, outside=outside, network=network, git=git):
            return Explanation("allow", reason, outside=outside, network=network, git=git, parts=parts, unclear=unclear)
        case Ask(reason=reason, rule=rule, outside=outside, git=git):
            return Explanation("ask", reason, rule, outside=outside, git=git, parts=parts, unclear=unclear)
        case Deny(reason=reason):
            return Explanation("deny", reason, parts=parts, unclear=unclear)


def _words(part: SimpleCommand, rules: Sequence[Rule], place: Project, command: str, *, first: bool) -> str:
    """Says which rule decides about one part."""
    for action in ("deny", "ask"):
        for rule in rules:
            if rule.action == action and part_matches(rule, part, command):
                return f"{action} {rule}"
    if part.words in HARMLESS or (first and harmless_cd(part, place)):
        return "harmless"
    covering = [rule for rule in rules if rule.action == "allow" and allows_part(rule, part)]
    return f"allow {covering[0]}" if covering else "no rule speaks of it"
