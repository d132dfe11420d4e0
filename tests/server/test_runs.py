"""Every task is a run: its state can be asked for, its events followed and resumed, and it can be cancelled."""

import json
import threading
from typing import Any

from ra.providers.script import Step
from ra.server.openapi import document
from tests.server.conftest import Daemon, Model, until


def in_background(daemon: Daemon, message: str, chat: str, **more: Any) -> threading.Thread:
    thread = threading.Thread(target=daemon.task, args=(message, chat), kwargs=more)
    thread.start()
    return thread


def frames(stream: str) -> list[tuple[str, str]]:
    """The id (empty where there is none) and the rest of each event."""
    parts = [part for part in stream.split("\n\n") if part and not part.startswith(":")]
    split = [part.partition("\n") if part.startswith("id: ") else ("id: ", "", part) for part in parts]
    return [(head.removeprefix("id: "), rest) for head, _, rest in split]


def test_a_run_has_an_id_a_state_and_a_bill(model: Model, start: Any) -> None:
    model(lambda body: Step(text="Hello.", delay_s=0.5))
    daemon: Daemon = start()
    sending = in_background(daemon, "hi", "r1")
    (running,) = until(lambda: daemon.get("/runs?state=running")["runs"])
    assert (running["chatId"], running["state"], running["cost"]) == ("r1", "running", None)
    sending.join()
    ended = daemon.get(f"/runs/{running['id']}")
    assert (ended["state"], "error" in ended) == ("succeeded", False)
    assert ended["usage"]["outputTokens"] > 0
    assert ended["cost"] > 0
    assert ended["sessionId"] == daemon.get("/sessions")["sessions"][0]["id"]
    assert [run["id"] for run in daemon.get("/runs?agent=devops-agent&chatId=r1")["runs"]] == [running["id"]]
    assert daemon.get("/runs?chatId=other")["runs"] == []
    status, told, _ = daemon.ask("GET", "/runs?state=odd")
    assert (status, told["field"]) == (400, "state")


def test_a_task_names_its_run(model: Model, start: Any) -> None:
    model()
    daemon: Daemon = start()
    status, _, headers = daemon.ask("POST", "/task", {"message": "hi"})
    assert (status, daemon.get(f"/runs/{headers['run-id']}")["state"]) == (200, "succeeded")


def test_events_are_resumed_where_the_client_lost_them(model: Model, start: Any) -> None:
    model(lambda body: Step(text="one two three four five", pace_s=0.05))
    daemon: Daemon = start()
    sending = in_background(daemon, "hi", "r2")
    (run,) = until(lambda: daemon.get("/runs")["runs"])
    followed = frames(daemon.ask("GET", f"/runs/{run['id']}/events")[1])  # while it runs, to its end
    sending.join()
    again = frames(daemon.ask("GET", f"/runs/{run['id']}/events")[1])
    assert followed == again
    numbers = [int(number) for number, _ in again if number]
    assert numbers == list(range(1, len(numbers) + 1))
    assert again[-1][1].startswith("event: done")
    later = frames(daemon.ask("GET", f"/runs/{run['id']}/events", headers={"Last-Event-ID": "2"})[1])
    assert later == again[2:]
    assert daemon.ask("GET", f"/runs/{run['id']}/events", headers={"Last-Event-ID": "x"})[0] == 400


def test_a_hanging_run_is_cancelled_and_its_chat_goes_on(model: Model, start: Any) -> None:
    delays = [60.0, 0.0]
    server = model(lambda body: Step(text="Hello.", delay_s=delays.pop(0)))
    daemon: Daemon = start()
    answers: list[Any] = []
    sending = threading.Thread(target=lambda: answers.append(daemon.task("hang", "r3", key="k")))
    sending.start()
    until(lambda: server.bodies)  # the model was asked
    (run,) = daemon.get("/runs?state=running")["runs"]
    assert daemon.ask("DELETE", f"/runs/{run['id']}")[0] == 200
    sending.join(20)
    assert [(status, body["error"]) for status, body in answers] == [
        (503, "Cancelled. What was done so far is in the session.")
    ]
    assert daemon.get(f"/runs/{run['id']}")["state"] == "cancelled"
    assert daemon.task("hi", "r3")[1]["content"] == "Hello."
    assert daemon.ask("DELETE", f"/runs/{run['id']}")[0] == 200  # has ended: nothing more happens
    assert daemon.ask("DELETE", "/runs/none")[0] == 404


def test_a_waiting_run_is_cancelled_before_it_begins(model: Model, start: Any) -> None:
    server = model(lambda body: Step(text="Hello.", delay_s=1.0))
    daemon: Daemon = start()
    first = in_background(daemon, "first", "r4")
    until(lambda: daemon.get("/runs?state=running")["runs"])
    answers: list[Any] = []
    second = threading.Thread(target=lambda: answers.append(daemon.task("second", "r4")))
    second.start()
    (waiting,) = until(lambda: daemon.get("/runs?state=waiting")["runs"])
    daemon.ask("DELETE", f"/runs/{waiting['id']}")
    second.join(5)
    first.join()
    assert [(status, body["error"]) for status, body in answers] == [(503, "Cancelled before it was begun.")]
    assert len(server.bodies) == 1


def test_the_document_describes_runs() -> None:
    assert set(document()["paths"]["/runs/{id}"]) == {"get", "delete"}
    assert set(document()["components"]["schemas"]["RunBody"]["properties"]) >= {"id", "state", "usage", "cost"}


def test_metrics_and_the_json_log_count_tokens_and_dollars(model: Model, start: Any) -> None:
    model()
    daemon: Daemon = start("--log-format", "json")
    answer = daemon.task("hi", "m1")[1]
    lines = daemon.get("/metrics").splitlines()
    usage = answer["usage"]
    assert 'ra_runs_total{outcome="answered"} 1' in lines
    assert f'ra_tokens_total{{kind="input"}} {usage["inputTokens"]}' in lines
    assert f'ra_tokens_total{{kind="output"}} {usage["outputTokens"]}' in lines
    assert any(line.startswith("ra_dollars_total 0.0") for line in lines)
    assert {"ra_tasks_running 0", "ra_tasks_waiting 0"} <= set(lines)
    logged = [json.loads(line) for line in daemon.log.splitlines() if '"tokens"' in line]
    assert [(line["tokens"], line["dollars"]) for line in logged] == [(usage, answer["cost"])]
