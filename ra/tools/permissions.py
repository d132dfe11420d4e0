"""May this call run? Decided from the call, the rules and the place alone; asking and running happen elsewhere.

deny > ask > allow > what the place permits. Reads in the project are free, and so is Bash in a sandbox; writes by the
file tools where `place.writes` says so. Protected paths, paths outside and secrets ask, whatever a bare rule allows.
"""

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ra.core.errors import ConfigError
from ra.core.messages import ToolCall
from ra.core.value import Value
from ra.tools.paths import Place, is_secret, names_secret, protected, shown
from ra.tools.rules import (
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
    from ra.tools.shell import Part, Script

READERS = ("Read", "LS", "Glob", "Grep")
WRITERS = ("Write", "Edit")
HARMLESS = (("true",), ("false",), (":",), ("pwd",))


class Allow(Value, frozen=True):
    """`outside`: the command runs outside the sandbox, because the user said so."""

    reason: str = ""
    outside: bool = False


class Ask(Value, frozen=True):
    """`rule` would allow it without asking."""

    reason: str
    rule: str = ""
    outside: bool = False


class Deny(Value, frozen=True):
    reason: str


Decision = Allow | Ask | Deny


def decide(call: ToolCall, rules: Sequence[Rule], place: Place) -> Decision:
    """Raises Mistake for a path that cannot be one."""
    concerned = [rule for rule in rules if speaks_of(rule, call.name)]
    if call.name == "Bash":
        return _decide_bash(call, concerned, place)
    if call.name in READERS + WRITERS:
        return _decide_path(call, concerned, place)
    matching = [rule for rule in concerned if _matches_value(rule, call)]
    if said := _strongest(matching):
        return said
    if call.name in place.free:
        return Allow(f"{call.name} touches nothing outside ra")
    pattern = f"{call.name}({call.args['url']})" if "url" in call.args else call.name
    return Ask(f"{call.name} reaches outside the project", rule=pattern)


def rules_from(settings: Iterable[RuleSettings]) -> tuple[Rule, ...]:
    """The rules of `agent.permissions.rules`. Raises ConfigError."""
    rules = []
    for place, entry in enumerate(settings):
        given: list[tuple[Action, str | None]] = [("allow", entry.allow), ("ask", entry.ask), ("deny", entry.deny)]
        said = [(action, text) for action, text in given if text is not None]
        if len(said) != 1:
            raise ConfigError(
                f"agent.permissions.rules[{place}] needs exactly one of allow, ask, deny, e.g. allow: Bash(make:*)"
            )
        rules.append(parse_rule(said[0][1], said[0][0]))
    return tuple(rules)


def _strongest(matching: Sequence[Rule], *, outside: bool = False) -> Decision | None:
    by_action = {rule.action: rule for rule in reversed(matching)}
    if rule := by_action.get("deny"):
        return Deny(f"the rule deny {rule} forbids it")
    if rule := by_action.get("ask"):
        return Ask(f"the rule ask {rule} wants a word", outside=outside)
    if rule := by_action.get("allow"):
        return Allow(f"the rule allow {rule}", outside=outside)
    return None


def _matches_value(rule: Rule, call: ToolCall) -> bool:
    """For tools without a path or a command: a pattern speaks of the address, or of any text argument."""
    if rule.bare:
        return True
    values = [call.args["url"]] if "url" in call.args else list(call.args.values())
    return any(url_matches(rule.pattern, value) for value in values if isinstance(value, str))


# Files


def _decide_path(call: ToolCall, rules: Sequence[Rule], place: Place) -> Decision:
    path = str(call.args.get("path") or ".")
    lexical = os.path.normpath(place.joined(path, call.name))
    real = place.resolve(path, call.name)
    relative = place.inside(real, call.name)
    concern = _concern(call.name, path, lexical, real, relative, place)
    matching = [rule for rule in rules if _path_rule_matches(rule, lexical, real, place)]
    # A bare rule says that the tool may be used, not that what is protected may be touched with it.
    named = [rule for rule in matching if rule.action != "allow" or not concern or not rule.bare]
    if said := _strongest(named):
        return said
    if concern:
        return Ask(concern, rule=f"{call.name}({relative if relative and relative != '.' else real})")
    if call.name in READERS:
        return Allow("reads in the project are free")
    if place.writes:
        return Allow("writes in the project are free here")
    return Ask("without a terminal writing needs --write", rule=call.name)


def _path_rule_matches(rule: Rule, lexical: str, real: str, place: Place) -> bool:
    if rule.bare or path_matches(rule.pattern, real, place):
        return True
    # What is forbidden is forbidden by each of its names; what is allowed is where the path really leads.
    return rule.action != "allow" and path_matches(rule.pattern, lexical, place)


def _concern(tool: str, path: str, lexical: str, real: str, relative: str | None, place: Place) -> str:
    """Why this path is not simply free."""
    name = shown(path)
    if relative is None:
        held = place.roots.get(tool)
        return f"{name} lies outside {'the folder that ' + tool + ' is held to' if held else 'the project'}"
    if is_secret(relative) or is_secret(os.path.relpath(lexical, place.root)):
        return f"{name} may hold secrets"
    if tool in WRITERS:
        why = protected(relative, place.instructions) or protected(lexical, place.instructions)
        if not why and any(place.runs_from(path) for path in (lexical, real)):
            why = "ra runs it"
        return f"{name} is protected: {why}" if why else ""
    return ""


# Shell commands


def _decide_bash(call: ToolCall, rules: Sequence[Rule], place: Place) -> Decision:
    from ra.tools.shell import Script, parse  # a shell parser, for no call but this

    command = str(call.args.get("command") or "")
    if not command.strip():
        return Allow("nothing runs")  # reading or ending a background job
    wants_out = call.args.get("outside") is True
    outside = wants_out or not (place.boxed or place.trouble)  # a box with a weakness is better than none
    needless = all(rule.bare for rule in rules) and not (outside and rules)  # then spare the parser's 30 ms
    script = Script(()) if needless else parse(command)
    for action in ("deny", "ask"):
        matching = [
            r for r in rules if r.action == action and any(part_matches(r, part, command) for part in script.parts)
        ]
        if said := _strongest(matching or [r for r in rules if r.action == action and r.bare], outside=outside):
            return said
    if rule := _allowing(command, script, rules, place):
        return Allow(f"the rule allow {rule}", outside=True)
    if not outside and not place.trouble:
        return Allow("it runs in the sandbox")
    why = "there is no sandbox to run it in" if outside else place.trouble
    why = "it asks to leave the sandbox" if wants_out and (place.boxed or place.trouble) else why
    return Ask(why, rule="" if script.broken else f"Bash({literal(command.strip())})", outside=outside)


def part_matches(rule: Rule, part: "Part", command: str) -> bool:
    """For deny and ask: the words as they are, and with the program's name without its folder."""
    if not part.words:
        return rule.bare
    short = (part.words[0].rsplit("/", 1)[-1], *part.words[1:])
    texts = (part.text, command.strip())
    return any(words_match(rule.pattern, words, text) for words in {part.words, short} for text in texts)


def _allowing(command: str, script: "Script", rules: Sequence[Rule], place: Place) -> Rule | None:
    """The rule that allows the whole command (the first of them, when several cover it together), else None."""
    allows = [rule for rule in rules if rule.action == "allow"]
    if script.broken:
        return None
    for rule in allows:
        if rule.pattern and not rule.pattern.endswith("*") and unescaped(rule.pattern) == command.strip():
            return rule  # the user wrote, or was shown, exactly this text
    bare = next((rule for rule in allows if rule.bare), None)
    # "Everything" is everything, unless other rules make exceptions that an unclear command could slip past.
    if bare and not (script.unclear and any(rule.action != "allow" for rule in rules)):
        return bare
    if script.unclear or not _own_repository(place.real(place.cwd), place):
        return None
    used = []
    for number, part in enumerate(part for part in script.parts if not part.nested):
        if part.words in HARMLESS or (number == 0 and harmless_cd(part, place)):
            continue
        covering = [rule for rule in allows if allows_part(rule, part, place)]
        if not covering:
            return None
        used += covering
    return used[0] if used else None


def allows_part(rule: Rule, part: "Part", place: Place) -> bool:
    """Whether a rule covers one command. A wildcard stands neither for a word that runs something nor for a secret."""
    if rule.bare:
        return True
    secret = max((number for number, word in enumerate(part.words, 1) if names_secret(word, place)), default=0)
    return fixed_words(rule.pattern) >= max(part.spelled, secret) and words_match(rule.pattern, part.words, part.text)


def harmless_cd(part: "Part", place: Place) -> bool:
    """`cd` to a folder of the project that is no repository of its own."""
    if len(part.words) != 2 or part.words[0] != "cd" or part.words[1].startswith("-"):
        return False
    real = place.resolve(part.words[1])
    return place.inside(real) is not None and _own_repository(real, place)


def _own_repository(folder: str, place: Place) -> bool:
    """Whether no other repository lies between here and the project: its config could make git run anything."""
    root = place.real(place.root)
    while folder != root and folder.startswith(root):
        if os.path.lexists(os.path.join(folder, ".git")) or os.path.exists(os.path.join(folder, "HEAD")):
            return False
        folder = os.path.dirname(folder)
    return True
