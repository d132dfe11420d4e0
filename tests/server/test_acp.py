"""`ra acp` driven by the protocol's own client: prompts, differences, permissions, cancel, sessions, mistakes."""

import asyncio
import base64
import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from acp import PROTOCOL_VERSION, RequestError, schema, spawn_agent_process, text_block
from acp.client.connection import ClientSideConnection

from ra.core.value import JsonObject
from ra.providers.model_choice import newest
from ra.providers.script import Call, Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import RA, Shell


def answer(body: JsonObject) -> Step:
    said = str(body["messages"])
    if body["messages"][-1]["content"][0]["type"] == "tool_result":
        return Step(text="Done.")
    if "change it" in said:
        return Step(calls=(Call("Edit", {"path": "a.txt", "old_string": "one", "new_string": "two"}),))
    if "slowly" in said:
        return Step(text="word " * 500, pace_s=0.02)
    return Step(
        text="An image." if "'image'" in said else "A file." if "whole cents" in said else "Hello.", thinking="Hm."
    )


class Editor:
    """What an editor does: it shows updates and answers questions."""

    def __init__(self, choice: str = "once") -> None:
        self.updates: list[Any] = []
        self.questions: list[Any] = []
        self._choice = choice

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> schema.RequestPermissionResponse:
        self.questions.append(tool_call)
        outcome = schema.AllowedOutcome(outcome="selected", option_id=self._choice)
        return schema.RequestPermissionResponse(outcome=outcome)

    def on_connect(self, conn: Any) -> None:
        """Nothing is needed of it."""

    def texts(self, kind: str) -> str:
        return "".join(update.content.text for update in self.updates if update.session_update == kind)


@asynccontextmanager
async def connected(shell: Shell, editor: Editor) -> AsyncIterator[ClientSideConnection]:
    spawned = spawn_agent_process(editor, RA, "acp", env=shell.env, cwd=shell.project)  # type: ignore[arg-type]  # an editor with few skills
    async with spawned as (connection, _):
        hello = await connection.initialize(protocol_version=PROTOCOL_VERSION)
        assert hello.agent_info is not None
        assert hello.agent_info.name == "ra"
        yield connection


@pytest.fixture
def model(shell: Shell) -> Iterator[LoopbackServer]:
    with LoopbackServer("anthropic", answer) as server:
        shell.serve(server)
        yield server


@pytest.fixture
def served(shell: Shell, model: LoopbackServer) -> Shell:
    return shell


def test_a_prompt_streams_and_a_session_is_listed_and_loaded(served: Shell) -> None:
    first, second = Editor(), Editor()

    async def main() -> tuple[Any, Any, Any]:
        async with connected(served, first) as connection:
            session = await connection.new_session(cwd=str(served.project))
            done = await connection.prompt(session_id=session.session_id, prompt=[text_block("hi")])
        async with connected(served, second) as connection:
            listed = await connection.list_sessions(cwd=str(served.project))
            await connection.load_session(cwd=str(served.project), session_id=session.session_id)
            await asyncio.sleep(0.1)
        return session, done, listed

    session, done, listed = asyncio.run(main())
    assert done.stop_reason == "end_turn"
    assert done.usage.output_tokens > 0
    assert (first.texts("agent_message_chunk"), first.texts("agent_thought_chunk")) == ("Hello.", "Hm.")
    assert [info.session_id for info in listed.sessions] == [session.session_id]
    assert (second.texts("user_message_chunk"), second.texts("agent_message_chunk")) == ("hi", "Hello.")


@pytest.mark.parametrize(("choice", "content", "status"), [("once", "two", "completed"), ("no", "one", "failed")])
def test_a_change_is_asked_for_with_its_difference(served: Shell, choice: str, content: str, status: str) -> None:
    editor, path = Editor(choice), served.project / "a.txt"
    path.write_text("one")

    async def main() -> Any:
        async with connected(served, editor) as connection:
            session = await connection.new_session(cwd=str(served.project))
            return await connection.prompt(session_id=session.session_id, prompt=[text_block("change it")])

    assert asyncio.run(main()).stop_reason == "end_turn"
    assert path.read_text() == content
    difference = editor.questions[0].content[0]
    assert (difference.path, difference.old_text, difference.new_text) == (str(path), "one", "two")
    ended = [update for update in editor.updates if update.session_update == "tool_call_update"]
    assert ended[-1].status == status


def test_cancel_ends_a_prompt_soon_and_the_session_goes_on(served: Shell) -> None:
    editor = Editor()

    async def main() -> tuple[Any, Any]:
        async with connected(served, editor) as connection:
            session = await connection.new_session(cwd=str(served.project))
            running = asyncio.create_task(
                connection.prompt(session_id=session.session_id, prompt=[text_block("count slowly")])
            )
            while not editor.texts("agent_message_chunk"):
                await asyncio.sleep(0.02)
            await connection.cancel(session_id=session.session_id)
            cancelled = await asyncio.wait_for(running, 10)
            return cancelled, await connection.prompt(session_id=session.session_id, prompt=[text_block("hi")])

    cancelled, after = asyncio.run(main())
    assert (cancelled.stop_reason, after.stop_reason) == ("cancelled", "end_turn")


def test_files_images_and_commands_of_the_project_are_known(served: Shell) -> None:
    (served.project / ".claude/commands").mkdir(parents=True)
    (served.project / ".claude/commands/review.md").write_text("Review $1.")
    (served.project / "rules.md").write_text("whole cents")
    pixel = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 30).decode()
    editor = Editor()

    async def main() -> None:
        async with connected(served, editor) as connection:
            session = await connection.new_session(cwd=str(served.project))
            link = schema.ResourceContentBlock(
                type="resource_link", name="rules.md", uri=Path(served.project / "rules.md").as_uri()
            )
            image = schema.ImageContentBlock(type="image", data=pixel, mime_type="image/png")
            for block in (link, image):
                await connection.prompt(session_id=session.session_id, prompt=[text_block("look"), block])

    asyncio.run(main())
    assert editor.texts("agent_message_chunk") == "A file.An image."
    commands = next(update for update in editor.updates if update.session_update == "available_commands_update")
    assert [command.name for command in commands.available_commands] == ["review"]


def test_what_is_mentioned_keeps_its_place_and_its_lines(served: Shell, model: LoopbackServer) -> None:
    (served.project / "src").mkdir()
    (served.project / "src/a b.py").write_text("one\ntwo\nthree\n")
    uri = (served.project / "src/a b.py").as_uri()

    def link(uri: str) -> schema.ResourceContentBlock:
        return schema.ResourceContentBlock(type="resource_link", name="x", uri=uri)

    embedded = schema.TextResourceContents(uri=f"{uri}#L1:2", text="one\ntwo")
    blob = schema.BlobResourceContents(uri="file:///x.bin", blob="AAAA", mime_type="application/zip")
    editor = Editor()

    async def main() -> str:
        async with connected(served, editor) as connection:
            session = await connection.new_session(cwd=str(served.project))
            prompts: list[list[Any]] = [
                [text_block("Explain "), link(f"{uri}?symbol=f#L2:3"), text_block(" and stop.")],
                [text_block("List"), link((served.project / "src").as_uri())],
                [text_block("See "), link((served.project / "none.py").as_uri())],
                [text_block("Mend "), schema.EmbeddedResourceContentBlock(type="resource", resource=embedded)],
            ]
            for prompt in prompts:
                await connection.prompt(session_id=session.session_id, prompt=prompt)
            with pytest.raises(RequestError) as empty:
                await connection.prompt(session_id=session.session_id, prompt=[text_block(" ")])
            block = schema.EmbeddedResourceContentBlock(type="resource", resource=blob)
            with pytest.raises(RequestError) as unreadable:
                await connection.prompt(session_id=session.session_id, prompt=[block])
            return f"{empty.value} {unreadable.value}"

    refused = asyncio.run(main())
    said = [message["content"] for message in model.bodies[-1]["messages"] if message["role"] == "user"]
    assert [content[0]["text"] for content in said] == [
        'Explain @"src/a b.py":2-3 and stop.',
        'List @"src/"',
        'See @"none.py"',
        "Mend src/a b.py#L1:2",
    ]
    assert said[0][1]["text"] == '<file path="src/a b.py" lines="2-3">\ntwo\nthree\n</file>'
    assert "none.py" in editor.texts("agent_thought_chunk")
    assert "The prompt is empty." in refused
    assert "is of application/zip, which no model reads" in refused


def test_the_model_the_thinking_and_the_mode_are_options_of_a_session(served: Shell, model: LoopbackServer) -> None:
    editor = Editor()

    async def main() -> tuple[list[dict[str, str]], str]:
        async with connected(served, editor) as connection:
            session = await connection.new_session(cwd=str(served.project))
            states = [{option.id: option.current_value for option in session.config_options or ()}]
            await connection.prompt(session_id=session.session_id, prompt=[text_block("one")])
            for config_id, value in (("model", "haiku"), ("thinking", "high"), ("mode", "off")):
                changed = await connection.set_config_option(
                    config_id=config_id, session_id=session.session_id, value=value
                )
                states.append({option.id: option.current_value for option in changed.config_options})
            await connection.prompt(session_id=session.session_id, prompt=[text_block("two")])
            with pytest.raises(RequestError) as error:
                await connection.set_config_option(config_id="thinking", session_id=session.session_id, value="hard")
            return states, str(error.value)

    states, refused = asyncio.run(main())
    first, other_model, thinking, mode = states
    haiku = f"anthropic/{newest('haiku')}"
    assert other_model == first | {"model": haiku}
    assert thinking == first | {"model": haiku, "thinking": "high"}
    assert mode == first | {"model": haiku, "thinking": "high", "mode": "off"}
    assert "must be one of off, low, medium, high, adaptive" in refused
    assert (model.bodies[-1]["model"], "thinking" in model.bodies[-1]) == (newest("haiku"), True)


def test_what_cannot_be_is_an_error_with_a_sentence(served: Shell, tmp_path: Path) -> None:
    editor = Editor()

    async def said(request: Any) -> str:
        with pytest.raises(RequestError) as error:
            await request
        return str(error.value)

    async def main() -> list[str]:
        async with connected(served, editor) as connection:
            session = await connection.new_session(cwd=str(served.project))
            return [
                await said(connection.new_session(cwd="relative")),
                await said(connection.prompt(session_id="nobody", prompt=[text_block("x")])),
                await said(connection.load_session(cwd=str(served.project), session_id="nobody")),
                await said(connection.set_session_mode(session_id=session.session_id, mode_id="wild")),
            ]

    assert [words.split(";")[0] for words in asyncio.run(main())] == [
        "cwd is 'relative'",
        "No session 'nobody' is open",
        "There is no session 'nobody'. Nothing has been stored yet.",
        "There is no mode 'wild'",
    ]


@pytest.mark.parametrize(
    ("line", "code"),
    [("no json", -32700), ("[" * 100_000, -32700), ("[1, 2]", -32600), ('"hello"', -32600), ('{"method": 5}', -32600)],
)
def test_a_line_that_is_no_message_is_answered_and_ends_nothing(served: Shell, line: str, code: int) -> None:
    hello = {"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": {"protocolVersion": 99}}
    words = "x" * 300_000 + "\ud83d"  # longer than a buffer, and cut in the middle of a character
    long = {"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": {"sessionId": words, "prompt": []}}
    lines = [line, json.dumps(hello), "", json.dumps(long)]
    with subprocess.Popen([RA, "acp"], env=served.env, cwd=served.project, stdin=PIPE, stdout=PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        answers = []
        for number, text in enumerate(lines):
            process.stdin.write(text.encode() + b"\n")
            process.stdin.flush()
            if number != 2:
                answers.append(json.loads(process.stdout.readline()))
        process.stdin.close()
    assert (answers[0]["id"], answers[0]["error"]["code"]) == (None, code)
    assert (answers[1]["id"], answers[1]["result"]["protocolVersion"]) == ("a", PROTOCOL_VERSION)
    assert "No session" in answers[2]["error"]["message"]
    assert process.returncode == 0
