"""Several workers on one PostgreSQL database: any of them takes, runs, tells and cancels any task."""

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any

import pytest

pytest.importorskip("procrastinate", reason="the extra `postgres` is not installed")

import psycopg

from ra.providers.script import Step
from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell
from tests.postgres import PostgresServer
from tests.server.conftest import AGENTS, Daemon, Model, asked, events, until


@pytest.fixture
def url(postgres: PostgresServer, shell: Shell) -> str:
    address = postgres.fresh()
    agents = AGENTS.replace("}", ", budget: {dollars: 5, per: day}}")
    (shell.home / ".config/ra/ra.yaml").write_text(f"{agents}app: {{store: '{address}'}}\n")
    return address


@pytest.fixture
def workers(shell: Shell, url: str) -> Iterator[Callable[[int], list[Daemon]]]:
    running: list[Daemon] = []

    def started(number: int) -> list[Daemon]:
        with ThreadPoolExecutor(number) as pool:
            daemons = list(pool.map(lambda _: Daemon(shell), range(number)))
        running.extend(daemons)
        for daemon in daemons:
            until(lambda: daemon.ask("GET", "/healthz")[0] == 200)  # noqa: B023 - called at once
        return daemons

    yield started
    for daemon in running:
        daemon.end()


def words(body: dict[str, Any]) -> str:
    return asked(body).splitlines()[0]


def test_tasks_of_a_chat_run_in_order_one_at_a_time_on_whichever_worker(
    workers: Callable[[int], list[Daemon]], model: Model
) -> None:
    server = model(lambda body: Step(text=f"to {words(body)}", delay_s=0.05))
    one, two = workers(2)
    statuses: list[int] = []

    def send(number: int, chat: str) -> None:
        statuses.append((one, two)[number % 2].task(f"{chat}-{number}", chat)[0])

    threads = []
    for number in range(6):  # in turns to both workers, each accepted before the next is sent
        for chat in ("a", "b"):
            thread = threading.Thread(target=send, args=(number, chat))
            thread.start()
            threads.append(thread)
        time.sleep(0.03)
        until(lambda: len(one.get("/runs?limit=500")["runs"]) >= 2 * (number + 1))  # noqa: B023 - called at once
    for thread in threads:
        thread.join()
    assert statuses == [200] * 12
    for chat in ("a", "b"):
        said = one.messages(chat)
        assert said == [
            pair for number in range(6) for pair in (("user", f"{chat}-{number}"), ("assistant", f"to {chat}-{number}"))
        ]
    assert len(server.bodies) == 12


def test_a_client_of_any_worker_gets_the_stream_the_state_and_the_answer(
    workers: Callable[[int], list[Daemon]], model: Model
) -> None:
    model(lambda body: Step(text="one two three four five six", pace_s=0.1))
    one, two = workers(2)
    body = {"message": "hi", "context": {"channel": "test", "chatId": "s"}}
    heard: list[str] = []
    sending = threading.Thread(target=lambda: heard.append(one.ask("POST", "/chat", body)[1]))
    sending.start()
    (run,) = until(lambda: two.get("/runs?state=running")["runs"])
    followed = [daemon.ask("GET", f"/runs/{run['id']}/events")[1] for daemon in (two, one)]
    sending.join()
    assert followed[0] == followed[1] == heard[0].replace(": working\n\n", "")
    text = "".join(event["delta"] for event in events(heard[0]) if event["type"] == "text")
    assert text == "one two three four five six"
    assert len([1 for event in events(heard[0]) if event["type"] == "text"]) > 2
    assert {daemon.get(f"/runs/{run['id']}")["state"] for daemon in (one, two)} == {"succeeded"}
    rest = two.ask("GET", f"/runs/{run['id']}/events", headers={"Last-Event-ID": "3"})[1]
    assert heard[0].replace(": working\n\n", "").endswith(rest)
    assert rest.startswith("id: 4\n")


@pytest.mark.parametrize("path", ["/runs?agent=%00", "/runs?chatId=a%00", "/runs/%00", "/runs/%00/events"])
def test_a_name_that_no_row_can_have_matches_nothing(
    workers: Callable[[int], list[Daemon]], model: Model, path: str
) -> None:
    model()
    status, body, _ = workers(1)[0].ask("GET", path)
    assert (status, body) in (
        (200, {"runs": []}),
        (404, {"error": "There is no such run; those that ended are forgotten after a while."}),
    )


def test_a_key_runs_once_however_many_workers_are_sent_it(workers: Callable[[int], list[Daemon]], model: Model) -> None:
    server = model(lambda body: Step(text="Done.", delay_s=0.2))
    pair = workers(2)
    with ThreadPoolExecutor(8) as pool:
        sent = [pool.submit(pair[n % 2].task, "once", "k", key=f"key-{n // 4}") for n in range(8)]
        answers = [future.result() for future in sent]
    assert [status for status, _ in answers] == [200] * 8
    assert len(server.bodies) == 2
    assert pair[0].task("other", "k", key="key-0")[0] == 422
    assert pair[1].task("once", "k", key="key-0") == answers[0]


def test_a_run_is_cancelled_from_another_worker(workers: Callable[[int], list[Daemon]], model: Model) -> None:
    model(lambda body: Step(text="slow", delay_s=30))
    one, two = workers(2)
    answers: list[tuple[int, Any]] = []
    threads = [
        threading.Thread(target=lambda: answers.append(one.task("hi", "c"))),
        threading.Thread(target=lambda: answers.append(one.task("behind", "c"))),
    ]
    threads[0].start()
    (run,) = until(lambda: two.get("/runs?state=running")["runs"])
    threads[1].start()
    (behind,) = until(lambda: two.get("/runs?state=waiting")["runs"])
    for id in (behind["id"], run["id"]):
        assert two.ask("DELETE", f"/runs/{id}")[0] == 200
    for thread in threads:
        thread.join(20)
    assert {(status, body["error"].split(" ")[0].rstrip(".")) for status, body in answers} == {(503, "Cancelled")}
    assert {item["state"] for item in one.get("/runs")["runs"]} == {"cancelled"}


def test_a_dead_worker_gives_its_tasks_back_and_what_it_had_begun_is_told_as_interrupted(
    workers: Callable[[int], list[Daemon]], model: Model
) -> None:
    server = model(lambda body: Step(text="Done.", delay_s=0 if "waiting" in asked(body) else 30))
    (dying,) = workers(1)
    dying.send_and_go("begun", "d", key="kb")
    until(lambda: server.bodies)  # a run is begun a moment before its model is asked
    dying.send_and_go("waiting", "d", key="kw")
    dying.process.kill()
    dying.process.wait()
    (living,) = workers(1)
    assert living.task("waiting", "d", key="kw")[1]["content"] == "Done."
    status, told = living.task("begun", "d", key="kb")
    assert (status, told["error"].split(":")[0]) == (503, "Interrupted")
    assert len(server.bodies) == 2
    assert {run["state"] for run in living.get("/runs")["runs"]} == {"interrupted", "succeeded"}
    assert [text for role, text in living.messages("d") if role == "user"] == ["begun", "waiting"]


def test_a_worker_that_stops_leaves_what_waits_to_the_others(
    workers: Callable[[int], list[Daemon]], model: Model
) -> None:
    release = threading.Event()

    def script(body: dict[str, Any]) -> Step:
        if words(body) == "first":
            release.wait(20)
        return Step(text=f"to {words(body)}")

    model(script)
    one, two = workers(2)
    one.send_and_go("first", "g")
    one.send_and_go("second", "g", key="second")
    release.set()
    assert one.stop() == 143
    assert two.task("second", "g", key="second")[1]["content"] == "to second"
    assert [text for role, text in two.messages("g") if role == "assistant"] == ["to first", "to second"]


def test_a_database_that_goes_away_is_told_and_the_worker_comes_back_with_it(
    workers: Callable[[int], list[Daemon]], model: Model, postgres: PostgresServer
) -> None:
    release = threading.Event()

    def script(body: dict[str, Any]) -> Step:
        if words(body) == "long":
            release.wait(30)
        return Step(text="Done.")

    server = model(script)
    (daemon,) = workers(1)
    daemon.send_and_go("long", "l", key="long")
    until(lambda: daemon.get("/runs?state=running")["runs"] and server.bodies)
    postgres.stop()
    try:
        until(lambda: daemon.ask("GET", "/healthz")[0] == 503)
        status, told, headers = daemon.ask("POST", "/task", {"message": "hi"})
        assert (status, "cannot be used" in told["error"], headers["retry-after"]) == (503, True, "2")
        assert daemon.ask("GET", "/livez")[0] == 200
        release.set()  # the model answers while the database is away: its answer is paid, and must not be lost
        until(lambda: "The run continues when the database is back." in daemon.log)
    finally:
        postgres.start()
    until(lambda: daemon.ask("GET", "/healthz")[0] == 200)
    assert daemon.task("hi", "h")[1]["content"] == "Done."
    status, answer = daemon.task("long", "l", key="long")
    assert (status, answer["content"], "error" in answer) == (200, "Done.", False)
    assert daemon.messages("l") == [("user", "long"), ("assistant", "Done.")]
    assert len(server.bodies) == 2


def test_a_database_that_stands_still_holds_nobody_up_for_ever_and_costs_no_run(
    workers: Callable[[int], list[Daemon]], model: Model, postgres: PostgresServer
) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def slow(body: dict[str, Any]) -> Step:
        reached.set()
        go_on.wait(60)
        return Step(text="done")

    model(slow)
    (daemon,) = workers(1)
    answers: list[Any] = []
    running = threading.Thread(target=lambda: answers.append(daemon.task("before", "a")))
    running.start()
    assert reached.wait(30)
    with postgres.standing_still():
        go_on.set()
        assert daemon.task("meanwhile", "b")[0] == 503
        assert until(lambda: daemon.ask("GET", "/healthz")[0] == 503)
        assert daemon.ask("GET", "/livez")[0] == 200
    until(lambda: daemon.ask("GET", "/healthz")[0] == 200)
    running.join(60)
    assert [(status, body["content"]) for status, body in answers] == [(200, "done")]
    assert daemon.task("after", "b")[0] == 200


def test_a_task_that_its_worker_lost_sight_of_goes_back_into_the_queue(
    workers: Callable[[int], list[Daemon]], model: Model, url: str
) -> None:
    server = model(lambda body: Step(text="Done.", delay_s=5 if words(body) == "busy" else 0))
    (daemon,) = workers(1)
    with ThreadPoolExecutor(8) as pool:  # as many as a worker runs at once
        list(pool.map(lambda number: daemon.send_and_go("busy", f"b{number}"), range(8)))
    until(lambda: len(daemon.get("/runs?state=running")["runs"]) == 8)
    daemon.send_and_go("mislaid", "m", key="mislaid")
    with psycopg.connect(url, autocommit=True) as connection:  # as when the connection breaks while a job is fetched
        connection.execute(
            "UPDATE procrastinate_jobs SET status = 'doing', worker_id = (SELECT id FROM procrastinate_workers) "
            "WHERE status = 'todo'"
        )
    assert daemon.task("mislaid", "m", key="mislaid")[1]["content"] == "Done."
    assert len(server.bodies) == 9


def test_a_full_queue_refuses_with_429(workers: Callable[[int], list[Daemon]], shell: Shell) -> None:
    release = threading.Event()

    def script(body: dict[str, Any]) -> Step:
        release.wait(30)
        return Step(text="Done.")

    with LoopbackServer("anthropic", script) as server:
        shell.serve(server)
        (daemon,) = workers(1)
        statuses: list[int] = []
        retry: list[str] = []

        def send(number: int) -> None:
            body = json.dumps({"message": "hi", "context": {"channel": "t", "chatId": f"f{number}"}}).encode()
            status, _, headers = daemon.ask("POST", "/task", body)
            statuses.append(status)
            if status == 429:
                retry.append(headers["retry-after"])

        threads = [threading.Thread(target=send, args=(number,)) for number in range(160)]
        for thread in threads:
            thread.start()
        until(lambda: statuses.count(429) > 0)
        release.set()
        for thread in threads:
            thread.join()
    assert set(statuses) == {200, 429}
    assert all(1 <= int(seconds) <= 60 for seconds in retry)


def test_several_workers_on_one_socket_are_replaced_without_turning_anybody_away(
    shell: Shell, url: str, model: Model
) -> None:
    model(lambda body: Step(text="Done.", delay_s=0.1))
    daemon = Daemon(shell, "--workers", "2")
    try:
        until(lambda: daemon.ask("GET", "/healthz")[0] == 200)
        stop = threading.Event()

        def send(chat: str, *, keep_alive: bool) -> list[int]:
            """Statuses of tasks, each on a connection of its own or all on one for as long as the server keeps it."""
            statuses = []
            connection = HTTPConnection(daemon.host, daemon.port, timeout=60)
            while not stop.is_set():
                body = json.dumps({"message": "hi", "context": {"channel": "test", "chatId": chat}})
                connection.request("POST", "/task", body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                answer.read()
                statuses.append(answer.status)
                if not keep_alive:
                    connection.close()
            return statuses

        with ThreadPoolExecutor(4) as pool:
            clients = [pool.submit(send, f"w{number}", keep_alive=number == 0) for number in range(4)]
            try:
                daemon.process.send_signal(signal.SIGHUP)
                until(lambda: "all workers are new" in daemon.log, 60)
            finally:
                stop.set()
        assert [set(client.result()) for client in clients] == [{200}] * 4
        assert daemon.stop() == 143
        assert "all workers stopped" in daemon.log
    finally:
        daemon.end()


def test_workers_need_a_store_that_they_can_share(shell: Shell, model: Model) -> None:
    model()
    done = shell.ra("serve", "--workers", "2", "--port", "0")
    assert (done.returncode, b"postgresql://" in done.stderr) == (2, True)
