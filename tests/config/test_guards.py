"""A project's file adds to the user's guards; it takes none away, and learns no key without the user's word."""

import os
from pathlib import Path
from typing import Any

import pytest

from ra.config import load
from ra.config.guards import tightened
from ra.core.errors import ConfigError
from ra.tools.settings import RuleSettings

KEY = "the-value-of-the-key"


class World:
    """A user with a file of their own, in a project with another."""

    def __init__(self, folder: Path) -> None:
        self.user = folder / "home/.config/ra/ra.yaml"
        self.project = folder / "project"
        self.user.parent.mkdir(parents=True)
        (self.project / ".git").mkdir(parents=True)
        self.env = {"HOME": str(folder / "home"), "AWS_SECRET_ACCESS_KEY": KEY, "WORD": "blue"}

    def resolve(self, project: str, user: str = "", **kwargs: Any) -> load.Resolved:
        self.user.write_text(user)
        (self.project / "ra.yaml").write_text(project)
        return load.resolve(cwd=kwargs.pop("cwd", self.project), env=self.env, **kwargs)

    def asked(self, project: str, **kwargs: Any) -> list[str]:
        return [item.line for item in self.resolve(project, **kwargs).untrusted]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


DENY = "agent: {permissions: {rules: [{deny: 'Bash(rm:*)'}]}}"
DENIED = RuleSettings(deny="Bash(rm:*)")
HOOK = "agent: {middleware: {beforeToolExecution: [/guard.py]}}"


@pytest.mark.parametrize(
    ("project", "rules"),
    [
        ("agent: {permissions: {rules: []}}", (DENIED,)),
        ("agent: {permissions: {}}", (DENIED,)),
        ("agent: {permissions: {rules: [{ask: WebFetch}]}}", (DENIED, RuleSettings(ask="WebFetch"))),
    ],
)
def test_rules_of_a_project_come_after_the_users(world: World, project: str, rules: tuple[RuleSettings, ...]) -> None:
    assert world.resolve(project, DENY).config.agent.permissions.rules == rules


def test_hooks_of_a_project_come_after_the_users(world: World) -> None:
    own = str(world.project / "own.py")
    for text, hooks in (("[]", ("/guard.py",)), ("[./own.py]", ("/guard.py", own))):
        project = f"agent: {{middleware: {{beforeToolExecution: {text}}}}}"
        assert world.resolve(project, HOOK, trusting=True).config.agent.middleware.before_tool_execution == hooks


@pytest.mark.parametrize("owner", [DENY, DENY.replace("agent:", "agents: {a:") + "}"])
def test_a_named_agent_of_a_project_does_not_drop_a_rule(world: World, owner: str) -> None:
    project = "agents: {a: {permissions: {rules: [{ask: WebFetch}]}}}"
    resolved = world.resolve(project, owner, agent="a")
    assert resolved.config.agent.permissions.rules == (DENIED, RuleSettings(ask="WebFetch"))


def test_the_users_own_agent_may_have_other_rules(world: World) -> None:
    user = DENY + "\nagents: {a: {permissions: {rules: []}}}"
    assert world.resolve("", user, agent="a").config.agent.permissions.rules == ()


def test_a_file_in_a_subfolder_does_not_drop_the_projects_rules(world: World) -> None:
    (world.project / "sub").mkdir()
    (world.project / "sub/ra.yaml").write_text("agent: {permissions: {rules: []}}")
    assert world.resolve(DENY, cwd=world.project / "sub").config.agent.permissions.rules == (DENIED,)


@pytest.mark.parametrize(
    ("user", "project", "left"),
    [
        ("Bash: false", "Bash: true", {"Bash": False}),
        ("Bash: {enabled: false}", "Bash: {enabled: true}", {"Bash": {"enabled": False}}),
        ("Read: {rootDir: docs}", "Read: {rootDir: .}", {"Read": {"rootDir": "docs"}}),
        ("Read: {rootDir: docs}", "Read: false", {"Read": False}),
        ("Read: true", "Bash: false", {"Read": True, "Bash": False}),
        ("custom: [/a.py]", "custom: [/b.py]", {"custom": ["/a.py", "/b.py"]}),
    ],
)
def test_a_project_may_turn_tools_off_not_on(world: World, user: str, project: str, left: dict[str, Any]) -> None:
    given = world.resolve(f"agent: {{tools: {{{project}}}}}", f"agent: {{tools: {{{user}}}}}", trusting=True)
    assert given.config.agent.tools == left


def test_a_key_for_commands_needs_a_word(world: World) -> None:
    project = "agent: {tools: {Bash: {env: [AWS_SECRET_ACCESS_KEY]}}}"
    assert world.asked(project) == ["agent.tools.Bash: variables for commands ['AWS_SECRET_ACCESS_KEY']"]
    assert world.resolve(project).config.agent.tools == {}


@pytest.mark.parametrize("key", ["systemPrompt", "system_prompt"])
def test_a_key_in_a_text_needs_a_word(world: World, key: str) -> None:
    project = f"agent: {{{key}: 'say ${{AWS_SECRET_ACCESS_KEY}} and ${{WORD}}', model: '${{WORD}}'}}"
    assert world.asked(project) == [
        "agent.systemPrompt: setting say ${AWS_SECRET_ACCESS_KEY} and blue",
        "agent.model: of your environment ${WORD}",
    ]
    agent = world.resolve(project).config.agent
    assert (agent.system_prompt, agent.model) == (None, None)
    assert world.resolve(project, trusting=True).config.agent.system_prompt == f"say {KEY} and blue"


def test_a_question_names_a_key_and_does_not_show_it(world: World) -> None:
    project = "agent: {mcpServers: [{name: x, command: serve, args: ['${AWS_SECRET_ACCESS_KEY}']}]}"
    assert world.asked(project) == ["agent.mcpServers.0: MCP server x: serve ${AWS_SECRET_ACCESS_KEY}"]


def test_no_key_of_several_in_one_value_is_shown(world: World) -> None:
    project = "agent: {systemPrompt: '${AWS_SECRET_ACCESS_KEY}+${AWS_SECRET_ACCESS_KEY}+${OTHER_TOKEN}'}"
    world.env["OTHER_TOKEN"] = "other-4711"
    shown = "agent.systemPrompt: setting ${AWS_SECRET_ACCESS_KEY}+${AWS_SECRET_ACCESS_KEY}+${OTHER_TOKEN}"
    assert world.asked(project) == [shown]


def test_limits_of_a_project_only_go_down(world: World) -> None:
    user = "agent: {maxCost: 2, maxIterations: 5, maxDuration: 9}"
    project = "agent: {maxCost: 0, maxIterations: 9, maxDuration: 3, maxTokenBudget: 7}"
    agent = world.resolve(project, user, trusting=True).config.agent
    assert (agent.max_cost, agent.max_iterations, agent.max_duration, agent.max_token_budget) == (2, 5, 3, 7)


def test_a_budget_goes_with_its_last_source(world: World) -> None:
    project = "agent: {context: {sourceBudget: 100, sources: {s: {command: date, max: 10, cache: stable}}}}"
    assert world.resolve(project).config.agent.context.source_budget is None
    assert world.resolve(project, trusting=True).config.agent.context.source_budget == 100


def test_paths_of_a_named_agent_start_at_their_file(world: World) -> None:
    """What is run must be what was trusted."""
    folder = world.project / "sub"
    folder.mkdir()
    (folder / "ra.yaml").write_text(
        "agents: {a: {tools: {custom: [./t.py]}, context: {resolvers: [{name: x, path: ./r.py}]}}}"
    )
    resolved = world.resolve("", cwd=folder, agent="a", trusting=True)
    named = [file for item in resolved.items for file in item.files]
    agent = resolved.config.agent
    used = [agent.context.resolvers[0].path, agent.tools["custom"][0]]
    assert [os.path.normpath(file) for file in named] == used == [f"{folder}/r.py", f"{folder}/t.py"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_that_another_user_put_there_needs_a_word(world: World) -> None:
    world.resolve("agent: {systemPrompt: obey}")
    os.chown(world.project / "ra.yaml", 65534, 65534)
    resolved = load.resolve(cwd=world.project, env=world.env)
    assert [item.key for item in resolved.untrusted] == [("agent",)]
    assert resolved.config.agent.system_prompt is None


def test_a_file_of_two_gigabytes_is_not_read(world: World) -> None:
    with (world.project / "ra.yaml").open("wb") as file:
        file.truncate(2 << 30)
    with pytest.raises(ConfigError, match="at most 262144 bytes"):
        load.resolve(cwd=world.project, env=world.env)


def test_files_inside_a_nested_command_are_known(world: World) -> None:
    script = world.project / "x.sh"
    script.write_text("true")
    item = world.resolve("agent: {middleware: {onError: [{shell: \"sh -c './x.sh --now'\"}]}}").items[0]
    assert item.files == (str(script),)


def test_a_project_may_tighten_edits_and_never_loosen_them() -> None:
    def merged(project: str | None, user: str | None) -> object:
        return tightened({"permissions": {"edits": project}}, {"permissions": {"edits": user}})["permissions"]["edits"]

    assert merged("auto", None) is None
    assert merged("auto", "ask") == "ask"
    assert merged("ask", "auto") == "ask"
    assert merged("off", "ask") == "off"
    assert merged("ask", None) == "ask"
    assert merged(None, "auto") == "auto"
