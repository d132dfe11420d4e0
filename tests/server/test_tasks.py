"""What do clients get? Answers, streams, sessions, and refusals that name the field."""

import json
import subprocess
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ra.core.model import Usage
from ra.providers.script import Call, Step
from ra.server.openapi import document
from ra.server.routes import ROUTES
from tests.cli.conftest import Shell
from tests.server.conftest import Daemon, Model, asked, events, until


def fits(name: str, value: Any) -> bool:
    schema = document()
    Draft202012Validator(schema | {"$ref": f"#/components/schemas/{name}"}).validate(value)
    return True


def test_a_task_is_answered_with_its_usage_and_its_price(model: Model, start: Any) -> None:
    model(lambda body: Step(text="Hello.", usage=Usage(10, 20, 300, 4000)))
    status, answer = start().task("hi", contextStrategy="layered")
    duration, session = answer.pop("duration"), answer.pop("sessionId")
    assert (status, answer) == (
        200,
        {
            "content": "Hello.",
            "usage": {"inputTokens": 10, "outputTokens": 20, "cacheReadTokens": 300, "cacheCreateTokens": 4000},
            "cost": pytest.approx((10 * 2 + 20 * 10 + 300 * 0.1 + 4000 * 2.5) / 1e6),
            "strategy": "layered",
        },
    )
    assert 0 <= duration < 20
    assert len(session) == 10


def test_the_seeds_curl_works_as_printed(model: Model, start: Any) -> None:
    plan = '{"recentTurns": 1, "memory": {"include": false}, "crossChat": false, "reasoning": "short"}'
    model(lambda body: Step(text="It is." if "haiku" not in body["model"] else plan))
    daemon = start()
    printed = """curl -X POST http://127.0.0.1:18800/task \\
-H 'Content-Type: application/json' \\
-d '{
"agent": "devops-agent",
"message": "...",
"contextStrategy": "planner",
"context": { "channel": "bench", "chatId": "bench-1", "sender": "anis" }
}'"""
    command = printed.replace("curl", "curl -s").replace("18800", str(daemon.port))
    done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=60)
    answer = json.loads(done.stdout)
    assert fits("AnswerBody", answer)
    assert (answer["content"], answer["strategy"]) == ("It is.", "planner")


def test_served_tasks_are_layered_unless_the_session_the_agent_or_the_task_says_otherwise(
    model: Model, shell: Shell, start: Any
) -> None:
    model()
    agents = "agents:\n  a: {contextStrategy: timeline}\n  devops-agent: {}\n"
    (shell.home / ".config/ra/ra.yaml").write_text(agents)
    daemon = start()
    told = [
        daemon.task(chat="1")[1]["strategy"],
        daemon.task(chat="2", agent="a")[1]["strategy"],
        daemon.task(chat="2", agent="a", contextStrategy="layered")[1]["strategy"],
        daemon.task(chat="2", agent="a")[1]["strategy"],
    ]
    assert told == ["layered", "timeline", "layered", "timeline"]


def test_a_changed_configuration_counts_from_the_next_task_and_a_broken_one_does_not(
    model: Model, shell: Shell, start: Any
) -> None:
    model()
    daemon = start()
    config = shell.home / ".config/ra/ra.yaml"
    assert daemon.task()[1]["strategy"] == "layered"
    config.write_text("agents:\n  devops-agent: {contextStrategy: timeline}\n")
    assert daemon.task()[1]["strategy"] == "timeline"
    config.write_text("agents:\n  devops-agent: {contextStrateggy: layered}\n")
    assert daemon.task()[1]["strategy"] == "timeline"
    assert "The changed configuration is not used" in daemon.log


def test_a_session_is_an_agent_a_channel_and_a_chat(model: Model, start: Any) -> None:
    model()
    daemon = start()
    places = [("telegram", "1"), ("telegram", "2"), ("discord", "1"), ("telegram", "1")]
    ids = [daemon.task(context={"channel": c, "chatId": i})[1]["sessionId"] for c, i in places]
    assert ids[0] == ids[3]
    assert len(set(ids)) == 3
    other = daemon.ask("POST", "/task", {"message": "hi", "context": {"channel": "telegram", "chatId": 1}})[1]
    assert other["sessionId"] not in ids  # another agent: the default one


def test_tasks_without_a_chat_have_nothing_to_do_with_each_other(greeter: Daemon) -> None:
    ids = {greeter.ask("POST", "/task", {"message": "hi"})[1]["sessionId"] for _ in range(3)}
    assert len(ids) == 3


def test_a_chat_streams_thinking_text_tools_usage_and_done(model: Model, start: Any, shell: Shell) -> None:
    (shell.project / "a.txt").write_text("forty-two")
    steps = [Step(thinking="Hmm.", calls=(Call("Read", {"path": "a.txt"}),)), Step(text="It is 42.")]
    model(steps)
    status, stream, headers = start().ask("POST", "/chat", {"message": "what is in a.txt?"})
    heard = events(stream)
    assert (status, headers["content-type"].split(";")[0]) == (200, "text/event-stream")
    assert {"type": "thinking", "delta": "Hmm."} in heard
    assert [e["status"] for e in heard if e["type"] == "tool"] == ["started", "ended"]
    assert "".join(e["delta"] for e in heard if e["type"] == "text") == "It is 42."
    assert [e["type"] for e in heard if e["type"] not in {"text", "thinking", "tool"}] == ["usage", "usage", "done"]
    done = heard[-1] | {}
    assert done.pop("type") == "done"
    assert fits("AnswerBody", done)
    assert done["content"] == "It is 42."


def test_a_task_with_stream_is_followed_like_a_chat(greeter: Daemon) -> None:
    heard = events(greeter.ask("POST", "/task", {"message": "hi", "stream": True})[1])
    assert [heard[0]["type"], heard[-1]["content"]] == ["text", "Hello, world."]


def test_a_failed_run_is_an_answer_with_an_error(model: Model, start: Any) -> None:
    model(api_key="another")
    daemon = start()
    status, answer = daemon.task()
    assert (status, answer["content"]) == (200, "")
    assert "key" in answer["error"].lower()
    heard = events(daemon.ask("POST", "/chat", {"message": "hi"})[1])
    assert [event["type"] for event in heard] == ["error", "done"]


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"agent": "devops-agent"}, 400, "message"),
        ({"message": " \n"}, 400, "message"),
        ({"message": 3}, 400, "message"),
        ({"message": "hi", "agent": 3}, 400, "agent"),
        ({"message": "hi", "agent": "devops-agnt"}, 404, "agent"),
        ({"message": "hi", "contextStrategy": "planer"}, 400, "contextStrategy"),
        ({"message": "hi", "contextStrategy": "./evil.py"}, 400, "contextStrategy"),
        ({"message": "hi", "contextStrateggy": "planner"}, 400, "contextStrateggy"),
        ({"message": "hi", "context": "telegram"}, 400, "context"),
        ({"message": "hi", "context": {"chat_id": "1"}}, 400, "context.chat_id"),
        ({"message": "hi", "context": {"chatId": ["1"]}}, 400, "context.chatId"),
        ({"message": "hi", "stream": "yes"}, 400, "stream"),
        ({"message": "hi", "tools": "some"}, 400, "tools"),
    ],
)
def test_a_wrong_body_is_refused_with_its_field(greeter: Daemon, body: dict[str, Any], status: int, field: str) -> None:
    got, told, _ = greeter.ask("POST", "/task", body)
    assert (got, told["field"]) == (status, field)
    assert fits("RefusalBody", told)


def test_near_names_are_suggested(greeter: Daemon) -> None:
    agent = greeter.ask("POST", "/task", {"message": "hi", "agent": "devops-agnt"})[1]
    strategy = greeter.ask("POST", "/task", {"message": "hi", "contextStrategy": "planer"})[1]
    assert "Did you mean devops-agent?" in agent["error"]
    assert "did you mean planner?" in strategy["error"]


def test_half_an_emoji_does_not_lose_the_message(model: Model, start: Any) -> None:
    server = model()
    status, _, _ = start().ask("POST", "/task", b'{"message": "good \\ud83d morning"}')
    assert status == 200
    assert "good ? morning" in asked(server.bodies[-1])


def test_sessions_are_listed_and_shown(model: Model, start: Any) -> None:
    model()
    daemon = start()
    session = daemon.task("first question")[1]["sessionId"]
    listed = daemon.get("/sessions")["sessions"]
    shown = daemon.get(f"/sessions/{session}")
    assert all(fits("SessionBody", one) for one in listed)
    assert fits("SessionWithMessages", shown)
    assert [one["id"] for one in listed] == [session]
    assert (shown["agent"], shown["channel"], shown["chatId"]) == ("devops-agent", "test", "c1")
    assert shown["messages"][0]["content"] == "first question"
    assert shown["messages"][-1]["content"] == "Hello, world."


@pytest.mark.parametrize("path", ["/sessions/0000000000", "/sessions/..%2f..%2fetc", "/sessions/%00", "/nothing"])
def test_what_there_is_not_is_not_found(greeter: Daemon, path: str) -> None:
    assert greeter.ask("GET", path)[0] == 404


def test_health_and_the_document_need_no_body(greeter: Daemon) -> None:
    assert greeter.get("/healthz") == {"status": "ok", "running": 0, "waiting": 0}
    assert greeter.get("/openapi.json") == document()


def test_the_openapi_document_has_every_field_that_a_task_may_have() -> None:
    task = document()["components"]["schemas"]["TaskBody"]
    assert set(task["properties"]) == {"agent", "message", "contextStrategy", "context", "stream", "tools"}
    assert task["required"] == ["message"]


def test_the_openapi_document_has_every_route() -> None:
    described = {(method.upper(), path) for path, methods in document()["paths"].items() for method in methods}
    assert described == {(method, path) for method, path, _ in ROUTES} - {("GET", "/openapi.json")}


def test_the_openapi_document_holds_together() -> None:
    made = document()
    Draft202012Validator.check_schema({"$defs": made["components"]["schemas"]})
    names = {part.split('"')[0] for part in json.dumps(made).split("#/components/schemas/")[1:]}
    assert names <= set(made["components"]["schemas"])
    operations = [one for path in made["paths"].values() for one in path.values()]
    assert len({one["operationId"] for one in operations}) == len(operations)
    assert all("200" in one["responses"] for one in operations)


@pytest.mark.parametrize(
    ("tools", "flags", "written"),
    [("all", ("--write",), True), ("all", (), False), ("read-only", ("--write", "--allow", "Write"), False)],
)
def test_nothing_asks_and_read_only_tasks_never_write(
    model: Model, start: Any, shell: Shell, tools: str, flags: tuple[str, ...], written: bool
) -> None:
    model([Step(calls=(Call("Write", {"path": "new.txt", "content": "x"}),)), Step(text="Done.")])
    status, answer = start(*flags).task("write it", tools=tools)
    assert (status, answer["content"]) == (200, "Done.")
    assert (shell.project / "new.txt").exists() is written


def test_read_only_tasks_run_no_command_and_none_have_no_tools(model: Model, start: Any, shell: Shell) -> None:
    server = model([Step(calls=(Call("Bash", {"command": "touch ran"}),)), Step(text="Done."), Step(text="None.")])
    daemon = start()
    daemon.task("restart daemond", tools="read-only", chat="1")
    daemon.task("restart daemond", tools="none", chat="2")
    assert not (shell.project / "ran").exists()
    assert "Refused" in json.dumps(server.bodies[1]["messages"][-1])
    assert not server.bodies[2].get("tools")


def test_references_in_a_message_are_not_expanded(model: Model, start: Any, shell: Shell) -> None:
    (shell.project / "secret.txt").write_text("the word is xyzzy")
    server = model()
    start().task("look at @secret.txt")
    assert "xyzzy" not in json.dumps(server.bodies)


def test_the_log_is_text_or_json(model: Model, start: Any) -> None:
    model()
    daemon = start("--log-format", "json")
    daemon.task()
    until(lambda: "answered" in daemon.log)
    lines = [json.loads(line) for line in daemon.log.splitlines()]
    assert {line["event"] for line in lines} >= {"started", "task"}
    assert all(line["level"] in {"info", "warning"} and line["text"] for line in lines)


def test_a_change_that_is_not_trusted_is_not_used(model: Model, shell: Shell, start: Any) -> None:
    model()
    daemon = start()
    assert daemon.task()[0] == 200
    (shell.project / "hook.py").write_text("def before_model_call(ctx): raise SystemExit")
    (shell.project / "ra.yaml").write_text("agent: {middleware: {beforeModelCall: [./hook.py]}}\n")
    assert daemon.task()[1]["content"] == "Hello, world."
    assert "is not trusted" in daemon.log


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nothing", 404), ("GET", "/task", 405)])
def test_what_is_not_there_is_named_with_the_way_on(greeter: Daemon, method: str, path: str, status: int) -> None:
    found, told = greeter.ask(method, path)[:2]

    assert found == status
    assert told["error"] == f"There is no {method} {path} here; GET /openapi.json describes what there is."
