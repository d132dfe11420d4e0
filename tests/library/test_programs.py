"""The first programs of new users: they run as they stand. `make check` holds their types in strict mode."""

import ast
import asyncio
import inspect
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ra
from ra.core.value import JsonObject
from ra.providers.script import Call, Step
from ra.testing.server import LoopbackServer
from tests.library import programs

CITY = '{"name": "Paris", "inhabitants": 2100000}'


def answer(body: JsonObject) -> Step:
    said = str(body["messages"])
    last = str(body["messages"][-1])
    if "tool_result" in last:
        results = {"Paris: 21 C": "21 degrees.", "image/png": "A cat.", "'1'": "Noted."}
        return Step(text=next((text for word, text in results.items() if word in last), "19 percent."))
    if "warm" in said:
        return Step(calls=(Call("weather", {"city": "Paris"}),))
    if "And at last" in last:
        return Step(text="Now.")
    if "Be slow" in last:
        return Step(text="Too late.", delay_s=5)
    if "Note it" in said:
        return Step(calls=(Call("note", {"tickets": [{"title": "x", "mood": "bad"}]}),))
    if "on the screen" in said:
        return Step(calls=(Call("screenshot", {}),))
    if "How high" in said and "know taxes" not in str(body["system"]):
        return Step(calls=(Call("tax_expert", {"task": "The tax?"}),))
    words = '[{"text": "a"}, {"text": "b"}]' if "should match pattern" in last else '[{"text": "A"}]'
    texts = {"Which words": words, "What is open": '{"title": "x", "due": "2026-01-02"}', "the mood": '"bad"'}
    texts |= {"Which city": CITY, "Plan it": '[{"what": "begin"}, {"what": "end"}]', "How many": '{"n": 4}'}
    story = "Once upon a time."
    return Step(
        text=next((text for word, text in texts.items() if word in said), story if "story" in said else "Fine.")
    )


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    (tmp_path / "p/.git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "p")
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_BASE_URL"))]:
        monkeypatch.delenv(name)
    with LoopbackServer("anthropic", answer) as server:
        settings = {"HOME": str(tmp_path), "RA_HOME": str(tmp_path / "data"), "ANTHROPIC_API_KEY": "k"}
        for name, value in (settings | {"ANTHROPIC_BASE_URL": server.url}).items():
            monkeypatch.setenv(name, value)
        yield server


EXPECTED = {
    "one_question": "Fine.",
    "one_question_with_a_typed_answer": 2100000,
    "a_plain_function_decides": "Fine.",
    "a_function_as_a_tool": "21 degrees.",
    "a_pydantic_answer": "Paris 2100000",
    "a_dataclass_answer": ["begin", "end"],
    "a_struct_and_a_schema": 8,
    "streaming": "Once upon a time.",
    "streaming_without_async": "Once upon a time.",
    "a_conversation_with_history": "Fine. 6",
    "a_provider_of_ones_own": "SHOUT",
    "agents_that_ask_agents": "19 percent.",
    "entries_and_the_context": (1, True),
    "many_at_once": ["Fine."] * 3,
    "a_list_of_models_that_check_themselves": ["a", "b"],
    "one_of_several_types": "x GOOD 2026-01-02",
    "a_class_of_text": programs.Mood.BAD,
    "a_tool_with_what_it_needs": "x Mood.BAD",
    "a_picture_from_a_tool": "A cat.",
    "no_longer_than_that": "late; Now.",
    "without_a_model": "scripted",
}


def test_every_program_is_run_and_is_short() -> None:
    tree = ast.parse(Path(programs.__file__).read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert {function.name for function in functions} == set(EXPECTED)
    assert max((function.end_lineno or 0) - function.lineno + 1 for function in functions) <= 20


@pytest.mark.parametrize("name", EXPECTED)
def test_a_program_runs_as_it_stands(world: LoopbackServer, name: str) -> None:
    program = getattr(programs, name)
    result = asyncio.run(program()) if inspect.iscoroutinefunction(program) else program()
    assert result == EXPECTED[name]


def test_every_exported_name_is_there() -> None:
    assert [name for name in ra.__all__ if not hasattr(ra, name)] == []
    assert set(dir(ra)) >= {"Agent", "RunEnded", "Provider", "say"}


def test_the_programs_pass_pyright_in_its_strict_mode() -> None:
    pyright = shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed")
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(
        [pyright, "--pythonpath", sys.executable], cwd=root, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "0 errors, 0 warnings, 0 informations")
