"""Parses rules `Tool(pattern)` that allow, ask or deny, and matches them with paths, hosts and words."""

import os
import re
import shlex
from typing import Literal

from ra.core.errors import ConfigError
from ra.core.value import Value
from ra.system.secret_names import fold
from ra.tools.policy.globs import glob_regex
from ra.tools.policy.paths import Project

Action = Literal["allow", "ask", "deny"]
BUILTIN = ("Agent", "Bash", "Edit", "Entry", "Glob", "Grep", "Job", "LS", "Read", "Recall", "WebFetch", "Write")

_RULE = re.compile(r"(?P<tool>\*|[A-Za-z_][\w.*-]*)(?:\((?P<pattern>.*)\))?", re.DOTALL)


class Rule(Value, frozen=True):
    """A pattern of "" is a bare rule, which matches every call of the tool.

    `outside`: exactly this command may leave the sandbox. Only the user's own file can say so.
    """

    action: Action
    tool: str
    pattern: str = ""
    outside: bool = False

    def __str__(self) -> str:
        return f"{self.tool}({self.pattern})" if self.pattern else self.tool

    @property
    def bare(self) -> bool:
        return not self.pattern.strip("*/ :")

    @property
    def exact(self) -> bool:
        """Whether the pattern has no wildcard."""
        return bool(self.pattern) and not re.search(r"(?<!\\)[*?\[]", self.pattern)


def parse_rule(text: str, action: Action, *, outside: bool = False) -> Rule:
    """Raises ConfigError with a message about the form of rules."""
    forms = "A rule is a tool's name, or Tool(pattern): Bash(git diff:*), Bash(npm run *), Write(src/**), Read."
    match = _RULE.fullmatch(text.strip())
    if not match:
        raise ConfigError(f"{action} rule {text!r} cannot be read. {forms}")
    tool, pattern = match["tool"], match["pattern"]
    tool_name = {name.casefold(): name for name in BUILTIN}.get(tool.casefold(), tool)
    if tool_name != tool:
        raise ConfigError(f"{action} rule {text!r}: no tool is called {tool!r}; did you mean {tool_name}?")
    if pattern is not None and not pattern.strip():
        raise ConfigError(
            f"{action} rule {text!r}: the pattern is empty. For every call of the tool write {tool!r}. {forms}"
        )
    if tool == "Bash" and pattern:
        try:
            shlex.split(pattern)
        except ValueError as error:
            raise ConfigError(f"{action} rule {text!r}: {error}. {forms}") from error
    rule = Rule(action, tool, (pattern or "").strip(), outside)
    if outside and not (action == "allow" and tool == "Bash" and rule.exact):
        raise ConfigError(
            f"{action} rule {text!r}: `outside: true` needs allow: Bash(command) with the exact words of one command."
        )
    return rule


def literal(text: str) -> str:
    """A pattern that matches exactly this text."""
    return re.sub(r"([*?\[\]{}\\])", r"\\\1", text)


def unescaped(pattern: str) -> str:
    return re.sub(r"\\([*?\[\]{}\\])", r"\1", pattern)


def speaks_of(rule: Rule, tool: str) -> bool:
    return rule.tool == tool or ("*" in rule.tool and bool(glob_regex(rule.tool).fullmatch(tool)))


def words_match(pattern: str, words: tuple[str, ...], text: str) -> bool:
    """Whether a Bash pattern covers a simple command: `words` are the parsed words, `text` is the source.

    `git diff:*` is a prefix of words (never of half a word), `npm run *` a glob over the words, and any other pattern
    matches all words exactly.
    """
    if not pattern.strip("*: "):
        return True
    if pattern.endswith(":*"):
        prefix = tuple(shlex.split(pattern[:-2]))
        return words[: len(prefix)] == prefix
    if text == pattern:
        return True
    # The program's name is matched separately: `"git diff"` in quotes is another program than git.
    first = glob_regex(pattern.split()[0])
    return bool(words and first.fullmatch(words[0]) and glob_regex(pattern, word_end=True).fullmatch(" ".join(words)))


def fixed_words(pattern: str) -> int:
    """How many leading words a Bash pattern spells out; its wildcard covers the rest."""
    words = pattern.removesuffix(":*").split()
    return next((place for place, word in enumerate(words) if re.search(r"(?<!\\)[*?\[]", word)), len(words))


def path_matches(pattern: str, real: str, place: Project) -> bool:
    """Whether a pattern covers a path: relative ones start at the project, a name alone matches anywhere in it."""
    if pattern.startswith("~/"):
        pattern = place.home + pattern[1:]
    while pattern.startswith("./"):
        pattern = pattern[2:]
    root = place.real(place.root)
    if pattern.startswith("/"):
        subject, path_pattern = real, pattern
    elif real == root or real.startswith(root.rstrip("/") + "/"):
        subject = os.path.relpath(real, root)
        path_pattern = pattern if "/" in pattern.rstrip("/") else f"**/{pattern}"
    else:
        return False
    regex = glob_regex(_folded(path_pattern.rstrip("/")), paths=True)
    # A pattern that names a folder covers its contents.
    pieces = _folded(subject).split("/")
    return any(regex.fullmatch("/".join(pieces[:end])) for end in range(1, len(pieces) + 1) if "/".join(pieces[:end]))


def url_matches(pattern: str, url: str) -> bool:
    """`domain:example.com` covers the host and its subdomains; any other pattern is a glob over the whole address."""
    from urllib.parse import urlsplit  # start-up time: 10 ms, only for rules about addresses

    if pattern.startswith("domain:"):
        domain = pattern.removeprefix("domain:").casefold().removeprefix("*.")
        try:
            host = (urlsplit(url).hostname or "").casefold().rstrip(".")
        except ValueError:
            return False
        return host == domain or host.endswith("." + domain)
    return bool(glob_regex(pattern).fullmatch(url))


def _folded(path: str) -> str:
    return "/".join(fold(part) if "*" not in part else part.casefold() for part in path.split("/"))
