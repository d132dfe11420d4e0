"""Finds the simple commands in a shell command with a real parser, and whether it understood all of it."""

import re
import shlex
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from ra.core.value import Value
from ra.tools.policy.programs import SHELLS, TAKES_SCRIPT_WORDS, TAKES_SCRIPTS, runs_others

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_CHARACTERS = 20_000
MAX_DEPTH = 5
MAX_WORK = 200_000
"""Characters that may be read for one command: a nested script is read again for every script around it."""

_PLAIN = {"program", "list", "pipeline", "subshell", "redirected_statement", "command"}
_TOKENS = {"&&", "||", "|", "|&", ";", "&", "(", ")", "\n"}
_STATIC = {"word", "number", "raw_string", "string", "string_content", "concatenation", "command_name"}
_ODD = re.compile(r"[^\S\n\t ]|[\x00-\x08\x0e-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_EXPANDS = re.compile(r"[*?\[`$]|^~|[=:]~|\{.*(,|\.\.).*\}|[@!+]\(", re.DOTALL)
"""A glob, a brace, a variable, a substitution, or a home directory, in a word without its escaped characters."""

_BEFORE_COMMANDS = {"!", "{", "if", "then", "elif", "else", "while", "until", "do", "coproc"}
"""Reserved words that a command follows: none of them is a program."""

_JOINED = re.compile(r"(\\[^\n])|\\\n", re.DOTALL)
"""A line continuation, or any other escape, which stays."""

_REDIRECTION = re.compile(
    r"(?:\d+|\{\w+\}|&)?(?:[<>]&|>>|>\||<>|<<-?(?!<)|<(?!<)|>)[ \t]*(?:\"[^\"]*\"|'[^']*'|[^\s;&|<>()\"']+)"
)
"""A redirection with its file, or the beginning of a here-document."""

_HERE_STRING = re.compile(r"<<<[ \t]*(\"[^\"]*\"|'[^']*'|\S+)")
_SUBSTITUTIONS = (
    "command_substitution",
    "process_substitution",
    "expansion",
    "simple_expansion",
    "arithmetic_expansion",
)


class SimpleCommand(Value, frozen=True):
    """A simple command: the words that the program receives, and their source.

    `runner`: it passes part of its words on as a command (`sudo`, `find -exec`); a wildcard does not cover those.
    `nested`: it occurs in a substitution, a string for another shell, or the arguments of a runner.
    """

    words: tuple[str, ...]
    text: str
    runner: bool = False
    nested: bool = False


class ShellScript(Value, frozen=True):
    """`unclear` says what was not understood: no rule with a pattern ever allows such a command.

    `guessed`: it passes on a word that was not understood and might be a script, as in `bash -c '$x'`. `hopeless`: it
    nests so deeply that its parts are unknown, so that no rule can judge it.
    """

    parts: tuple[SimpleCommand, ...]
    unclear: str = ""
    broken: bool = False
    guessed: bool = False
    hopeless: bool = False


class _TooMuch(Exception):
    """The command would take too long to judge."""


class _Effort:
    def __init__(self) -> None:
        self._left = MAX_WORK

    def spend(self, text: str) -> str:
        """Accounts for text that is about to be read. Raises _TooMuch."""
        self._left -= len(text)
        if self._left < 0:
            raise _TooMuch
        return text


def parse(command: str) -> ShellScript:
    try:
        return _parse(command, 0, _Effort())
    except (RecursionError, _TooMuch):
        return ShellScript((), "it nests too deeply", broken=True, hopeless=True)


def _parse(command: str, depth: int, effort: _Effort) -> ShellScript:
    """Raises _TooMuch."""
    if len(command) > MAX_CHARACTERS:
        return ShellScript(_rough_parts(command[:MAX_CHARACTERS]), "the command is too long to judge", broken=True)
    command = effort.spend(command.encode("utf-8", "replace").decode())
    root = _parser().parse(_spelled(command)).root_node
    reasons: list[str] = []
    parts: list[SimpleCommand] = []
    _walk(root, parts, reasons, nested=depth > 0)
    if root.has_error:
        reasons.insert(0, "the command cannot be parsed")
        parts.extend(_rough_parts(command))
    if _ODD.search(command):
        reasons.append("it holds control or invisible characters")
    if not reasons and _second_opinion(command) != [word for part in parts for word in part.words]:
        # Two readers must agree: a comment or a here-document to one of them may be a command to bash.
        reasons.append("the command can be read in two ways")
    if reasons and _REDIRECTION.search(command):
        # To the parser all words after `>` are files; to bash `git 2>x push` is a push.
        seen = {part.words for part in parts}
        parts.extend(part for part in _rough_parts(_REDIRECTION.sub(" ", command)) if part.words not in seen)
    guessed = False
    for part in tuple(parts):
        for script in _passed_on(part, depth, effort):
            parts.extend(script.parts)
            guessed = guessed or script.guessed or bool(script.unclear)
    if (joined := _JOINED.sub(lambda match: match[1] or "", command)) != command:
        # To bash `r\\` and `m` on the next line are one word, to the parser two.
        parts.extend(SimpleCommand(p.words, p.text, p.runner, True) for p in _parse(joined, depth, effort).parts)
    if any(_reads_commands(part) for part in parts):
        reasons.append("a shell reads its commands from somewhere else")
        texts = [" ".join(part.words[1:]) for part in parts] + _HERE_STRING.findall(command)
        for guess in [guess for text in texts for guess in _rough_parts(effort.spend(text).strip("\"'"))]:
            parts.append(guess)
            parts.extend(nested for script in _passed_on(guess, depth, effort) for nested in script.parts)
    return ShellScript(tuple(dict.fromkeys(parts)), reasons[0] if reasons else "", root.has_error, guessed)


@lru_cache(maxsize=1)
def _parser() -> "Parser":
    # Start-up time: 30 ms, only to judge a command.
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def _walk(root: "Node", parts: list[SimpleCommand], reasons: list[str], *, nested: bool) -> None:
    """Collects simple commands in order, and notes everything beyond a plain list of them.

    Iterative: `a && b && c …` nests as deeply as it is long.
    """
    waiting = [(root, nested)]
    while waiting:
        node, inside = waiting.pop()
        if node.type == "command":
            parts.append(_part(node, reasons, nested=inside))
            if parts[-1].words[:1] and parts[-1].words[0] in _BEFORE_COMMANDS:
                # In bash, `! ! rm` runs rm; the parser takes the second `!` for a program.
                reasons.append("the command can be read in two ways")
                parts.extend(_rough_parts(parts.pop().text))
            children = [c for c in _descend(node) if c.type in _SUBSTITUTIONS or c.type == "heredoc_body"]
            waiting.extend((child, True) for child in reversed(children))
            continue
        _note(node, parts, reasons, nested=inside)
        inside = inside or node.type in _SUBSTITUTIONS
        waiting.extend((child, inside) for child in reversed(node.children))


def _note(node: "Node", parts: list[SimpleCommand], reasons: list[str], *, nested: bool) -> None:
    """Handles this node without its children."""
    if node.type in ("expansion", "command_substitution") and "`" in (text := _text(node)):
        parts.extend(_rough_parts(text))  # the parser skips these, or reads them only once
    if node.type == "file_redirect":
        target = _text(node.child_by_field_name("destination"))
        if target != "/dev/null" and not (target.isdigit() and re.search(r"[<>]&", _text(node))):
            reasons.append(f"it redirects to or from {target or 'a file'}")
    elif node.type in ("variable_assignment", "variable_assignments", "declaration_command", "unset_command"):
        reasons.append("it sets variables")
        if node.type == "declaration_command":
            parts.append(SimpleCommand(tuple(_text(node).split()), _text(node), nested=nested))
    elif node.type == "heredoc_body":
        _heredoc(node, parts)
        reasons.append("it holds a here-document")
    elif node.is_named and node.type not in _PLAIN | _STATIC | {"comment", "file_descriptor"}:
        reasons.append(f"it holds a {node.type.replace('_', ' ')}")
    elif node.type == "comment":
        reasons.append("it holds a comment")
    elif not node.is_named and node.type not in _TOKENS and node.type not in "<>&|":
        reasons.append(f"it holds {node.type!r}")


def _descend(node: "Node") -> Iterator["Node"]:
    """The nodes below a command in order, down to its topmost substitutions."""
    waiting = list(reversed(node.children))
    while waiting:
        child = waiting.pop()
        yield child
        if child.type not in _SUBSTITUTIONS:
            waiting.extend(reversed(child.children))


def _heredoc(node: "Node", parts: list[SimpleCommand]) -> None:
    """The body may be a script for the shell that reads it, so each of its lines counts as a possible command."""
    parts.extend(SimpleCommand(part.words, part.text, part.runner, True) for part in _rough_parts(_text(node)))


def _part(node: "Node", reasons: list[str], *, nested: bool) -> SimpleCommand:
    words: list[str] = []
    for child in node.children:
        if child.type == "variable_assignment":
            reasons.append("it sets a variable for a command")
        elif child.type in ("file_redirect", "herestring_redirect", "heredoc_redirect"):
            reasons.append("it redirects in the middle of a command")
        else:
            words.append(_word(child, reasons))
    return SimpleCommand(tuple(words), _text(node), runs_others(tuple(words)), nested)


def _word(node: "Node", reasons: list[str]) -> str:
    """The value of a word, as far as it is known before the command runs."""
    if node.type in ("command_name", "concatenation"):
        pieces = [_word(child, reasons) for child in node.children]
        if node.type == "concatenation" and re.search(r"\{.*(,|\.\.).*\}", _text(node), re.DOTALL):
            reasons.append("it holds a brace expansion")
        return "".join(pieces)
    text = _text(node)
    match node.type:
        case "word" | "number":
            if _EXPANDS.search(re.sub(r"\\(?:\n|.)", "", text, flags=re.DOTALL)):
                reasons.append(f"what {text!r} stands for is known only when it runs")
            return re.sub(r"\\(\n|.)", lambda m: "" if m[1] == "\n" else m[1], text, flags=re.DOTALL)
        case "raw_string":
            return text[1:-1]
        case "string":
            if any(child.is_named and child.type != "string_content" for child in node.children):
                reasons.append("a word is known only when it runs")
            return re.sub(r'\\(["$`\\\n])', lambda m: "" if m[1] == "\n" else m[1], text[1:-1])
        case "translated_string":
            reasons.append("a word is known only when it runs")
            return "".join(_word(child, reasons) for child in node.children if child.is_named)
        case "ansi_c_string":
            reasons.append("it holds $'…'")
            return text[2:-1].encode("latin-1", "replace").decode("unicode_escape", "replace")
        case _:
            reasons.append("a word is known only when it runs")
            return text


def _text(node: "Node | None") -> str:
    text = (node.text or b"").decode("utf-8", "replace") if node else ""
    return re.sub("\x01([0-9a-f]+)\x02", lambda match: chr(int(match[1], 16)), text)


def _spelled(command: str) -> bytes:
    """The text in ASCII, which `_text` reverses: on `{🎉` the parser calls C's isdigit and crashes the process."""
    plain = re.sub("[\x01\x02]", "\x03", command)  # equally unusual characters
    return re.sub("[^\x00-\x7f]", lambda match: f"\x01{ord(match[0]):x}\x02", plain).encode()


def _second_opinion(command: str) -> list[str] | None:
    """The words according to another reader, which has neither comments nor here-documents."""
    reader = shlex.shlex(re.sub(r"\\\n", "", command), posix=True, punctuation_chars="();<>|&")
    reader.whitespace_split, reader.commenters = True, ""
    try:
        words = list(reader)
    except ValueError:
        return None
    plain_words: list[str] = []
    redirected = False
    for word in words:
        if re.fullmatch(r"[();<>|&]+", word):
            redirected = "<" in word or ">" in word
            if redirected and plain_words and plain_words[-1].isdigit():
                plain_words.pop()  # the descriptor in 2>&1
        elif redirected:
            redirected = False  # its target was judged as a redirection
        else:
            plain_words.append(word)
    return plain_words


def _rough_parts(text: str) -> tuple[SimpleCommand, ...]:
    """Every possible command in text that no parser understands: for deny rules, which may match too much."""
    parts = []
    text = re.sub(r"\$(?=['\"])", "", text)  # another form of quotes
    for piece in re.split(r"[;&|\n(){}`]|\$\(", text):
        try:
            words = shlex.split(piece)
        except ValueError:
            words = re.sub(r"[\"'\\]", "", piece).split()
        while words and (re.match(r"\w+=", words[0]) or words[0] in _BEFORE_COMMANDS):
            words.pop(0)
        if words:
            parts.append(SimpleCommand(tuple(words), piece.strip(), runs_others(tuple(words)), True))
    return tuple(parts)


def _reads_commands(part: SimpleCommand) -> bool:
    """`… | sh`, `. <(…)`: the output of the other commands may be run."""
    name = part.words[0].rsplit("/", 1)[-1] if part.words else ""
    if name in SHELLS | {".", "source"} and any(word.startswith(("<(", "/dev/", "/proc/")) for word in part.words[1:]):
        return True
    return name in SHELLS and all(word.startswith("-") and "c" not in word for word in part.words[1:])


def _passed_on(part: SimpleCommand, depth: int, effort: _Effort) -> Iterator[ShellScript]:
    """The commands that a runner could run: every tail of its words, and every word that may be a script."""
    if not part.runner:
        return
    name = part.words[0].rsplit("/", 1)[-1]
    tails = [part.words[start:] for start in range(1, len(part.words))]
    if name == "find":  # its command ends with one of these
        ends = [place for place, word in enumerate(part.words) if word in (";", "+")]
        tails += [part.words[start:end] for end in ends[:9] for start in range(1, end)]
    yield ShellScript(
        tuple(
            SimpleCommand(tail, " ".join(tail), runs_others(tail), True)
            for tail in tails
            if not tail[0].startswith("-") or "=" in tail[0]
        )
    )
    for word in _scripts(name, part.words[1:]):
        if depth >= MAX_DEPTH:
            raise _TooMuch
        script = _parse(word, depth + 1, effort)
        nested = tuple(SimpleCommand(inner.words, inner.text, inner.runner, True) for inner in script.parts)
        yield msgspec.structs.replace(script, parts=nested)


def _scripts(name: str, words: tuple[str, ...]) -> Iterator[str]:
    """The words that a runner may read as a script: all of them, or those that cannot be a plain argument."""
    if name in TAKES_SCRIPTS:
        yield " ".join(words)
    for word in words:
        if name in TAKES_SCRIPT_WORDS:
            yield word.partition("=")[2] if name == "alias" else word
            continue
        # `--eval=x y`, and `-S"x y"` of env
        values = (word.partition("=")[2], word[2:]) if word.startswith("-") else (word,)
        yield from (value for value in values if re.search(r"[\s;&|<>$`]", value))
