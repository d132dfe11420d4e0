"""Does the wiki find what is asked, in every script, and say where? Does the agent command keep a file intact?"""

import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ra.config.edit import changed_text
from ra.context.compose.wiki import Passage, _passages, has_articles, query
from ra.providers.script import Call, Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell

DEPLOY = """Before everything.

# Deployment

We deploy on Tuesdays.

```sh
# not a heading
make deploy
```

## Rollback

Run `make undo`; ask Ana first.

# 数据库

备份每天晚上运行一次。
"""


def wiki(folder: Path) -> Path:
    home = folder / "wiki"
    home.mkdir()
    (home / "ops.md").write_text(DEPLOY)
    (home / "food.md").write_text("# Lunch\n\nПо вторникам у нас суп.\n")
    return home


def test_passages_are_headings_with_their_lines(tmp_path: Path) -> None:
    assert [(p.line, p.heading) for p in _passages(DEPLOY, "ops.md")] == [
        (1, "ops"),
        (3, "Deployment"),
        (12, "Deployment › Rollback"),
        (16, "数据库"),
    ]


def test_a_query_finds_words_of_every_script(tmp_path: Path) -> None:
    home = wiki(tmp_path)

    def places(words: str) -> list[str]:
        return [passage.place for passage in query(words, [home], root=tmp_path)]

    assert places("how do I undo, rollback?")[0] == "wiki/ops.md:12"
    assert places("备份什么时候运行")[0] == "wiki/ops.md:16"
    assert places("СУП") == ["wiki/food.md:1"]
    assert places("ваш суп")[0] == "wiki/food.md:1"
    assert places("deployment rollback")[0] == "wiki/ops.md:12"
    assert places("zebra") == []
    assert places("?!") == []


def test_a_word_is_found_without_its_accents(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Übersicht\n\nCafé\n# Other\n\nnothing\n")
    assert [p.heading for p in query("ubersicht", [tmp_path], root=tmp_path)] == ["Übersicht"]
    assert [p.heading for p in query("cafe", [tmp_path], root=tmp_path)] == ["Übersicht"]


def test_a_heading_weighs_more_than_the_text(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Beta\n\nalpha is here\n# Alpha\n\nbeta is here\n")
    assert [p.heading for p in query("alpha", [tmp_path], root=tmp_path)] == ["Alpha", "Beta"]


def test_links_that_lead_out_and_hidden_files_are_left_alone(tmp_path: Path) -> None:
    home = tmp_path / "wiki"
    home.mkdir()
    (tmp_path / "secret.md").write_text("# Secret\n\npassword")
    (home / "link.md").symlink_to(tmp_path / "secret.md")
    (home / ".hidden.md").write_text("# Secret\n\npassword")
    assert not has_articles([home])
    assert query("password", [home], root=tmp_path) == []


@given(st.text(max_size=300))
@settings(max_examples=60, deadline=None)
def test_any_text_is_an_article_whose_lines_exist(text: str) -> None:
    lines = len(text.splitlines())
    for passage in _passages(text, "x.md"):
        assert isinstance(passage, Passage)
        assert 1 <= passage.line <= max(1, lines)


def test_the_command_cites_and_speaks_json(shell: Shell) -> None:
    wiki(shell.project)
    (shell.project / "ra.yaml").write_text("session: {wiki: {dirs: [wiki]}}\n")
    told = json.loads(shell.ra("wiki", "query", "rollback", "--json").stdout)
    assert (told["query"], told["passages"][0]["file"], told["passages"][0]["line"]) == ("rollback", "wiki/ops.md", 12)
    assert set(told["passages"][0]) == {"file", "line", "heading", "text", "score"}
    plain = shell.ra("wiki", "query", "rollback")
    assert plain.stdout.decode().startswith("wiki/ops.md:12: Deployment › Rollback\nRun `make undo`")
    nothing = shell.ra("wiki", "query", "zebra")
    assert (nothing.returncode, nothing.stdout) == (1, b"")


def test_without_a_wiki_the_command_says_how_to_get_one(shell: Shell) -> None:
    done = shell.ra("wiki", "query", "x")
    assert done.returncode == 2
    assert b"session: {wiki: {dirs: [docs]}}" in done.stderr


def test_the_model_answers_from_the_passages(shell: Shell) -> None:
    wiki(shell.project)
    (shell.project / "ra.yaml").write_text("session: {wiki: {dirs: [wiki]}}\n")
    with LoopbackServer("anthropic", [Step(text="Run make undo [wiki/ops.md:12].")]) as server:
        shell.serve(server)
        done = shell.ra("wiki", "query", "--answer", "How do I roll back? rollback")
    assert done.stdout == b"Run make undo [wiki/ops.md:12].\n"
    assert "ask Ana first" in json.dumps(server.bodies[0]["messages"])
    assert "tools" not in server.bodies[0]


def test_the_model_can_follow_the_hint_from_its_sandbox(shell: Shell) -> None:
    """There is neither the configuration that names the wiki, nor what lies outside the project, nor our PATH."""
    folder = wiki(shell.home)
    ask = Call("Bash", {"command": "agentx wiki query rollback"})
    with LoopbackServer("anthropic", [Step(calls=(ask,)), Step(text="Run make undo.")]) as server:
        shell.serve(server)
        shell.env["PATH"] = "/usr/bin:/bin"
        shell.ra("--set", f"session.wiki.dirs=[{folder}]", "--context-strategy", "layered", "How do I roll back?")
    assert f"{folder}/ops.md:12: Deployment › Rollback" in json.dumps(server.bodies[1]["messages"], ensure_ascii=False)


CONFIG = """\
# mine
agents:
  devops-agent:            # looks after servers
    systemPrompt: "You look after servers."
  other: {model: x}
app:
  providers: {anthropic: {apiKey: ${KEY:-none}}}   # from the environment
"""


def test_capability_writes_one_key_and_keeps_everything_else(shell: Shell) -> None:
    file = shell.home / ".config/ra/ra.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(CONFIG)
    done = shell.ra("agent", "capability", "devops-agent", "--context-strategy", "planner")
    assert done.returncode == 0
    added = '    systemPrompt: "You look after servers."\n    contextStrategy: planner\n'
    assert file.read_text() == CONFIG.replace('    systemPrompt: "You look after servers."\n', added)
    listed = shell.ra("agent", "list").stdout.decode()
    assert "devops-agent\tdefault\tplanner" in listed
    shell.ra("agent", "capability", "devops-agent", "--context-strategy", "-")
    assert file.read_text() == CONFIG


def test_clearing_what_another_file_says_is_told(shell: Shell) -> None:
    (shell.project / "ra.yaml").write_text("agents:\n  other: {contextStrategy: planner}\n")

    done = shell.ra("agent", "capability", "other", "--context-strategy", "-").stderr.decode()

    assert "other: contextStrategy already not set in " in done
    assert f"But {shell.project}/ra.yaml:2 sets 'planner', which wins; see ra agent show other." in done


def test_clearing_an_agent_s_strategy_says_what_holds_for_all(shell: Shell) -> None:
    (shell.project / "ra.yaml").write_text("agents: {other: {}}\nsession:\n  contextStrategy: layered\n")

    done = shell.ra("agent", "capability", "other", "--context-strategy", "-").stderr.decode()

    assert f"But {shell.project}/ra.yaml:3 sets 'layered'" in done


def test_capability_refuses_what_is_wrong(shell: Shell) -> None:
    (shell.home / ".config/ra").mkdir(parents=True)
    (shell.home / ".config/ra/ra.yaml").write_text(CONFIG)
    unknown = shell.ra("agent", "capability", "nobody", "--context-strategy", "planner")
    assert (unknown.returncode, b"Known agents: devops-agent, other" in unknown.stderr) == (2, True)
    misspelt = shell.ra("agent", "capability", "other", "--context-strategy", "planer")
    assert (misspelt.returncode, b"use timeline, layered, planner" in misspelt.stderr) == (2, True)
    nothing = shell.ra("agent", "capability", "other")
    assert (nothing.returncode, b"--context-strategy" in nothing.stderr) == (2, True)
    assert (shell.home / ".config/ra/ra.yaml").read_text() == CONFIG


def test_a_new_file_is_made_for_the_first_key() -> None:
    assert (
        changed_text("", ("agents", "a", "contextStrategy"), "planner")
        == "agents:\n  a:\n    contextStrategy: planner\n"
    )
    assert changed_text("", ("agents", "a", "contextStrategy"), None) == ""


def test_an_agent_shows_what_is_in_force(shell: Shell) -> None:
    (shell.project / "ra.yaml").write_text("agents: {ops: {contextStrategy: layered, maxIterations: 7}}\n")
    shown = shell.ra("agent", "show", "ops").stdout.decode()
    assert "contextStrategy: layered" in shown
    assert "maxIterations: 7" in shown
