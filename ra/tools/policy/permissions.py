"""Decides whether a call may run, from the call, the rules and the place alone.

deny > ask > allow > the default of the place. Reads in the project are free, and so is Bash in the sandbox; the file
tools may write if `place.edits` says so. Protected paths, paths outside and secrets ask, whatever a bare rule allows.
An allow rule for Bash skips a question and opens the network; the command stays in the sandbox. Only an exact rule with
`outside`, or the user's answer to a question, lets a command out.
"""

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ra.core.errors import ConfigError
from ra.core.messages import ToolCall
from ra.core.value import Value
from ra.tools.policy.paths import Project, is_secret, protected, shown
from ra.tools.policy.programs import must_spell, writes_git
from ra.tools.policy.rules import (
    Action,
    Rule,
    fixed_words,
    literal,
    parse_rule,
    path_matches,
    speaks_of,
    unescaped,
    url_matches,
    words_match,
)
from ra.tools.settings import RuleSettings

if TYPE_CHECKING:
    from ra.tools.policy.shell import ShellScript, SimpleCommand

READERS = ("Read", "LS", "Glob", "Grep")
WRITERS = ("Write", "Edit")
GIT_WRITES = "@git"
"""The pattern of a rule for all git commands that write, and nothing else."""

HARMLESS = (("true",), ("false",), (":",), ("pwd",))


class Allow(Value, frozen=True):
    """`outside`: the command runs outside the sandbox, with the user's consent. `network`: the sandbox has a network.

    `git`: the command may write the repository, except for its configuration and hooks.
    """

    reason: str = ""
    outside: bool = False
    network: bool = False
    git: bool = False


class Ask(Value, frozen=True):
    """`rule` would allow the call without a question. `outside` and `git` say how it would run.

    `edits`: it is a plain write in the project, and the user may allow all of them for the rest of the session.
    """

    reason: str
    rule: str = ""
    outside: bool = False
    git: bool = False
    edits: bool = False


class Deny(Value, frozen=True):
    reason: str


Decision = Allow | Ask | Deny


def decide(call: ToolCall, rules: Sequence[Rule], place: Project) -> Decision:
    """Raises Mistake for an invalid path."""
    concerned = [rule for rule in rules if speaks_of(rule, call.name)]
    if call.name == "Bash":
        return _decide_bash(call, concerned, place)
    if call.name in READERS + WRITERS:
        return _decide_path(call, concerned, place)
    matching = [rule for rule in concerned if _matches_value(rule, call)]
    if said := _strongest(matching):
        return said
    if call.name in place.free:
        return Allow(f"{call.name} affects nothing outside ra")
    pattern = f"{call.name}({call.args['url']})" if "url" in call.args else call.name
    return Ask(f"{call.name} reaches outside the project", rule=pattern)


def rules_from(settings: Iterable[RuleSettings]) -> tuple[Rule, ...]:
    """The rules of `agent.permissions.rules`. Raises ConfigError."""
    rules = []
    for place, entry in enumerate(settings):
        given: list[tuple[Action, str | None]] = [("allow", entry.allow), ("ask", entry.ask), ("deny", entry.deny)]
        stated = [(action, text) for action, text in given if text is not None]
        if len(stated) != 1:
            raise ConfigError(
                f"agent.permissions.rules[{place}] needs exactly one of allow, ask, deny, e.g. allow: Bash(make:*)"
            )
        rules.append(parse_rule(stated[0][1], stated[0][0], outside=entry.outside))
    return tuple(rules)


def _strongest(matching: Sequence[Rule], *, outside: bool = False) -> Decision | None:
    """The decision of the strongest matching rule. An `ask` says so if the command would run `outside`."""
    by_action = {rule.action: rule for rule in reversed(matching)}
    if rule := by_action.get("deny"):
        return Deny(f"the rule deny {rule} forbids it")
    if rule := by_action.get("ask"):
        return Ask(f"the rule ask {rule} asks first", outside=outside)
    if rule := by_action.get("allow"):
        return Allow(f"the rule allow {rule}")
    return None


def _matches_value(rule: Rule, call: ToolCall) -> bool:
    """For tools without a path or a command: a pattern matches the address, or any text argument."""
    if rule.bare:
        return True
    values = [call.args["url"]] if "url" in call.args else list(call.args.values())
    return any(url_matches(rule.pattern, value) for value in values if isinstance(value, str))


# Files


def _decide_path(call: ToolCall, rules: Sequence[Rule], place: Project) -> Decision:
    path = str(call.args.get("path") or ".")
    lexical = os.path.normpath(place.joined(path, call.name))
    real = place.resolve(path, call.name)
    relative = place.inside(real, call.name)
    concern = _concern(call.name, path, lexical, real, relative, place)
    matching = [rule for rule in rules if _path_rule_matches(rule, lexical, real, place)]
    # A bare rule permits the tool, not access to protected files with it.
    named = [rule for rule in matching if rule.action != "allow" or not concern or not rule.bare]
    if call.name in WRITERS and place.read_only:
        return Deny("edits are off")
    if said := _strongest(named):
        return said
    if concern:
        return Ask(concern, rule=f"{call.name}({relative if relative and relative != '.' else real})")
    if call.name in READERS:
        return Allow("reads in the project are free")
    match place.edits:
        case "auto":
            return Allow("edits are set to auto")
        case "ask":
            return Ask("edits are set to ask", rule=call.name, edits=True)
        case "off":
            return Deny("edits are off; --edits auto allows them")


def _path_rule_matches(rule: Rule, lexical: str, real: str, place: Project) -> bool:
    if rule.bare or path_matches(rule.pattern, real, place):
        return True
    # A path is denied under each of its names, but allowed only under the one that it resolves to.
    return rule.action != "allow" and path_matches(rule.pattern, lexical, place)


def _concern(tool: str, path: str, lexical: str, real: str, relative: str | None, place: Project) -> str:
    """Why this path needs permission."""
    name = shown(path)
    if relative is None:
        held = place.roots.get(tool)
        return f"{name} lies outside {'the folder that ' + tool + ' is limited to' if held else 'the project'}"
    if is_secret(relative) or is_secret(os.path.relpath(lexical, place.root)):
        return f"{name} may hold secrets"
    if tool in WRITERS:
        why = protected(relative, place.instructions) or protected(lexical, place.instructions)
        if not why and any(place.runs_from(path) for path in (lexical, real)):
            why = "ra runs it"
        return f"{name} is protected: {why}" if why else ""
    return ""


# Shell commands


def _decide_bash(call: ToolCall, rules: Sequence[Rule], place: Project) -> Decision:
    from ra.tools.policy.shell import ShellScript, parse  # start-up time: a shell parser, only for Bash

    command = str(call.args.get("command") or "")
    if not command.strip():
        return Allow("nothing runs")
    has_box = place.boxed or bool(place.trouble)  # a sandbox with a weakness is better than none
    wants_out = call.args.get("outside") is True
    outside = wants_out or not has_box
    needless = not rules and not outside and "git" not in command  # spares the parser's 30 ms
    script = ShellScript(()) if needless else parse(command)
    if script.hopeless:
        return Deny("the command nests too deeply to be judged")
    for action in ("deny", "ask"):
        matching = [
            r for r in rules if r.action == action and any(part_matches(r, part, command) for part in script.parts)
        ]
        if said := _strongest(matching or [r for r in rules if r.action == action and r.bare], outside=outside):
            return said
    if rule := _leaving(command, script, rules, place):
        return Allow(f"the rule allow {rule}", outside=True)
    rule = _allowing(command, script, rules, place)
    if rule and not has_box:
        return Allow(f"the rule allow {rule}", outside=True)
    if place.read_only and any(writes_git(part.words) for part in script.parts):
        return Deny("edits are off, and git would write to the repository")
    if not outside and place.boxed and any(writes_git(part.words) for part in script.parts if not part.nested):
        if call.args.get("background"):  # its files are checked only when it ends
            return Deny("git commands that write cannot run in the background")
        return _decide_git(script, rule, rules)
    if not outside and (rule or not place.trouble):
        return Allow(f"the rule allow {rule}", network=True) if rule else Allow("it runs in the sandbox")
    why = "there is no sandbox to run it in" if outside else place.trouble
    why = "it asks to leave the sandbox" if wants_out and has_box else why
    # A rule would not prevent this question: it covers only literal words, and lets nothing out.
    useless = script.broken or script.unclear or (wants_out and has_box)
    return Ask(why, rule="" if useless else f"Bash({literal(command.strip())})", outside=outside)


def _decide_git(script: "ShellScript", covering: Rule | None, rules: Sequence[Rule]) -> Decision:
    """Decides about a sandboxed command that writes the repository: one question covers the rest of the session."""
    if covering:
        return Allow(f"the rule allow {covering}", network=True, git=True)
    allows = [rule for rule in rules if rule.action == "allow" and not rule.outside]
    if any(rule.pattern == GIT_WRITES for rule in allows):
        return Allow(f"the rule allow Bash({GIT_WRITES})", git=True)
    writing = [part for part in script.parts if not part.nested and writes_git(part.words)]
    if not script.unclear and all(any(allows_part(rule, part) for rule in allows) for part in writing):
        return Allow("rules allow its git commands", git=True)
    return Ask("git would write to the repository", rule=f"Bash({GIT_WRITES})", git=True)


def _leaving(command: str, script: "ShellScript", rules: Sequence[Rule], place: Project) -> Rule | None:
    """The rule that lets exactly this command run outside. Does not apply in another repository."""
    if script.unclear or not _own_repository(place.real(place.cwd), place):
        return None
    return next((rule for rule in rules if rule.outside and unescaped(rule.pattern) == command.strip()), None)


def part_matches(rule: Rule, part: "SimpleCommand", command: str) -> bool:
    """For deny and ask: matches the words as they are, and with the program's name without its folder."""
    if not part.words:
        return rule.bare
    short = (part.words[0].rsplit("/", 1)[-1], *part.words[1:])
    texts = (part.text, command.strip())
    return any(words_match(rule.pattern, words, text) for words in {part.words, short} for text in texts)


def _allowing(command: str, script: "ShellScript", rules: Sequence[Rule], place: Project) -> Rule | None:
    """The rule that allows the whole command (the first, if several cover it together), else None."""
    allows = [rule for rule in rules if rule.action == "allow" and not rule.outside]
    bare = next((rule for rule in allows if rule.bare), None)
    # In a container "everything" is everything, unless other rules make exceptions that an unclear command could
    # bypass. Elsewhere a rule covers literal words only: other words are unknown until the command runs.
    exceptions = any(rule.action != "allow" for rule in rules)
    if script.guessed and exceptions:
        bare, allows = None, [rule for rule in allows if not rule.bare]
    if bare and place.container and not (script.unclear and exceptions):
        return None if script.broken else bare
    if script.unclear:
        return None
    for rule in allows:
        if rule.exact and unescaped(rule.pattern) == command.strip():
            return rule  # the user wrote, or was shown, exactly this text
    if not (place.boxed or place.trouble or place.container):
        return None  # without a sandbox, a wildcard would include everything that a program's options can do
    if bare:
        return bare
    used = []
    for number, part in enumerate(part for part in script.parts if not part.nested):
        if part.words in HARMLESS or (number == 0 and harmless_cd(part, place)):
            continue
        covering = [rule for rule in allows if allows_part(rule, part)]
        if not covering:
            return None
        used += covering
    return used[0] if used else None


def allows_part(rule: Rule, part: "SimpleCommand") -> bool:
    """Whether a rule covers one command. A wildcard does not cover a command that is passed to a program."""
    if rule.bare:
        return True
    spelled = rule.exact or fixed_words(rule.pattern) >= must_spell(part.words)
    return spelled and words_match(rule.pattern, part.words, part.text)


def harmless_cd(part: "SimpleCommand", place: Project) -> bool:
    """`cd` to a folder of the project that is not a repository of its own."""
    if len(part.words) != 2 or part.words[0] != "cd" or part.words[1].startswith("-"):
        return False
    real = place.resolve(part.words[1])
    return place.inside(real) is not None and _own_repository(real, place)


def _own_repository(folder: str, place: Project) -> bool:
    """Whether no other repository is between here and the project: its config could make git run anything."""
    root = place.real(place.root)
    while folder != root and folder.startswith(root):
        if os.path.lexists(os.path.join(folder, ".git")) or os.path.exists(os.path.join(folder, "HEAD")):
            return False
        folder = os.path.dirname(folder)
    return True
