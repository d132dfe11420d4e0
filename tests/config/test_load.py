"""Layers, origins, interpolation: what the user asked for is what is in force."""

import os
import pwd
import stat
from pathlib import Path

import pytest

from ra.config import load, paths, reference, show, yamlfile
from ra.config.edit import changed_text
from ra.config.settings import Config
from ra.core.errors import ConfigError, UsageError

ENV = {"HOME": "/nonexistent", "N": "7", "EMPTY": "", "WORD": "blue"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    return tmp_path


def resolve(project: Path, text: str = "", **kwargs: object) -> load.Resolved:
    """As a project that the user trusts."""
    (project / "ra.yaml").write_text(text)
    return load.resolve(cwd=project, env=ENV, **{"trusting": True, **kwargs})


def test_nothing_configured_is_the_defaults(project: Path) -> None:
    assert load.resolve(cwd=project, env=ENV).config == Config()


def test_the_example_file_is_made_from_the_defaults() -> None:
    text = Path("ra.yaml.example").read_text()
    assert text == reference.example()
    assert load.msgspec.convert(yamlfile.parse(text, name="x", env={}).data, Config) == Config()


def test_every_key_is_explained() -> None:
    keys = {".".join(path) for path, _, _ in reference.leaves()}
    assert {key for key in keys if not reference.explained(tuple(key.split(".")))} == set()
    assert set(reference.EXPLAINED) - keys == set()


def test_later_layers_win_and_each_value_knows_its_origin(project: Path, tmp_path: Path) -> None:
    user = tmp_path / "home/.config/ra/ra.yaml"
    user.parent.mkdir(parents=True)
    user.write_text("agent:\n  model: from-user\n  maxCost: 3\n  maxIterations: 1\n")
    (project / "ra.yaml").write_text("agent:\n  maxCost: 2\n  max_iterations: 2\n")
    extra = tmp_path / "extra.yaml"
    extra.write_text("agent: {maxIterations: 3}")
    resolved = load.resolve(
        cwd=project,
        env={"HOME": str(tmp_path / "home")},
        config_file=extra,
        assignments=["agent.thinking=high"],
        flags={"agent.transport": ("http", "--transport")},
    )
    agent = resolved.config.agent
    assert (agent.model, agent.max_cost, agent.max_iterations) == ("from-user", 2, 3)
    assert (agent.thinking, agent.transport) == ("high", "http")
    told = {key: str(resolved.origins["agent", key]) for key in ("model", "maxCost", "maxIterations", "thinking")}
    assert told == {
        "model": f"{user}:2",
        "maxCost": f"{project}/ra.yaml:2",
        "maxIterations": f"{extra}:1",
        "thinking": "--set agent.thinking",
    }


def test_nearer_project_files_win_up_to_the_git_root(project: Path) -> None:
    (project / "ra.yaml").write_text("agent: {model: outer, maxCost: 1}")
    inner = project / "a/b"
    inner.mkdir(parents=True)
    (inner / "ra.yaml").write_text("agent: {model: inner}")
    agent = load.resolve(cwd=inner, env=ENV).config.agent
    assert (agent.model, agent.max_cost) == ("inner", 1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${WORD}", "blue"),
        ("${NOPE:-red}", "red"),
        ("${EMPTY:-red}", "red"),
        ("${EMPTY-red}", ""),
        ('"a ${WORD} b"', "a blue b"),
    ],
)
def test_variables_are_filled_in(project: Path, text: str, value: str) -> None:
    assert resolve(project, f"agent: {{systemPrompt: {text}}}").config.agent.system_prompt == (value or None)
    assert resolve(project, f"agent:\n  systemPrompt: {text}").config.agent.system_prompt == (value or None)


def test_a_variable_may_stand_for_a_number(project: Path) -> None:
    assert resolve(project, "agent:\n  maxIterations: ${N}").config.agent.max_iterations == 7


@pytest.mark.parametrize("text", ["off", "false", '"off"'])
def test_a_bare_off_means_off(project: Path, text: str) -> None:
    assert resolve(project, f"agent: {{thinking: {text}}}").config.agent.thinking == "off"
    assert resolve(project, assignments=[f"agent.thinking={text}"]).config.agent.thinking == "off"


def test_a_named_agent_lies_over_agent_and_session_but_under_flags(project: Path) -> None:
    text = "agents: {dev: {model: small, contextStrategy: planner, max_cost: 2, systemPrompt: Be brief.}}"
    resolved = resolve(project, text, agent="dev", flags={"agent.model": ("big", "--model")})
    assert resolved.config.agent.model == "big"
    assert (resolved.config.agent.system_prompt, resolved.config.agent.max_cost) == ("Be brief.", 2)
    assert resolved.config.session.context_strategy == "planner"


def test_an_unknown_agent_is_named_with_the_known_ones(project: Path) -> None:
    with pytest.raises(UsageError, match=r"No agent is named 'ops'. Known agents: dev."):
        resolve(project, "agents: {dev: {model: x}}", agent="ops")


def test_secrets_are_not_shown(project: Path) -> None:
    resolved = load.resolve(
        cwd=project,
        env=ENV,
        assignments=[
            "app.providers.anthropic.apiKey=sk-ant-secret",
            "app.providers.openai.headers={X-Auth: hidden-value}",
            "agent.mcpServers=[{name: a, command: c, env: {PASSWORD: hidden-value}}]",
        ],
    )
    text = show.shown(resolved)
    assert "sk-ant-secret" not in text
    assert "hidden-value" not in text
    assert yamlfile.parse(text, name="shown", env={}).data["app"]["providers"]["anthropic"]["apiKey"] == "[redacted]"


MISTAKES = {
    "agent:\n  modle: x": "2: unknown key agent.modle; did you mean model?",
    "agent:\n  thinking: huge": '2: agent.thinking is "huge"; it must be one of off, low, medium, high, adaptive.',
    "agent: [1]": "1: agent is [1]; it must be a mapping.",
    "agent:\n  maxIterations: -1": "2: agent.maxIterations is -1; it must be a whole number at least 0.",
    "agent:\n  maxIterations: 1.5": "2: agent.maxIterations is 1.5; it must be a whole number at least 0.",
    "agent:\n  maxCost: cheap": '2: agent.maxCost is "cheap"; it must be a number at least 0.',
    "agent:\n  model: 4": "2: agent.model is 4; it must be text or null.",
    "agent:\n  provider: antropic": '2: agent.provider is "antropic"; it must be one of anthropic, openai,',
    "agent:\n  transport: grpc": '2: agent.transport is "grpc"; it must be one of auto, http, sdk.',
    "agent:\n  parallelToolCalls: maybe": '2: agent.parallelToolCalls is "maybe"; it must be true or false.',
    "agent:\n  toolTimeout: 0": "2: agent.toolTimeout is 0; it must be a number above 0.",
    "agent:\n  compaction:\n    threshold: 5": "3: agent.compaction.threshold is 5; it must be a number above 0 and at",
    "agent:\n  compaction: {strategy: trunc}": '2: agent.compaction.strategy is "trunc"; it must be one of truncate,',
    "agent:\n  compaction: true": "2: agent.compaction is true; it must be a mapping.",
    "agent:\n  compaction: {contextWindow: big}": '2: agent.compaction.contextWindow is "big"; it must be a whole',
    "agent:\n  context: {patterns: AGENTS.md}": '2: agent.context.patterns is "AGENTS.md"; it must be a list',
    "agent:\n  context: {sources: {docs: {cache: hot}}}": '2: agent.context.sources.docs.cache is "hot"; it must be',
    "agent:\n  context: {resolvers: [{path: x}]}": "2: agent.context.resolvers.0 needs name.",
    "agent:\n  middleware: {beforeModelCal: []}": "2: unknown key agent.middleware.beforeModelCal; did you mean before",
    "agent:\n  middleware: {onError: [{shel: x}]}": "2: unknown key agent.middleware.onError.0.shel; did you mean",
    "agent:\n  permissions: {rules: [{allow: 3}]}": "2: agent.permissions.rules.0.allow is 3; it must be text or null.",
    "agent:\n  mcpServers: [{command: x}]": "2: agent.mcpServers.0 needs name.",
    "session:\n  staleMinutes: 0": "2: session.staleMinutes is 0; it must be a number at least 1 and at most 1440 or",
    "session:\n  maxTurnsPerSession: 500": "2: session.maxTurnsPerSession is 500; it must be a whole number at least 2",
    "session:\n  layers: {histroy: 3}": "2: unknown key session.layers.histroy; did you mean history?",
    "agents:\n  dev: {systemPromt: x}": "2: unknown key agents.dev.systemPromt; did you mean systemPrompt?",
    "agents:\n  dev: 3": "2: agents.dev is 3; it must be a mapping.",
    "app:\n  http: {port: 70000}": "2: app.http.port is 70000; it must be a whole number at least 0 and at most 65535.",
    "app:\n  prices: {m: {input: 3}}": "2: app.prices.m needs output.",
    "app:\n  logLevel: loud": '2: app.logLevel is "loud"; it must be one of debug, info, warning, error.',
    "agent:\n  maxCost: .inf": "2: agent.maxCost is inf; it must be a number at least 0, and finite.",
    "session:\n  planner: {timeout: .inf}": "2: session.planner.timeout is inf; it must be a number above 0, and",
    "app:\n  store: mysql://me:secret@host/db": '2: app.store is "mysql://…"; use postgresql://… or postgres://…, or',
    "tools: {}": "1: unknown key tools; known here: agent, agents, app, session.",
    "agent:\n  model: ${NOPE}": "2: NOPE is not set; set it, or write ${NOPE:-default}.",
    "agent:\n  model: a\n  model: b": "3: agent.model is set twice in this file; keep one.",
    "agent:\n  model: a\n  Model: b": "3: unknown key agent.Model; did you mean model?",
    "agent:\n\tmodel: x": "2: this is not valid YAML: found character '\\t' that cannot start any token.",
    "agent: {model: x": "1: this is not valid YAML:",
    "- agent": "1: a configuration file is a mapping such as `agent: {model: …}`.",
    "x: " + "[" * 100: "1: nested more than 64 levels deep; make it flatter.",
    "agent: !!python/object:os.system {}": "1: agent",
    "agent:\n  context:\n    sourceBudget: 9\n    sources: {a: {text: x, max: 10, cache: stable}}": (
        "3: agent.context.sourceBudget is 9, but the sources that are not volatile may use 10"
    ),
    "agent:\n  context:\n    sourceBudget: 9\n    sources:\n      a: {text: x}\n      a b: {text: x, file: y}": (
        "6: agent.context.sources.a b has file, text; set exactly one"
    ),
    "agent:\n  max_cost: 1\n  maxCost: 2": "3: agent.maxCost is set twice, as max_cost and maxCost; keep one.",
    "agent:\n  context:\n    mustKeep: ['(']": "3: agent.context.mustKeep: '(' is not a valid regular expression",
    "agent:\n  context:\n    sources: {a: {text: x}}": "3: agent.context.sources needs agent.context.sourceBudget",
    "agents:\n  dev:\n    context: {mustKeep: ['(']}": "3: agents.dev.context.mustKeep: '(' is not a valid regular",
    "agents:\n  dev:\n    context: {sourceBudget: -1, sources: {a: {text: x}}}": "3: agents.dev.context.sourceBudget",
    "agent:\n  tools:\n    Bahs: {enabled: false}": "3: agent.tools.Bahs: there is no such tool; did you mean Bash?",
    "agent:\n  tools:\n    Bash: {enabeld: false}": "3: unknown key agent.tools.Bash.enabeld; did you mean enabled?",
    "agent:\n  tools:\n    Bash: {enabled: fales}": '3: agent.tools.Bash.enabled is "fales"; it must be true or false.',
    "agent:\n  tools:\n    Bash: {rootDir: a}": "3: agent.tools.Bash.rootDir: only Read, Write, Edit,",
    "agent:\n  tools:\n    custom: tool.py": '3: agent.tools.custom is "tool.py"; it must be a list, each text.',
    "agents:\n  dev:\n    tools: {Raed: false}": "3: agents.dev.tools.Raed: there is no such tool; did you mean Read?",
    "agent:\n  permissions:\n    rules:\n      - deny: Bash(": "4: agent.permissions.rules.0: deny rule 'Bash(' cannot",
    "agent:\n  permissions:\n    rules:\n      - {}": "4: agent.permissions.rules.0 is {}; a rule has exactly one of",
    "agents:\n  dev:\n    permissions: {rules: [{ask: a, deny: b}]}": "3: agents.dev.permissions.rules.0 is {",
    "agent:\n  context:\n    resolvers: [{name: ulr, enabled: false}]": (
        '3: agent.context.resolvers.0.name is "ulr"; without a path it must be one of file, url, mcp.'
    ),
    "app:\n  providers:\n    antropic: {timeout: 3}": "3: unknown key app.providers.antropic; did you mean anthropic?",
    "app:\n  providers:\n    openai: {baseUrl: localhost}": '3: app.providers.openai.baseUrl is "localhost"; it must',
    "agent:\n  maxCost: .nan": "2: agent.maxCost is nan; it must be a number at least 0.",
    "agent:\n  model: ${N:?gone}": "2: ${N:?gone} is not a valid variable; write ${VAR}, ${VAR:-default} or",
    "agent:\n  model: ${NOPE:-${N}}": "2: ${NOPE:-${N}… has a variable inside a variable; write ${VAR},",
}


@pytest.mark.parametrize("text", MISTAKES, ids=[text.replace("\n", "⏎")[:40] for text in MISTAKES])
def test_a_mistake_is_told_with_place_key_value_and_what_is_right(project: Path, text: str) -> None:
    if "python/object" in text:
        assert resolve(project, text).config == Config()  # the tag is only a tag: nothing is run
        return
    with pytest.raises(ConfigError) as caught:
        resolve(project, text)
    assert str(caught.value).startswith(f"{project}/ra.yaml:{MISTAKES[text]}")
    assert caught.value.exit_code == 2


def test_an_alias_bomb_is_refused_quickly(project: Path) -> None:
    bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
    )
    with pytest.raises(ConfigError, match="more than 20000 values"):
        resolve(project, bomb)


def test_a_huge_file_and_a_file_that_is_no_text_are_refused(project: Path) -> None:
    with pytest.raises(ConfigError, match="at most 262144"):
        resolve(project, "#" * 300_000)
    (project / "ra.yaml").write_bytes(b"agent:\n  model: \xff\xfe\n")
    with pytest.raises(ConfigError, match=r"ra\.yaml:2: is not UTF-8"):
        load.resolve(cwd=project, env=ENV)


@pytest.mark.parametrize("text", ["agent", "=x", "agent..model=x", "nope.x=1", "agent.maxCost=x"])
def test_a_wrong_assignment_names_itself(project: Path, text: str) -> None:
    with pytest.raises((UsageError, ConfigError), match="--set"):
        resolve(project, assignments=[text])


def test_a_folder_in_the_place_of_the_file_is_refused(project: Path) -> None:
    (project / "ra.yaml").mkdir()
    with pytest.raises(ConfigError, match=r"ra\.yaml: cannot be read: it is a folder"):
        load.resolve(cwd=project, env=ENV)
    (project / "ra.yaml").rmdir()
    (project / "ra.yaml").symlink_to("nowhere.yaml")
    with pytest.raises(ConfigError, match=r"ra\.yaml: cannot be read"):
        load.resolve(cwd=project, env=ENV)


def test_where_the_users_files_are(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    named = home | {"XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "/d"}
    assert paths.user_file(home) == tmp_path / ".config/ra/ra.yaml"
    assert paths.user_file(named) == Path("/c/ra/ra.yaml")
    assert paths.user_file(home | {"XDG_CONFIG_HOME": "not/absolute"}) == tmp_path / ".config/ra/ra.yaml"
    assert paths.data_dir(home) == tmp_path / ".local/share/ra"
    assert paths.data_dir(named) == Path("/d/ra")
    assert paths.data_dir(named | {"RA_HOME": "/r"}) == Path("/r")
    account = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    for nowhere in ({}, {"HOME": ""}, {"HOME": "rel"}):
        assert paths.data_dir(nowhere) == account / ".local/share/ra"
    assert paths.data_dir(named | {"RA_HOME": "/r"}, "~/mine") == Path("~/mine").expanduser()


def test_your_own_file_that_cannot_be_read_is_told(project: Path, tmp_path: Path) -> None:
    own = tmp_path / "config/ra/ra.yaml"
    own.parent.mkdir(parents=True)
    own.symlink_to("nowhere.yaml")
    with pytest.raises(ConfigError, match=r"ra\.yaml: cannot be read: No such file"):
        load.resolve(cwd=project, env=ENV | {"XDG_CONFIG_HOME": str(tmp_path / "config")})


def test_a_name_that_a_box_holds_is_no_file(project: Path) -> None:
    os.mknod(project / "ra.yaml", stat.S_IFSOCK | 0o600)
    assert load.resolve(cwd=project, env=ENV).files == ()


def test_an_assignment_that_yaml_cannot_read_says_how_to_write_it(project: Path) -> None:
    with pytest.raises(UsageError, match=r"in quotes: --set agent.systemPrompt='\"…\"'"):
        resolve(project, assignments=["agent.systemPrompt=Note: be brief"])


def test_a_tool_of_your_own_file_may_be_set_up(project: Path) -> None:
    tools = {"custom": [str(project / "tool.py")], "Fly": {"enabled": False}, "Read": {"rootDir": "docs"}}
    text = "agent: {tools: {custom: [tool.py], Fly: {enabled: false}, Read: {root_dir: docs}}}"
    assert resolve(project, text, trusting=True).config.agent.tools == tools


def test_a_wrong_option_of_a_tool_is_told_where_it_is_let_in(project: Path) -> None:
    with pytest.raises(ConfigError, match=r'--set agent.tools.Bash.env: agent.tools.Bash.env is "FOO"; it must be a'):
        resolve(project, assignments=["agent.tools.Bash.env=FOO"])


def test_an_agentx_json_is_read_below_ra_yaml_and_what_is_not_ours_is_said(project: Path) -> None:
    (project / "agentx.json").write_text(
        '{"session": {"staleMinutes": 30, "maxTurnsPerSession": 20, "contextStrategy": "planner"}, "mesh": {}}'
    )
    resolved = resolve(project, "session: {staleMinutes: 60}")
    session = resolved.config.session
    assert (session.stale_minutes, session.max_turns_per_session, session.context_strategy) == (60, 20, "planner")
    assert str(resolved.origins["session", "maxTurnsPerSession"]).startswith(str(project / "agentx.json"))
    assert any("mesh are unknown to ra" in note for note in resolved.notes)


def test_an_agentx_json_needs_the_same_trust(project: Path) -> None:
    (project / "agentx.json").write_text('{"agent": {"middleware": {"beforeModelCall": [{"shell": "true"}]}}}')
    resolved = load.resolve(cwd=project, env=ENV)
    assert [item.kind for item in resolved.untrusted] == ["command"]
    assert resolved.config.agent.middleware == Config().agent.middleware


def test_an_agentx_json_with_a_wrong_value_is_refused_with_its_line(project: Path) -> None:
    (project / "agentx.json").write_text('{\n  "session": {\n    "staleMinutes": 5000\n  }\n}')
    with pytest.raises(ConfigError, match=r"agentx\.json:3: session\.staleMinutes"):
        load.resolve(cwd=project, env=ENV)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"agent": {"model": "x",}\n}', "1: this is not valid JSON: a value is missing here, or there is one comma"),
        ('{\n "agent": {}\n "session": {}\n}', "3: this is not valid JSON: expecting ',' delimiter"),
        ('{\n // mine\n "agent": {}\n}', "2: this is not valid JSON: JSON has no comments"),
        ("agent:\n  model: x\n", "1: this is not valid JSON: expecting value"),
        ('{"agent": {"maxCost": NaN}}', " this is not valid JSON: NaN is not a number"),
        ('{\n"agent": 1}', "2: agent is 1; it must be a mapping"),
        ("[" * 100_000, " nested too deep; make it flatter"),
        ("[" * 70 + "]" * 70, "1: nested more than 64 levels deep; make it flatter"),
        ("[1]", "1: a configuration file is a mapping"),
    ],
)
def test_a_broken_agentx_json_is_refused_as_json_with_its_line(project: Path, text: str, problem: str) -> None:
    file = project / "agentx.json"
    file.write_text(text)
    with pytest.raises(ConfigError) as raised:
        load.resolve(cwd=project, env=ENV)
    assert str(raised.value).startswith(f"{file}:{problem}")


def test_all_that_json_can_write_is_read_from_an_agentx_json(project: Path) -> None:
    (project / "agentx.json").write_text(
        '{\n\t"agent": {\n\t\t"maxCost": 25e-2, "maxTokenBudget": 1E5,\t"maxIterations": ${N:-7},\n'
        '\t\t"systemPrompt": "tab \\t, \\u00e4, \\ud83d\\ude00, \\\\ud83d, 1e3 \\/ \\"${UNSET:-8}\\""\n\t}\n}\n'
    )
    agent = load.resolve(cwd=project, env=ENV, trusting=True).config.agent
    assert (agent.max_cost, agent.max_token_budget, agent.max_iterations) == (0.25, 100_000, 7)
    assert agent.system_prompt == 'tab \t, ä, 😀, \\ud83d, 1e3 / "8"'


def test_folders_of_the_wiki_are_the_project_s_whoever_names_them(project: Path, tmp_path: Path) -> None:
    user = tmp_path / "home/.config/ra/ra.yaml"
    user.parent.mkdir(parents=True)
    user.write_text("session: {wiki: {dirs: [docs]}}")
    inner = project / "a/b"
    inner.mkdir(parents=True)
    env = {"HOME": str(tmp_path / "home")}
    assert load.resolve(cwd=inner, env=env).config.session.wiki.dirs == (str(project / "docs"),)
    (inner / "ra.yaml").write_text("session: {wiki: {dirs: [wiki]}}")
    assert load.resolve(cwd=inner, env=env).config.session.wiki.dirs == (str(project / "wiki"),)
    flagged = load.resolve(cwd=inner, env=env, assignments=["session.wiki.dirs=[notes]"])
    assert flagged.config.session.wiki.dirs == (str(project / "notes"),)


@pytest.mark.parametrize("text", ["\ue000", "\ue001 ${WORD}", "😀${WORD}", "\U000f0000\U0010fffd ${WORD}", "\uf8ff"])
def test_characters_for_private_use_are_text(project: Path, text: str) -> None:
    """Icons of fonts lie there, and so do the signs that stand for variables while the file is read."""
    expected = text.replace("${WORD}", "blue")
    assert resolve(project, f"agent:\n  systemPrompt: '{text}'\n").config.agent.system_prompt == expected
    changed = changed_text(f"agent:\n  systemPrompt: '{text}'\n", ("agent", "model"), "m")
    assert changed == f"agent:\n  systemPrompt: '{text}'\n  model: m\n"
