"""The reference servers of the protocol, as their makers ship them. One that is not installed is skipped by name."""

import asyncio
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ra.core.asking import Answer, Field, FieldValue, Question
from ra.core.messages import Image
from ra.providers.script import Call, Step
from ra.testing import LoopbackServer
from ra.tools.settings import McpServerSettings
from tests.tools.kit import words
from tests.tools.mcp.test_questions import answered, talking
from tests.tools.mcp.test_servers import World, run, world

__all__ = ["world"]


def reference(name: str, *args: str) -> McpServerSettings:
    program = shutil.which(f"mcp-server-{name}")
    if program is None:
        pytest.skip(f"mcp-server-{name} is not installed")
    return McpServerSettings(name=name, command=program, args=args, timeout=60)


@pytest.fixture
def env() -> dict[str, str]:
    """What programs need that are no shell scripts: node is found by its name."""
    node = shutil.which("node")
    return {"PATH": f"{Path(node).parent if node else ''}:/usr/bin:/bin"}


def filled(field: Field) -> FieldValue:
    if field.choices:
        return [field.choices[0]] if field.many else field.choices[0]
    values: dict[str, FieldValue] = {"text": "a@b.example", "integer": 7, "number": 7.5, "boolean": True}
    return values[field.kind] if field.default is None else field.default


def test_everything_shows_its_tools_pictures_resources_and_prompts(world: World, env: dict[str, str]) -> None:
    box = world.box(reference("everything"), env=env)
    echoed, added, picture, listed = run(
        box,
        ("mcp__everything__echo", {"message": "hello"}),
        ("mcp__everything__get-sum", {"a": 2, "b": 3}),
        ("mcp__everything__get-tiny-image", {}),
        ("mcp__everything", {}),
    )
    assert words(echoed) == "Echo: hello"
    assert "5" in words(added)
    assert any(isinstance(block, Image) for block in picture.result.content)
    assert "echo" in words(listed)
    assert world.warnings == []


def test_everything_asks_the_user_and_is_answered(world: World, env: dict[str, str]) -> None:
    questions: list[Question] = []

    async def ask(question: Question) -> Answer:
        questions.append(question)
        return Answer("once", values={field.name: filled(field) for field in question.fields})

    box = world.box(reference("everything"), env=env)
    name = next((tool.name for tool in box.tools if "elicitation" in tool.name and "async" not in tool.name), "")
    if not name:
        pytest.skip("this mcp-server-everything asks for nothing")
    (done,) = run(box, (name, {}), ask=ask)
    assert len(questions) == 1
    assert questions[0].fields != ()
    assert "provided the requested information" in words(done)


def test_everything_gets_an_answer_of_the_model(tmp_path: Path, env: dict[str, str]) -> None:
    server = reference("everything")
    name = "mcp__everything__trigger-sampling-request"
    steps = [
        Step(calls=(Call(name, {"prompt": "tea", "maxTokens": 50}),)),
        Step(text="Tea is warm."),
        Step(text="Done."),
    ]
    settings = {"name": "everything", "command": server.command, "timeout": 60, "env": env}
    with LoopbackServer("anthropic", steps) as models:
        conversation = talking(tmp_path, models, settings, "mcp__everything__*")
        asyncio.run(answered(conversation, "sample"))
    assert "Tea is warm." in str(models.bodies[2]["messages"][-1])


def test_memory_keeps_and_finds(world: World, env: dict[str, str], tmp_path: Path) -> None:
    server = reference("memory")
    entity = {"name": "Ann", "entityType": "person", "observations": ["likes tea"]}
    env |= {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}
    created, found = run(
        world.box(server, env=env),
        ("mcp__memory__create_entities", {"entities": [entity]}),
        ("mcp__memory__search_nodes", {"query": "tea"}),
    )
    assert not created.result.is_error
    assert "Ann" in words(found)


def test_filesystem_reads_what_lies_in_the_project(world: World, env: dict[str, str]) -> None:
    (world.folder / "a.txt").write_text("good morning")
    box = world.box(reference("filesystem", str(world.folder)), env=env)
    read, outside = run(
        box,
        ("mcp__filesystem__read_text_file", {"path": str(world.folder / "a.txt")}),
        ("mcp__filesystem__read_text_file", {"path": "/etc/hostname"}),
    )
    assert "good morning" in words(read)
    assert outside.result.is_error


def test_time_and_git_of_the_python_package_index(world: World, env: dict[str, str]) -> None:
    servers = [reference("time"), reference("git", "--repository", str(world.folder))]
    subprocess.run(["git", "init", "-q", str(world.folder)], check=True)
    (world.folder / "new.txt").write_text("new")
    convert: dict[str, Any] = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    converted, status = run(
        world.box(*servers, env=env),
        ("mcp__time__convert_time", convert),
        ("mcp__git__git_status", {"repo_path": str(world.folder)}),
    )
    assert "21:00" in words(converted)
    assert "new.txt" in words(status)
