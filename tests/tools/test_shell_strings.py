import itertools
import shlex
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ra.core.errors import ConfigError
from ra.core.messages import ToolCall
from ra.tools.policy.paths import Project
from ra.tools.policy.permissions import Allow, Ask, Decision, Deny, decide
from ra.tools.policy.rules import Rule, literal, parse_rule
from ra.tools.policy.shell import parse
from tests.tools.strings import BAD, GOOD, JOINS, SINGLE

ALLOWED = ("git diff:*", "git log:*", "npm run *", "ls:*", "cat:*", "find:*", "echo:*", "python -m pytest:*",
           "make test", "sort:*", "sed:*", "awk:*",
           "xargs:*", "timeout 60 make:*", "grep:*", "tar:*", "env:*")  # fmt: skip
DENIED = ("rm:*", "curl:*", "sudo:*", "git push:*")
RULES = tuple(parse_rule(f"Bash({text})", "allow") for text in ALLOWED)
RULES += tuple(parse_rule(f"Bash({text})", "deny") for text in DENIED)
CONTAINER = Project(
    "/nowhere/project", "/nowhere/project", "/home/u", container=True, real=lambda path: str(Path(path))
)
BOX = msgspec.structs.replace(CONTAINER, container=False, boxed=True)
NO_BOX = msgspec.structs.replace(BOX, boxed=False)
OPTIONS = [
    *SINGLE[SINGLE.index("git diff --output=/etc/x") : SINGLE.index("xargs touch")],
    "timeout 60 make -f x",
    "timeout 60 make SHELL=./x",
]


def judged(command: str, rules: tuple[Rule, ...] = RULES, place: Project = CONTAINER) -> Decision:
    return decide(ToolCall("1", "Bash", {"command": command}), rules, place)


def attacks() -> list[str]:
    return [join.format(good="git diff", bad=bad) for join, bad in itertools.product(JOINS, BAD)] + SINGLE


def test_there_are_enough_of_them() -> None:
    assert len(set(attacks())) > 400


@pytest.mark.parametrize("command", attacks())
def test_none_leaves_the_box_and_none_gets_the_network(command: str) -> None:
    decision = judged(command, place=BOX)
    assert isinstance(decision, Deny) or decision == Allow("it runs in the sandbox") or command in OPTIONS
    assert not getattr(decision, "outside", False)
    assert not isinstance(judged(command, place=NO_BOX), Allow)


@pytest.mark.parametrize(
    "command",
    ["! rm x", "! ! rm x", "ls && ! ! ! rm x", "! ! (rm x)", "! ! { rm x; }", "! ! if rm x; then ls; fi", "( ! rm x"],
)
def test_a_reserved_word_hides_no_command_from_a_rule_that_denies_it(command: str) -> None:
    assert isinstance(judged(command, place=BOX), Deny)


@pytest.mark.parametrize(
    "command",
    [
        *(
            "git 2>x push",
            "git >x push origin",
            "nohup 2>x rm y",
            "time 2> 'a b' \"rm\"\ty",
            "git {fd}>x push",
            "git &>x push",
        ),
        *("echo ${x:=`rm y`}", "echo `echo \\`rm y\\``", '$"rm" y', 'alias z="rm y"\nz', "alias z=rm", "git <x push"),
        *("git 2>/dev/null push", "git &>/dev/null push x", "git >&2 push", "{fd}>/dev/null git push"),
        *("git <<E push\nE", "hash -p /usr/bin/rm z", "compgen -C 'rm y' z", "complete -C rm z"),
        *("trap rm EXIT", "trap -- 'rm' DEBUG", "env -S'rm -rf y'", "mapfile -C rm -c 1 a", "readarray -C 'rm y #' a"),
    ],
)
def test_a_redirection_or_an_odd_quote_hides_no_command_from_a_rule_that_denies_it(command: str) -> None:
    assert isinstance(judged(command, place=BOX), Deny)


@pytest.mark.parametrize("command", ["echo 'git push' > x", 'git log > "rm x"', "ls >rm 2>&1", "git diff 2>&1 > push"])
def test_the_file_of_a_redirection_is_no_command(command: str) -> None:
    assert judged(command, place=BOX) == Allow("it runs in the sandbox")


@pytest.mark.parametrize("command", [*GOOD, "git diff --output=/etc/x", "sed -i s/a/b/ x", "sed 's|.*|sh x.sh|e' f"])
def test_what_the_rules_mean_has_the_network_and_stays_in_the_box(command: str) -> None:
    decision = judged(command, place=BOX)
    assert isinstance(decision, Allow)
    assert (decision.network, decision.outside) == (True, False)
    assert isinstance(judged(command), Allow)
    exact = command == "make test"
    assert isinstance(judged(command, place=NO_BOX), Allow if exact else Ask)


@pytest.mark.parametrize(
    "command",
    [
        "git diff --o*/home/u/.bashrc",
        "git diff x*",
        "git diff a?b",
        "git diff [a]b",
        "find d -exe* sh x.sh {} +",
        "sort f --out*/x",
        "ls src/*.py",
        "ls a{b,c}",
        "ls a{1..3}",
        "ls ~/x",
        "ls --x=~/y",
        "ls $HOME",
        'ls "$HOME"',
        "ls $(x)",
        "ls `x`",
        "ls a\\\\*",
        "git diff 'a'*",
        "git diff {'a',b}",
    ],
)
def test_a_word_that_is_not_literal_is_covered_by_no_rule(command: str) -> None:
    rules = (*RULES, parse_rule("Bash", "allow"), parse_rule(f"Bash({literal(command)})", "allow"))
    assert judged(command, rules[:-2], BOX) == Allow("it runs in the sandbox")
    for rule in rules[-2:]:
        assert judged(command, (rule,), BOX) == Allow("it runs in the sandbox")
    assert isinstance(judged(command, (rules[-1],), NO_BOX), Ask)


@pytest.mark.parametrize("command", ["find . -name '*.py'", "ls a\\*b", 'ls "a{b,c}"', "echo '$x' \"~\" 'a`b'"])
def test_what_is_quoted_is_literal(command: str) -> None:
    decision = judged(command, place=BOX)
    assert isinstance(decision, Allow)
    assert decision.network


def test_only_an_exact_rule_of_the_users_file_lets_a_command_out() -> None:
    out = parse_rule("Bash(docker compose up -d)", "allow", outside=True)
    assert judged("docker compose up -d", (out,), BOX) == Allow(f"the rule allow {out}", outside=True)
    for command in (
        "docker compose up",
        "docker compose up -d x",
        "docker compose up -d; ls",
        "docker compose up -d &",
    ):
        assert judged(command, (out,), BOX) == Allow("it runs in the sandbox")
    denied = parse_rule("Bash(docker:*)", "deny")
    assert isinstance(judged("docker compose up -d", (out, denied), BOX), Deny)
    for text in ("Bash", "Bash(docker:*)", "Bash(docker *)", "Read(x)"):
        with pytest.raises(ConfigError, match="exact words"):
            parse_rule(text, "allow", outside=True)
    with pytest.raises(ConfigError, match="exact words"):
        parse_rule("Bash(ls)", "deny", outside=True)


def test_an_allowed_command_that_wants_to_leave_is_asked_for() -> None:
    call = ToolCall("1", "Bash", {"command": "make test", "outside": True})
    asked = Ask("it asks to leave the sandbox", outside=True)
    for rule in ("Bash", "Bash(make test)", "Bash(make:*)"):
        assert decide(call, (parse_rule(rule, "allow"),), BOX) == asked


@pytest.mark.parametrize(
    "command", [c for c in SINGLE[SINGLE.index("rm x") : SINGLE.index("git diff 'x")] if c != "CURL x"]
)
def test_what_is_denied_is_denied_in_every_disguise(command: str) -> None:
    assert isinstance(judged(command), Deny)


@pytest.mark.parametrize(
    "command",
    [
        "bash -c '" * 2000,
        'bash -c "$(' * 50 + "ls" + ')"' * 50,
        "bash -c $(" * 700 + "ls" + ")" * 700,
    ],
)
def test_what_nests_so_deeply_that_it_would_be_read_for_minutes_is_denied(command: str) -> None:
    assert isinstance(judged(command, place=BOX), Deny)


@pytest.mark.parametrize(
    "command",
    [
        "r\\\nm x",
        "nice r\\\nm x",
        "ls; g\\\nit pu\\\nsh",
        "echo $(r\\\nm x)",
        ". <(echo 'rm x')",
        "source /dev/stdin <<< 'rm x'",
        "bash <(echo 'rm x')",
        "echo 'rm x' | . /dev/stdin",
        ". <(echo 'nohup r\"m\" x !')",
        "coproc N { $'rm' x; }",
        "find . -exec docker \\;",
        "find . -exec $'docker' \\;",
    ],
)
def test_a_word_over_two_lines_and_a_script_from_a_descriptor_hide_nothing(command: str) -> None:
    assert isinstance(judged(command, (*RULES, parse_rule("Bash(docker)", "deny")), BOX), Deny)


@pytest.mark.parametrize("levels", range(1, 9))
def test_a_denied_program_is_found_at_any_depth_of_scripts(levels: int) -> None:
    command = "rm x"
    for _ in range(levels):
        command = f"bash -c {shlex.quote(command)}"
    everything = parse_rule("Bash", "allow")
    assert isinstance(judged(command, (everything, *RULES)), Deny)
    assert isinstance(judged(command, place=BOX), Deny)


@pytest.mark.parametrize(
    "command",
    [
        "eval $x",
        "$x",
        "git diff 'x",
        "a=rm; $a x",
        "`x`",
        "base64 -d x | sh",
        "bash -c '$(echo r)m x'",
        "env sh -c '$0' rm",
    ],
)
def test_a_rule_for_everything_covers_nothing_unclear_when_there_are_exceptions(command: str) -> None:
    everything = parse_rule("Bash", "allow")
    assert not isinstance(judged(command, (everything, *RULES)), Allow)


def test_a_rule_for_everything_is_for_everything() -> None:
    assert isinstance(judged("x=1; for i in a; do eval $i; done", (parse_rule("Bash", "allow"),)), Allow)


def test_what_cannot_be_parsed_is_not_allowed_even_by_a_rule_for_everything() -> None:
    assert isinstance(judged("ls 'x", (parse_rule("Bash", "allow"),)), Ask)


def test_exactly_what_the_user_wrote_is_allowed() -> None:
    command = "make test; echo done"
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
