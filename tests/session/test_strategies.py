"""Which strategy is in force, and do sources and strategy files reach the model as they should?"""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from ra.context.compose.source_content import guard_sources
from ra.context.compose.sources import Source, compose
from ra.context.recall import recall
from ra.context.tokens import Estimator
from ra.core.facts import Configured, EntrySet
from ra.providers.script import Call, Step
from ra.session.log import Line, LogFile, as_json, as_text
from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell
from tests.session.examples import example
from tests.session.talk import Talk, shown


def served(shell: Shell, *args: str, answer: str = "fine") -> tuple[Any, list[dict[str, Any]]]:
    with LoopbackServer("anthropic", lambda body: Step(text=answer)) as server:
        shell.serve(server)
        done = shell.ra(*args)
    return done, server.bodies


def user_file(shell: Shell, text: str) -> Path:
    folder = shell.home / ".config/ra"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ra.yaml").write_text(text)
    return folder


# --- which ---


@pytest.mark.parametrize(
    ("config", "args", "layered"),
    [
        ("", [], False),
        ("session: {contextStrategy: layered}", [], True),
        ("session: {contextStrategy: layered}\nagents: {a: {contextStrategy: timeline}}", ["--agent", "a"], False),
        ("agents: {a: {contextStrategy: timeline}}", ["--agent", "a", "--context-strategy", "layered"], True),
    ],
)
def test_flag_over_agent_over_session_over_default(shell: Shell, config: str, args: list[str], layered: bool) -> None:
    user_file(shell, config)
    done, bodies = served(shell, *args, "hi")
    assert done.returncode == 0
    assert ("[Channel]" in shown(bodies[0])) is layered


@pytest.mark.parametrize(
    ("config", "args", "words"),
    [
        ("", ["--context-strategy", "layerd"], "--context-strategy: session.contextStrategy is 'layerd'; use timeline"),
        ("session:\n  contextStrategy: planer\n", [], "ra.yaml:2: session.contextStrategy is 'planer'; use timeline"),
        ("agents:\n  a:\n    contextStrategy: x\n", [], "ra.yaml:3: agents.a.contextStrategy is 'x'"),
        ("", ["--context-strategy", "./nowhere.py"], "There is no file"),
    ],
)
def test_a_misspelt_strategy_is_an_error_with_its_place(shell: Shell, config: str, args: list[str], words: str) -> None:
    user_file(shell, config)
    done, bodies = served(shell, *args, "hi")
    assert words in done.stderr.decode()
    assert (done.returncode, bodies) == (2, [])


def test_a_strategy_and_sources_are_one_too_many(shell: Shell) -> None:
    user_file(shell, "agent: {context: {sourceBudget: 100, sources: {a: {text: x}}}}")
    done, bodies = served(shell, "--context-strategy", "planner", "hi")
    assert "Remove one of the two" in done.stderr.decode()
    assert (done.returncode, bodies) == (2, [])


# --- sources ---

SOURCES = """
agent:
  context:
    sourceBudget: 3000
    sources:
      rules: {file: rules.md, max: 500, cache: pinned}
      toc: {text: "Docs: a, b", max: 100, cache: stable}
      status: {command: "echo branch is fine; echo $ANTHROPIC_API_KEY; pwd", cache: volatile}
      broken: {command: "echo oh no; exit 3", cache: volatile}
      missing: {file: nowhere.md, cache: volatile}
      code: {python: "./source.py:status", cache: volatile}
      conversation: {timeline: true, cache: volatile}
"""


def test_sources_of_every_kind_make_the_prompt(shell: Shell) -> None:
    folder = user_file(shell, SOURCES)
    (folder / "rules.md").write_text("Never shout.")
    (folder / "source.py").write_text("async def status():\n    return 'all green'\n")
    first, _ = served(shell, "what now?")
    second, bodies = served(shell, "-c", "what now?")
    assert first.returncode == second.returncode == 0
    body = bodies[0]
    texts = [block["text"] for block in body["system"]]
    assert texts[0].startswith("You are ra")
    assert texts[1:] == ["Never shout.", "Docs: a, b"]
    said = shown(body)
    assert f"branch is fine\\n\\n{shell.project}" in said  # no key reaches a command, and it runs in the project's root
    assert "[The source broken could not be read.]" in said
    assert "[The source missing could not be read.]" in said
    assert "all green" in said
    assert [m["content"][-1]["text"] for m in body["messages"][-2:]] == ["fine", "what now?"]
    assert said.count("what now?") == 2  # the first one, and this one
    warned = second.stderr.decode()
    assert "Source 'broken' could not be read: echo oh no" in warned
    assert "exit 3: oh no" in warned
    assert "Source 'missing' could not be read" in warned


def test_without_a_timeline_source_the_current_input_is_there_once(shell: Shell) -> None:
    user_file(shell, "agent: {context: {sourceBudget: 100, sources: {a: {text: the only source, cache: volatile}}}}")
    _, bodies = served(shell, "a question")
    assert shown(bodies[0]).count("a question") == 1
    assert shown(bodies[0]).count("the only source") == 1


def test_what_a_source_lost_can_be_recalled_in_a_later_process(shell: Shell) -> None:
    long = " ".join(f"fact{n}" for n in range(2000))
    with LoopbackServer("anthropic", lambda body: Step(text="fine")) as server:
        chat = Talk(
            shell,
            server,
            agent__context__sourceBudget=300,
            agent__context__sources={"facts": {"text": long, "max": 200, "cache": "stable"}},
        )
        chat.say("hi")
        (section,) = [block["text"] for block in chat.bodies[0]["system"] if "fact0" in block["text"]]
        ref = section.partition("recall ")[2].split(" ")[0]
        kept = recall(ref, chat.app().store.open(chat.session or "", write=False))
    assert kept.startswith("fact0 fact1")
    assert "fact1999" not in section


def test_entries_are_in_a_composed_prompt_once(shell: Shell) -> None:
    with LoopbackServer("anthropic", lambda body: Step(text="fine")) as server:
        chat = Talk(
            shell, server, agent__context__sourceBudget=900, agent__context__sources={"talk": {"timeline": True}}
        )
        chat.say("hi")
        timeline = chat.app().store.open(chat.session or "", write=True)
        timeline.append(EntrySet("tone", "Answer like a pirate."))
        timeline.close()
        chat.say("again")
    assert shown(chat.bodies[-1]).count("Answer like a pirate.") == 1


def test_a_tool_loop_goes_on_from_a_composed_prompt(shell: Shell) -> None:
    user_file(shell, "agent: {context: {sourceBudget: 900, sources: {talk: {timeline: true}}}}")
    (shell.project / "a.txt").write_text("alpha")
    steps = [Step(calls=(Call("Read", {"path": "a.txt"}),)), Step(text="alpha it is")]
    with LoopbackServer("anthropic", steps) as server:
        shell.serve(server)
        assert shell.ra("--thinking", "adaptive", "read a.txt").stdout == b"alpha it is\n"
    assert "alpha" in shown(server.bodies[1])
    assert shown(server.bodies[1]).count("read a.txt") == 1


def test_a_source_that_blocks_stops_no_other(tmp_path: Path) -> None:
    sources = {"slow": Source(lambda: time.sleep(60) or "late"), "quick": Source(lambda: "here")}
    began = time.monotonic()
    made = asyncio.run(compose(100, guard_sources(sources, file=tmp_path / "x.py", timeout_s=0.3), Estimator()))
    assert time.monotonic() - began < 30
    assert [message.text for message in made.messages] == ["[The source slow could not be read.]", "here"]


# --- strategy files ---

STRATEGY = example("strategy")


def test_the_full_example_of_the_slots_page(shell: Shell) -> None:
    (shell.project / "mine.py").write_text(STRATEGY)
    with LoopbackServer("anthropic", lambda body: Step(text=f"answer {len(body['messages'])}")) as server:
        shell.serve(server)
        for prompt in (["one"], ["-c", "two"], ["-c", "three"], ["-c", "the default please"]):
            assert shell.ra("--context-strategy", "./mine.py", *prompt).returncode == 0
    third, fourth = server.bodies[2:]
    assert [block["text"] for block in third["system"]] == ["You are a helpful assistant."]
    assert [message["content"][0]["text"] for message in third["messages"]] == ["two", "answer 3", "three"]
    assert fourth["system"][0]["text"].startswith("You are ra")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("async def on_context_build(ctx):\n    return 1\n", "returned a int"),
        ("def on_context_build(ctx):\n    raise KeyError('x')\n", "mine.py:2: on_context_build failed: KeyError"),
        ("def build(ctx): pass\n", "defines no 'on_context_build'"),
    ],
)
def test_a_strategy_file_that_fails_is_told_and_nothing_is_sent(shell: Shell, code: str, words: str) -> None:
    (shell.project / "mine.py").write_text(code)
    done, bodies = served(shell, "--context-strategy", "./mine.py", "hi")
    assert words in done.stderr.decode()
    assert done.returncode in (1, 2)
    assert bodies == []


def test_a_project_s_strategy_file_is_inert_until_it_is_trusted(shell: Shell) -> None:
    (shell.project / "mine.py").write_text(STRATEGY)
    (shell.project / "ra.yaml").write_text("session: {contextStrategy: ./mine.py}\n")
    done, bodies = served(shell, "hi")
    assert (done.returncode, bodies) == (4, [])
    assert shell.ra("trust", "--yes").returncode == 0
    done, bodies = served(shell, "hi")
    assert [block["text"] for block in bodies[0]["system"]] == ["You are a helpful assistant."]


# --- the log ---


def test_a_line_for_people_and_for_programs(tmp_path: Path) -> None:
    line = Line("info", "rotation", "ops", "telegram:42", "[ops] stale rotation for telegram:42 …", {"reason": "stale"})
    assert as_text(line, 0.0) == line.text
    assert json.loads(as_json(line, 0.0)) == {
        "time": "1970-01-01T00:00:00Z",
        "level": "info",
        "event": "rotation",
        "agent": "ops",
        "chat": "telegram:42",
        "text": line.text,
        "reason": "stale",
    }
    log = LogFile(tmp_path / "data/ra.log", clock=lambda: 0.0)
    log.write(line)
    log.write(line)
    assert log.path.read_text() == f"1970-01-01T00:00:00Z {line.text}\n" * 2
    assert log.path.stat().st_mode & 0o777 == 0o600


def test_the_strategy_that_was_followed_is_a_fact(shell: Shell) -> None:
    with LoopbackServer("anthropic", lambda body: Step(text="fine")) as server:
        chat = Talk(shell, server)
        chat.say("hi", "layered")
        chat.say("hi", "timeline")
    assert [fact.strategy for fact in chat.facts() if isinstance(fact, Configured)] == ["layered", "timeline"]
