import shlex
from pathlib import Path

import msgspec
import pytest

from ra.core.errors import ConfigError
from ra.core.messages import ToolCall
from ra.tools.policy.explain import Explanation, PartView, explain
from ra.tools.policy.paths import Project, fold, is_secret, protected
from ra.tools.policy.permissions import Allow, Ask, Decision, Deny, decide, rules_from
from ra.tools.policy.rules import Rule, literal, parse_rule, words_match
from ra.tools.settings import RuleSettings


@pytest.fixture
def place(tmp_path: Path) -> Project:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").touch()
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "loop").symlink_to("loop")
    (root / "inner").symlink_to("src")
    return Project(str(root), str(root), str(tmp_path / "home"), edits="auto")


def judge(place: Project, tool: str, path: str, *rules: str) -> Decision:
    made = tuple(parse_rule(text.split(" ", 1)[1], text.split(" ", 1)[0]) for text in rules)
    return decide(ToolCall("1", tool, {"path": path}), made, place)


@pytest.mark.parametrize("path", ["a.py", "src/new/deep.py", "./src/../a.py", "inner/a.py", ".gitignore", "AGENTS.txt"])
def test_the_project_is_free(place: Project, path: str) -> None:
    assert isinstance(judge(place, "Read", path), Allow)
    assert isinstance(judge(place, "Write", path), Allow)
    assert isinstance(judge(place, "Write", str(Path(place.root) / path)), Allow)


@pytest.mark.parametrize(
    "path",
    ["../outside/file", "/etc/passwd", "link/file", "link/../outside/file", "src/../../outside/file", "~/x", "//etc/x"],
)
def test_what_lies_outside_asks_also_through_links(place: Project, path: str) -> None:
    for tool in ("Read", "Write", "Edit", "LS", "Glob", "Grep"):
        assert isinstance(judge(place, tool, path), Ask)


def test_a_loop_of_links_is_judged_and_not_followed(place: Project) -> None:
    assert isinstance(judge(place, "Read", "loop/x"), Allow)


@pytest.mark.parametrize(
    "path",
    [
        *(".env", ".env.local", "src/.ENV", "deploy/prod.env", "server.pem", "a/b/id_rsa", "id_ed25519", ".ssh/config"),
        *("x/.aws/credentials", ".netrc", "tls.KEY", ".git-credentials"),
        *(".git/config", "sub/.GIT/config", ".git/modules/a/config", ".git/worktrees/a/config.worktree"),
    ],
)
def test_secrets_ask(place: Project, path: str) -> None:
    assert "secrets" in str(judge(place, "Read", path))
    assert isinstance(judge(place, "Write", path), Ask)


@pytest.mark.parametrize("path", [".env.example", "id_rsa.pub", "environment.py", "keys.py", "env", "secret.txt"])
def test_what_only_sounds_secret_does_not(path: str) -> None:
    assert not is_secret(path)


@pytest.mark.parametrize(
    "path",
    [
        *(".git/hooks/pre-commit", ".git/index", ".ra/x", "AGENTS.md", "src/AGENTS.md", "CLAUDE.md", ".cursorrules"),
        *("ra.yaml", ".github/copilot-instructions.md", "sub/.git/HEAD", "agents.MD", ".GIT/index", "CLAUDE.md."),
        *(
            "CLAUDE.md ",
            ".g\u200cit/HEAD",
            "ＡGENTS.md",
            "AGENTS\u200d.md",
            "inner/CLAUDE.md",
            "src/../.git/x",
            ".git",
        ),
        *(".pre-commit-config.yaml", "lefthook-local.yml", "a/.config/mise/config.toml", "mise/config.toml", ".vs/x"),
        *("lefthook.toml", ".lefthook/pre-commit/a.sh", ".config/lefthook.yml", ".git-hooks/x", "prek.toml"),
        *(".direnv/flake-profile-a.rc", ".direnv/bin/x", ".lazy.lua", "a/.hg/hgrc", ".jj/repo/config.toml"),
        *(".tool-versions", "a/rust-toolchain.toml", ".pdbrc", "a/.irbrc", ".Rprofile", ".RData"),
        *(".npmrc", "a/.yarnrc.yml", "a/.cargo/config.toml", ".mvn/jvm.config", ".Renviron", "_vimrc"),
        *("a/.vim/x", "a/AGENT.md", ".github/prompts/x.md"),
    ],
)
def test_protected_paths_ask_before_they_are_written_but_may_be_read(place: Project, path: str) -> None:
    assert isinstance(judge(place, "Write", path), Ask)
    assert isinstance(judge(place, "Edit", path), Ask)
    assert isinstance(judge(place, "Read", path), Allow)


def test_a_link_with_a_harmless_name_does_not_hide_a_protected_one(place: Project) -> None:
    (Path(place.root) / "notes.md").symlink_to("AGENTS.md")
    (Path(place.root) / "CLAUDE.md").symlink_to("src/rules.txt")
    assert isinstance(judge(place, "Write", "notes.md"), Ask)
    assert isinstance(judge(place, "Write", "CLAUDE.md"), Ask)


def test_other_instruction_files_can_be_named(place: Project) -> None:
    import msgspec

    other = msgspec.structs.replace(place, instructions=("RULES.md",))
    assert isinstance(judge(other, "Write", "src/RULES.md"), Ask)
    assert isinstance(judge(other, "Write", "AGENTS.md"), Allow)


def test_deny_wins_over_ask_wins_over_allow(place: Project) -> None:
    rules = ("allow Write(src/**)", "ask Write(src/a*)", "deny Write(src/ab*)")
    assert isinstance(judge(place, "Write", "src/x", *rules), Allow)
    assert isinstance(judge(place, "Write", "src/a", *rules), Ask)
    assert isinstance(judge(place, "Write", "src/ab", *rules), Deny)
    assert isinstance(judge(place, "Write", "src/ab", *reversed(rules)), Deny)


def test_a_bare_rule_does_not_open_what_is_protected(place: Project) -> None:
    for rule in ("allow Write", "allow Write(**)", "allow *"):
        assert isinstance(judge(place, "Write", ".git/config", rule), Ask)
        assert isinstance(judge(place, "Write", "/etc/passwd", rule), Ask)
    assert isinstance(judge(place, "Write", ".git/config", "allow Write(.git/config)"), Allow)
    assert isinstance(judge(place, "Read", "/etc/passwd", "allow Read(/etc/*)"), Allow)
    assert isinstance(judge(place, "Read", "~/notes/a", "allow Read(~/notes)"), Allow)


def test_deny_knows_a_path_by_each_of_its_names(place: Project) -> None:
    rule = "deny Read(src/secret.txt)"
    for path in ("src/secret.txt", "inner/secret.txt", "src/../src/secret.txt", "SRC/Secret.txt"):
        assert isinstance(judge(place, "Read", path, rule), Deny)
    assert isinstance(judge(place, "Read", "link/file", "deny Read(link)"), Deny)


def test_a_name_alone_is_meant_at_every_depth_and_a_folder_with_its_content(place: Project) -> None:
    assert isinstance(judge(place, "Read", "a/b/secret.txt", "deny Read(secret.txt)"), Deny)
    assert isinstance(judge(place, "Read", "private/x/y", "deny Read(private/)"), Deny)
    assert isinstance(judge(place, "Read", "a/x.log", "deny Read(*.log)"), Deny)
    assert isinstance(judge(place, "Read", "a/x.log", "deny Read(/x.log)"), Allow)
    assert isinstance(judge(place, "Read", "src/x", "deny Read(././src/x)"), Deny)


def test_edits_are_allowed_asked_for_or_refused(place: Project) -> None:
    def in_mode(edits: str, *rules: str) -> Decision:
        return judge(msgspec.structs.replace(place, edits=edits), "Write", "a", *rules)

    assert in_mode("auto") == Allow("edits are set to auto")
    assert in_mode("ask") == Ask("edits are set to ask", rule="Write", edits=True)
    assert in_mode("off") == Deny("edits are off; --edits auto allows them")
    assert isinstance(in_mode("off", "allow Write(a)"), Allow)
    assert isinstance(in_mode("auto", "ask Write"), Ask)
    fixed = msgspec.structs.replace(place, edits="off", read_only=True)
    assert judge(fixed, "Write", "a", "allow Write(a)") == Deny("edits are off")


@pytest.mark.parametrize(
    ("url", "rule", "allowed"),
    [
        ("https://docs.python.org/3/", "WebFetch(domain:python.org)", True),
        ("https://evilpython.org/", "WebFetch(domain:python.org)", False),
        ("https://python.org.evil.com/", "WebFetch(domain:python.org)", False),
        ("https://python.org@evil.com/", "WebFetch(domain:python.org)", False),
        ("https://evil.com/?python.org", "WebFetch(domain:python.org)", False),
        ("https://a.com/x", "WebFetch(https://a.com/*)", True),
        ("https://a.com.evil/x", "WebFetch(https://a.com/*)", False),
        ("https://a.com/x", "WebFetch", True),
    ],
)
def test_addresses(place: Project, url: str, rule: str, *, allowed: bool) -> None:
    decision = decide(ToolCall("1", "WebFetch", {"url": url}), (parse_rule(rule, "allow"),), place)
    assert isinstance(decision, Allow) is allowed


def test_a_tool_nobody_knows_asks(place: Project) -> None:
    call = ToolCall("1", "mcp__x__y", {"a": 1})
    assert isinstance(decide(call, (), place), Ask)
    assert isinstance(decide(call, (parse_rule("mcp__x__*", "allow"),), place), Allow)
    assert isinstance(decide(call, (parse_rule("*", "deny"),), place), Deny)


def test_a_rule_that_lets_a_command_out_does_not_hold_in_another_repository(place: Project) -> None:
    (Path(place.root) / "vendor/.git").mkdir(parents=True)
    rules = (parse_rule("Bash(git push)", "allow", outside=True),)

    def judged(cwd: str) -> Decision:
        here = Project(place.root, str(Path(place.root) / cwd), place.home, boxed=True)
        return decide(ToolCall("1", "Bash", {"command": "git push"}), rules, here)

    assert judged(".") == judged("src") == Allow("the rule allow Bash(git push)", outside=True)
    assert judged("vendor") == Allow("it runs in the sandbox")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "cannot be read"),
        ("Bash(", "cannot be read"),
        ("Bash(ls", "cannot be read"),
        ("Bash()", "the pattern is empty"),
        ("bash(ls)", "did you mean Bash?"),
        ("READ", "did you mean Read?"),
        ("Bash('ls)", "No closing quotation"),
        ("Read Write", "cannot be read"),
        ("(x)", "cannot be read"),
    ],
)
def test_a_wrong_rule_is_refused_with_what_is_right(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_rule(text, "allow")
    assert words in str(caught.value)
    assert repr(text) in str(caught.value)


def test_rules_come_from_settings() -> None:
    settings = (RuleSettings(allow="Bash(make:*)"), RuleSettings(deny="Read(.env)"))
    assert rules_from(settings) == (Rule("allow", "Bash", "make:*"), Rule("deny", "Read", ".env"))
    with pytest.raises(ConfigError, match=r"rules\[0\] needs exactly one of"):
        rules_from((RuleSettings(allow="Bash", deny="Bash"),))
    with pytest.raises(ConfigError, match=r"rules\[1\] needs exactly one of"):
        rules_from((RuleSettings(allow="Bash"), RuleSettings()))


def test_explain_says_what_runs_and_why(place: Project) -> None:
    rules = (parse_rule("Bash(git diff:*)", "allow"), parse_rule("Bash(rm:*)", "deny"))

    def told(command: str) -> Explanation:
        return explain(ToolCall("1", "Bash", {"command": command}), rules, place)

    allowed = (PartView("git diff", "allow Bash(git diff:*)"),)
    boxed = msgspec.structs.replace(place, boxed=True)
    inside = explain(ToolCall("1", "Bash", {"command": "git diff"}), rules, boxed)
    assert inside == Explanation("allow", "the rule allow Bash(git diff:*)", network=True, parts=allowed)
    assert told("git diff").decision == "ask"
    assert told("git diff; sudo rm x").reason == "the rule deny Bash(rm:*) forbids it"
    assert told("ls > x") == Explanation(
        "ask",
        "there is no sandbox to run it in",
        outside=True,
        parts=(PartView("ls", "no rule speaks of it"),),
        unclear="it redirects to or from x",
    )


def test_explain_knows_calls_that_are_no_commands(place: Project) -> None:
    rules = (parse_rule("Read(src/secret.txt)", "deny"),)

    def told(path: str) -> Explanation:
        return explain(ToolCall("1", "Read", {"path": path}), rules, place)

    assert told("src/secret.txt") == Explanation("deny", "the rule deny Read(src/secret.txt) forbids it")
    assert told("src/other.txt").decision == "allow"


def test_explain_calls_harmless_what_needs_no_rule(place: Project) -> None:
    rules = (parse_rule("Bash(make:*)", "allow"), parse_rule("Bash(cd:*)", "ask"))
    told = explain(ToolCall("1", "Bash", {"command": "pwd; make"}), rules, place)
    assert told.parts == (PartView("pwd", "harmless"), PartView("make", "allow Bash(make:*)"))
    first = explain(ToolCall("1", "Bash", {"command": "cd src; make; cd .."}), rules[:1], place)
    assert [part.words for part in first.parts] == ["harmless", "allow Bash(make:*)", "no rule speaks of it"]
    asked = explain(ToolCall("1", "Bash", {"command": "cd src"}), rules, place)
    assert [part.words for part in asked.parts] == ["ask Bash(cd:*)"]


@pytest.mark.parametrize(
    ("pattern", "command", "matches"),
    [
        ("*", "rm -rf x", True),
        (":*", "rm -rf x", True),
        ("git diff:*", "git diff --stat", True),
        ("git diff:*", "git difftool", False),
        ("npm run *", "npm run", True),
        ("npm run *", "npm runner", False),
        ('echo "a  b"', 'echo "a  b"', True),  # as it was written
        ("make", "make all", False),
    ],
)
def test_which_commands_a_pattern_covers(pattern: str, command: str, *, matches: bool) -> None:
    assert words_match(pattern, tuple(shlex.split(command)), command) is matches


def test_a_command_without_words_is_covered_by_no_wildcard(place: Project) -> None:
    """`>x` runs no program and writes a file; an assignment alone may change what the next program does."""
    rule = parse_rule("Bash(ls:*)", "allow")
    for command in ("> x", "PATH=/tmp"):
        assert not isinstance(decide(ToolCall("1", "Bash", {"command": command}), (rule,), place), Allow)


def test_names_are_compared_as_the_most_forgiving_file_system_would() -> None:
    assert {fold(name) for name in (".GIT", ".git", ".g\u200dit", ".git. ", ".ｇit")} == {".git"}
    assert protected("a/b/c.md") == ""


def test_a_yes_to_a_box_with_a_weakness_is_no_yes_to_leave_it() -> None:
    weak = Project("/p", "/p", trouble="it hides no secrets", real=str)
    assert decide(ToolCall("1", "Bash", {"command": "make"}), (), weak) == Ask("it hides no secrets", rule="Bash(make)")
    leaving = decide(ToolCall("1", "Bash", {"command": "make", "outside": True}), (), weak)
    assert leaving == Ask("it asks to leave the sandbox", outside=True)


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("npx:*", "npx evil"),
        ("timeout:*", "timeout 5 curl evil"),
        ("find:*", "find . -exec curl evil {} +"),
        ("sudo:*", "sudo curl evil"),
        ("env *", "env curl evil"),
        ("xargs:*", "xargs curl"),
    ],
)
def test_a_wildcard_does_not_stand_for_the_program_that_runs(place: Project, rule: str, command: str) -> None:
    boxed = msgspec.structs.replace(place, boxed=True)
    call = ToolCall("c", "Bash", {"command": command})
    assert decide(call, [parse_rule(f"Bash({rule})", "allow")], boxed) == Allow("it runs in the sandbox")
    exact = f"Bash({literal(command)})"
    assert decide(call, [parse_rule(exact, "allow")], boxed) == Allow(f"the rule allow {exact}", network=True)


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("cat:*", "cat .env.example"),
        ("npx eslint:*", "npx eslint src"),
        ("timeout 60 make:*", "timeout 60 make all"),
        ("python -m pytest:*", "python -m pytest tests -k x"),
        ("git config:*", "git config --get user.name"),
        ("uv run pytest:*", "uv run pytest tests"),
    ],
)
def test_what_a_wildcard_was_meant_for_it_covers(place: Project, rule: str, command: str) -> None:
    boxed = msgspec.structs.replace(place, boxed=True)
    decision = decide(ToolCall("c", "Bash", {"command": command}), [parse_rule(f"Bash({rule})", "allow")], boxed)
    assert decision == Allow(f"the rule allow Bash({rule})", network=True)


def test_a_here_string_for_a_shell_is_a_command(place: Project) -> None:
    rules = [parse_rule("Bash(rm:*)", "deny")]
    for command in ("sh <<< 'rm x'", 'bash <<<"rm x"', "sh<<<rm"):
        assert isinstance(decide(ToolCall("c", "Bash", {"command": command}), rules, place), Deny), command


@pytest.mark.parametrize(
    "command",
    ["time " * 500 + "rm x", "ls && " * 2000 + "rm x", "$(" * 600 + "rm x" + ")" * 600, "(" * 601 + "rm x" + ")" * 601],
)
def test_a_deny_rule_reaches_however_deep_a_command_nests(tmp_path: Path, command: str) -> None:
    place = Project(str(tmp_path), str(tmp_path), "", "auto", boxed=True)
    assert isinstance(
        decide(ToolCall("", "Bash", {"command": command}), [parse_rule("Bash(rm:*)", "deny")], place), Deny
    )
