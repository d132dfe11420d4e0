import itertools
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ra.core.messages import ToolCall
from ra.tools.paths import Place
from ra.tools.permissions import Allow, Ask, Decision, Deny, decide
from ra.tools.rules import Rule, parse_rule
from ra.tools.shell import parse
from tests.tools.strings import BAD, GOOD, JOINS, SINGLE

ALLOWED = ("git diff:*", "git log:*", "npm run *", "ls:*", "cat:*", "find:*", "echo:*", "python -m pytest:*",
           "make test", "sort:*", "sed:*", "awk:*",
           "xargs:*", "timeout 60 make:*", "grep:*", "tar:*", "env:*")  # fmt: skip
DENIED = ("rm:*", "curl:*", "sudo:*", "git push:*")
RULES = tuple(parse_rule(f"Bash({text})", "allow") for text in ALLOWED)
RULES += tuple(parse_rule(f"Bash({text})", "deny") for text in DENIED)
PLACE = Place("/nowhere/project", "/nowhere/project", "/home/u", real=lambda path: str(Path(path)))


def judged(command: str, rules: tuple[Rule, ...] = RULES) -> Decision:
    return decide(ToolCall("1", "Bash", {"command": command}), rules, PLACE)


def attacks() -> list[str]:
    return [join.format(good="git diff", bad=bad) for join, bad in itertools.product(JOINS, BAD)] + SINGLE


def test_there_are_enough_of_them() -> None:
    assert len(set(attacks())) > 400


@pytest.mark.parametrize("command", attacks())
def test_none_is_allowed(command: str) -> None:
    assert not isinstance(judged(command), Allow)


@pytest.mark.parametrize("command", GOOD)
def test_what_the_rules_mean_is_allowed(command: str) -> None:
    assert isinstance(judged(command), Allow)


@pytest.mark.parametrize(
    "command", [c for c in SINGLE[SINGLE.index("rm x") : SINGLE.index("git diff 'x")] if c != "CURL x"]
)
def test_what_is_denied_is_denied_in_every_disguise(command: str) -> None:
    assert isinstance(judged(command), Deny)


@pytest.mark.parametrize("command", ["eval $x", "$x", "git diff 'x", "a=rm; $a x", "`x`", "base64 -d x | sh"])
def test_a_rule_for_everything_covers_nothing_unclear_when_there_are_exceptions(command: str) -> None:
    everything = parse_rule("Bash", "allow")
    assert not isinstance(judged(command, (everything, *RULES)), Allow)


def test_a_rule_for_everything_is_for_everything() -> None:
    assert isinstance(judged("x=1; for i in a; do eval $i; done", (parse_rule("Bash", "allow"),)), Allow)


def test_what_cannot_be_parsed_is_not_allowed_even_by_a_rule_for_everything() -> None:
    assert isinstance(judged("ls 'x", (parse_rule("Bash", "allow"),)), Ask)


def test_exactly_what_the_user_wrote_is_allowed() -> None:
    command = "FOO=1 make test > out.txt; echo $?"
    assert isinstance(judged(command, (parse_rule(f"Bash({command})", "allow"),)), Allow)
    assert not isinstance(judged(command + "; x", (parse_rule(f"Bash({command})", "allow"),)), Allow)


SIGNS = [*"(){}<>|&;#'`$\\\"", "\n", "&&", "$(", "<<E", "E", "if", "fi", "$x"]
words = st.lists(st.sampled_from(["git diff", "ls", "touch x", *SIGNS]), max_size=8)


@settings(max_examples=100, deadline=None)
@given(words)
def test_nothing_that_bash_would_run_is_overlooked(pieces: list[str]) -> None:
    """Whatever is allowed runs, by bash's own account, nothing but allowed programs."""
    command = " ".join(pieces)
    rules = (parse_rule("Bash(git diff:*)", "allow"), parse_rule("Bash(ls:*)", "allow"))
    if isinstance(judged(command, rules), Allow) and shutil.which("bash"):
        traced = subprocess.run(
            ["bash", "--norc", "-c", f"set -x; git() {{ :; }}; ls() {{ :; }}; touch() {{ echo TOUCHED; }}\n{command}"],
            capture_output=True,
            text=True,
            timeout=10,
        )
        assert "TOUCHED" not in traced.stdout


@pytest.mark.parametrize("text", ["echo {🎉..}", "{\U00105c74", "cat <<E\n{𝄞\nE", "{\ud800", "\x01ffffffffff\x02"])
def test_what_the_parser_cannot_take_does_not_end_ra(text: str) -> None:
    assert parse(text).unclear != ""


def test_words_stay_as_they_were_written() -> None:
    assert [part.words for part in parse("café 'naïve 🎉' \"日本\" x").parts] == [("café", "naïve 🎉", "日本", "x")]
    assert judged("echo 日本 🎉", (parse_rule("Bash(echo 日本:*)", "allow"),)) == Allow(
        "the rule allow Bash(echo 日本:*)", outside=True
    )


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_judged_without_a_crash(text: str) -> None:
    script = parse(text)
    assert isinstance(script.unclear, str)
    assert not isinstance(judged(text), Allow) or text.strip() == "" or not script.unclear
