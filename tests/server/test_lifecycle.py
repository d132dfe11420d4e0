"""Is anything lost? Clients that vanish, servers that are stopped or killed, keys that come twice."""

import contextlib
import signal
import socket
import sqlite3
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ra.core.facts import Interrupted
from ra.providers.script import Step
from ra.timeline.sqlite import SqliteStore
from tests.cli.conftest import RA, Shell
from tests.server.conftest import Daemon, Model, asked, events, until


def slow(seconds: float) -> Any:
    """A model that begins at once and takes its time to end; it repeats what it was asked."""

    def script(body: dict[str, Any]) -> Step:
        return Step(text=f"You said: {asked(body)[-20:]}", delay_s=seconds)

    return script


def test_a_client_that_vanishes_does_not_lose_its_task(model: Model, start: Any) -> None:
    model(lambda body: Step(text="Hello, world.", delay_s=1.0))
    daemon = start()
    daemon.send_and_go("hi", "v1")
    until(lambda: daemon.messages("v1") == [("user", "hi"), ("assistant", "Hello, world.")])


def test_a_stream_whose_reader_vanishes_does_not_lose_its_task(model: Model, start: Any) -> None:
    model(lambda body: Step(text="one two three four", pace_s=0.3))
    daemon: Daemon = start()
    head = "POST /chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    body = b'{"message": "hi", "context": {"channel": "test", "chatId": "v2"}}'
    with socket.create_connection((daemon.host, daemon.port)) as client:
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert b"200 OK" in client.recv(1000)
    until(lambda: daemon.messages("v2") == [("user", "hi"), ("assistant", "one two three four")])


def test_a_second_daemon_on_the_port_ends_with_one_clear_line(model: Model, start: Any, shell: Shell) -> None:
    model()
    first: Daemon = start()
    second = shell.ra("serve", "--port", str(first.port))
    assert (second.returncode, second.stdout) == (1, b"")
    assert second.stderr.count(b"\n") == 1
    assert f"127.0.0.1:{first.port} cannot be used: Address already in use".encode() in second.stderr
    assert first.get("/healthz")["status"] == "ok"


def test_the_same_key_runs_a_task_once_also_while_it_is_running(model: Model, start: Any) -> None:
    server = model(lambda body: Step(text="Hello, world.", delay_s=0.5))
    daemon = start()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: daemon.task("hi", key="k-1"), range(4)))
    again = daemon.task("hi", key="k-1")
    assert answers == [again] * 4
    assert again[0] == 200
    assert len(server.requests) == 1
    heard = events(
        daemon.ask(
            "POST",
            "/chat",
            {"agent": "devops-agent", "message": "hi", "context": {"channel": "test", "chatId": "c1"}},
            {"Idempotency-Key": "k-1"},
        )[1]
    )
    assert [event["type"] for event in heard] == ["text", "done"]
    assert len(server.requests) == 1


def test_the_same_key_runs_a_task_that_names_no_chat_once(model: Model, start: Any) -> None:
    server = model()
    daemon = start()
    first = daemon.task("hi", key="k", context={})
    assert (first[0], daemon.task("hi", key="k", context={})) == (200, first)
    assert len(server.requests) == 1
    assert daemon.task("hi", key="k", context={"chatId": "c1"})[0] == 422


def test_a_key_with_another_task_is_refused(model: Model, start: Any) -> None:
    model()
    daemon = start()
    assert daemon.task("hi", key="k")[0] == 200
    assert daemon.task("ho", key="k")[0] == 422


def test_a_key_holds_over_a_restart(model: Model, start: Any) -> None:
    server = model()
    first = start()
    answer = first.task("hi", key="k")
    assert first.stop() == 128 + signal.SIGTERM
    assert start().task("hi", key="k") == answer
    assert len(server.requests) == 1


def test_a_stopped_server_lets_running_tasks_end(model: Model, start: Any) -> None:
    model(lambda body: Step(text="Hello, world.", delay_s=1.0))
    daemon = start()
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(daemon.task, "hi")
        until(lambda: daemon.get("/healthz")["running"] == 1)
        daemon.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        late = daemon.ask("POST", "/task", {"message": "too late"})
        answer = running.result()
    assert (answer[0], answer[1]["content"]) == (200, "Hello, world.")
    assert (late[0], late[2]["retry-after"]) == (503, "5")
    assert daemon.stop() == 143


def test_tasks_that_do_not_end_in_time_are_recorded_as_interrupted(model: Model, start: Any, shell: Shell) -> None:
    model(lambda body: Step(text="one two three four five six", pace_s=1.0))
    daemon = start("--grace", "0.5")
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(daemon.task, "hi")
        until(lambda: daemon.get("/healthz")["running"] == 1)
        time.sleep(1)
        assert daemon.stop() == 143
        status, answer = running.result()
    assert (status, answer["error"].split(":")[0]) == (503, "Interrupted")
    facts = [event.fact for event in _events(shell, answer["sessionId"])]
    assert [fact for fact in facts if isinstance(fact, Interrupted)]
    assert facts[0].message.text == "hi"


def test_a_second_signal_does_not_wait_for_the_grace(model: Model, start: Any) -> None:
    model(lambda body: Step(text="Hello.", delay_s=120))
    daemon = start("--grace", "120")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(daemon.task, "hi")
        until(lambda: daemon.get("/healthz")["running"] == 1)
        began = time.monotonic()
        daemon.process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        assert daemon.stop(signal.SIGINT) == 130
        assert running.result()[0] == 503
    assert time.monotonic() - began < 60


def test_what_waited_when_the_server_stopped_is_refused_or_kept(model: Model, start: Any, shell: Shell) -> None:
    """A client that waits hears of it and can send again; the task of one that is gone is in its session."""
    model(lambda body: Step(text="Hello.", delay_s=30))
    daemon = start("--grace", "0.3")
    threads = [threading.Thread(target=daemon.task, args=("first", "w1"), daemon=True)]
    threads[0].start()
    until(lambda: daemon.get("/healthz")["running"] == 1)
    answers: list[Any] = []
    threads.append(threading.Thread(target=lambda: answers.append(daemon.task("second", "w1", key="k"))))
    threads[1].start()
    until(lambda: daemon.get("/healthz")["waiting"] == 1)
    daemon.send_and_go("third", "w1")
    until(lambda: daemon.get("/healthz")["waiting"] == 2)
    time.sleep(0.3)
    assert daemon.stop() == 143
    for thread in threads:
        thread.join(10)
    assert [status for status, _ in answers] == [503]
    store = SqliteStore(Path(shell.env["RA_HOME"]) / "ra.db")
    session = store.find("devops-agent", "test", "w1")
    assert session
    said = [fact.message.text for e in _events(shell, session) if (fact := e.fact).__class__.__name__ == "Said"]
    assert "first" in said
    assert "second" not in said
    assert "third" in said


def test_after_kill_9_nothing_is_lost_and_a_begun_task_is_not_run_twice(model: Model, start: Any, shell: Shell) -> None:
    server = model(lambda body: Step(text="Hello.", delay_s=0.0 if "again" in asked(body) else 30.0))
    daemon = start()
    threading.Thread(target=lambda: _quietly(daemon, "hi", "k"), daemon=True).start()
    until(lambda: server.requests)
    daemon.stop(signal.SIGKILL)
    second = start()
    status, answer = second.task("hi", key="k")
    assert (status, answer["content"]) == (503, "")
    assert "Interrupted" in answer["error"]
    assert len(server.requests) == 1
    assert second.task("try again")[1]["content"] == "Hello."
    said = second.messages("c1")
    assert (said[0], said[-1]) == (("user", "hi"), ("assistant", "Hello."))
    database = sqlite3.connect(Path(shell.env["RA_HOME"]) / "ra.db")
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_session_that_another_process_writes_is_busy(model: Model, start: Any, shell: Shell) -> None:
    model(lambda body: Step(text="Hello.", delay_s=4.0 if "slow" in asked(body) else 0.0))
    first = start()
    session = first.task("hi")[1]["sessionId"]
    first.stop()
    other = subprocess.Popen(
        [RA, "--resume", session, "slow"], cwd=shell.project, env=shell.env, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    until(lambda: list((Path(shell.env["RA_HOME"]) / "locks").glob("*.lock")))
    body = {"agent": "devops-agent", "message": "hi", "context": {"channel": "test", "chatId": "c1"}}
    status, told, headers = start().ask("POST", "/task", body)
    assert (status, "in use" in told["error"], headers["retry-after"]) == (429, True, "5")
    assert other.communicate(timeout=30)[0] == b"Hello.\n"


def test_a_rule_that_cannot_be_read_ends_it_at_the_start(model: Model, shell: Shell) -> None:
    model()
    done = shell.ra("serve", "--port", "0", "--allow", "bash(")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"rule" in done.stderr


def test_without_a_key_for_the_model_the_server_does_not_start(shell: Shell) -> None:
    done = shell.ra("serve", "--port", "0", "--set", "agent.provider=anthropic")
    assert (done.returncode, done.stdout) == (2, b"")


def test_agentx_daemon_is_the_same_program(model: Model, shell: Shell) -> None:
    model()
    agentx = str(Path(RA).parent / "agentx")
    process = subprocess.Popen(
        [agentx, "daemon", "--port", "0"], cwd=shell.project, env=shell.env, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout
    assert process.stdout.readline().startswith(b"http://127.0.0.1:")
    process.terminate()
    assert process.wait(10) == 143
    process.stdout.close()


def _quietly(daemon: Daemon, message: str, key: str) -> None:
    try:
        daemon.task(message, key=key)
    except OSError:
        return  # that server was killed


def _events(shell: Shell, session: str) -> list[Any]:
    return list(SqliteStore(Path(shell.env["RA_HOME"]) / "ra.db").open(session, write=False).events())


def test_a_damaged_store_is_told_and_the_server_goes_on_when_it_is_moved_away(
    model: Model, start: Any, shell: Shell
) -> None:
    model()
    daemon: Daemon = start()
    assert daemon.task("before", "a")[0] == 200
    store = Path(shell.env["RA_HOME"]) / "ra.db"
    with contextlib.closing(sqlite3.connect(store)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with store.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 5 * 4096)
    body = {"message": "during", "context": {"channel": "test", "chatId": "new"}}
    status, told, headers = daemon.ask("POST", "/task", body)
    assert (status, "is damaged" in told["error"], headers["retry-after"]) == (503, True, "2")
    run = daemon.get(f"/runs/{headers['run-id']}")
    assert (run["state"], run["error"]) == ("failed", told["error"])  # nothing was interrupted: it never began
    for path in store.parent.glob("ra.db*"):
        path.rename(path.with_name(f"away-{path.name}"))
    assert "error" not in daemon.task("after", "new")[1]
    assert daemon.messages("new") == [("user", "after"), ("assistant", "Hello, world.")]


def test_a_server_whose_store_is_damaged_says_that_it_is_not_ready_and_is_when_it_is_moved_away(
    model: Model, start: Any, shell: Shell
) -> None:
    model()
    store = Path(shell.env["RA_HOME"]) / "ra.db"
    store.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    store.write_bytes(b"rubbish" * 1000)
    daemon: Daemon = start()
    status, told, _ = daemon.ask("GET", "/healthz")
    assert (status, told["status"], "is damaged" in told["reason"]) == (503, "unready", True)
    assert daemon.ask("GET", "/livez")[0] == 200  # to start it again would not help
    store.unlink()
    assert daemon.get("/healthz")["status"] == "ok"


def test_a_store_that_can_be_read_and_refuses_a_task_makes_the_server_unready_until_one_begins(
    model: Model, start: Any, shell: Shell
) -> None:
    model()
    daemon: Daemon = start()
    assert daemon.task("before", "a")[0] == 200
    store = Path(shell.env["RA_HOME"]) / "ra.db"
    with contextlib.closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute("CREATE TRIGGER no BEFORE INSERT ON sessions BEGIN SELECT raise(ABORT, 'told so'); END")
        assert daemon.task("refused", "b")[0] == 503
        status, told, _ = daemon.ask("GET", "/healthz")
        assert (status, "told so" in told["reason"]) == (503, True)
        connection.execute("DROP TRIGGER no")
    assert daemon.task("after", "b")[0] == 200
    assert daemon.get("/healthz")["status"] == "ok"
