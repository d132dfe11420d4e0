"""Workers are killed while clients send tasks: is every task that was accepted told exactly once, and paid once?

`python -m tests.server.chaos` runs it at full size: 4 workers, 200 chats of 10 tasks, a worker killed every 2 seconds,
PostgreSQL restarted once.
"""

import argparse
import contextlib
import http.client
import json
import random
import re
import socket
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from ra.core.facts import Said, Spent
from ra.providers.script import Step
from ra.testing.server import LoopbackServer
from ra.timeline.postgres import PostgresStore
from ra.timeline.spending import DailyLimits, DailySpending, PostgresSpending
from tests.cli.conftest import Shell
from tests.postgres import PostgresServer, programs
from tests.server.conftest import Daemon, asked

AGENT = "devops-agent"
ANSWER_S = 240.0


class Plan(msgspec.Struct, frozen=True):
    workers: int = 4
    chats: int = 200
    tasks: int = 10
    kill_every_s: float = 2.0
    model_s: float = 0.2
    budget: float = 200.0
    clients: int = 40


class Outcome(msgspec.Struct):
    """What clients, model, sessions and ledger say at the end."""

    answers: dict[str, tuple[int, str]] = {}
    calls: Counter[str] = Counter()
    said: dict[str, list[int]] = {}
    billed: Decimal = Decimal(0)
    ledger: Decimal = Decimal(0)
    states: Counter[str] = Counter()
    kills: int = 0
    bugs: list[str] = []
    seconds: float = 0

    def faults(self, plan: Plan) -> list[str]:
        faults = [f"{len(self.answers)} of {plan.chats * plan.tasks} tasks ended"] * (
            len(self.answers) != plan.chats * plan.tasks
        )
        faults += [f"{task} was asked {number} times" for task, number in self.calls.items() if number > 1]
        faults += [f"{task} ended with {status}: {text}" for task, (status, text) in self.answers.items() if not status]
        faults += [
            f"chat {chat} is out of order: {said}" for chat, said in self.said.items() if said != sorted(set(said))
        ]
        faults += self.bugs
        if self.ledger > Decimal(str(plan.budget)) or self.billed > self.ledger:
            faults.append(f"{self.billed} dollars were billed, {self.ledger} are in the ledger, {plan.budget} allowed")
        return faults


class Storm:
    def __init__(self, plan: Plan, postgres: PostgresServer, folder: Path) -> None:
        self._plan = plan
        self._postgres = postgres
        self._url = postgres.fresh()
        self._shell = Shell(folder)
        (self._shell.home / ".config/ra").mkdir(parents=True)
        config = {
            "agents": {AGENT: {"systemPrompt": "Be brief.", "budget": {"dollars": plan.budget, "per": "day"}}},
            "app": {"store": self._url},
        }
        (self._shell.home / ".config/ra/ra.yaml").write_text(json.dumps(config))
        self._ports = [_free_port() for _ in range(plan.workers)]
        self._daemons: list[Daemon] = []
        self._over = threading.Event()
        self.outcome = Outcome(calls=Counter(), answers={}, said={}, states=Counter())

    def _script(self, body: dict[str, Any]) -> Step:
        tags = re.findall(r"task (\d+)-(\d+)\.", asked(body))
        chat, number = tags[0][0], max(int(number) for _, number in tags)
        self.outcome.calls[f"{chat}-{number}"] += 1
        return Step(text=f"did {chat}-{number}", delay_s=self._plan.model_s)

    def run(self) -> Outcome:
        began = time.monotonic()
        with LoopbackServer("anthropic", self._script) as model:
            self._shell.serve(model)
            with ThreadPoolExecutor(self._plan.workers) as pool:
                self._daemons = list(pool.map(lambda port: Daemon(self._shell, port=port), self._ports))
            killer = threading.Thread(target=self._kill)
            killer.start()
            try:
                with ThreadPoolExecutor(self._plan.clients) as pool:
                    list(pool.map(self._chat, range(self._plan.chats)))
            finally:
                self._over.set()
                killer.join()
                for daemon in self._daemons:
                    daemon.end()
        self._look()
        self.outcome.seconds = time.monotonic() - began
        return self.outcome

    def _kill(self) -> None:
        place = 0
        while not self._over.wait(self._plan.kill_every_s):
            self._daemons[place].process.kill()
            self._daemons[place].stop()
            self.outcome.kills += 1
            if self.outcome.kills == 3:
                self._postgres.stop("immediate")
                self._postgres.start()
            self._daemons[place] = Daemon(self._shell, port=self._ports[place])
            place = (place + 1) % self._plan.workers

    def _chat(self, chat: int) -> None:
        """Each task is accepted before the next one is sent; the answers are fetched at the end."""
        names = [f"{chat}-{number}" for number in range(self._plan.tasks)]
        for name in names:
            self._until("/chat", name, accepted_only=True)
        for name in names:
            self.outcome.answers[name] = self._until("/task", name)

    def _until(self, path: str, name: str, *, accepted_only: bool = False) -> tuple[int, str]:
        chat = name.partition("-")[0]
        context = {"channel": "storm", "chatId": f"chat{chat}", "sender": f"sender{chat}"}
        body = json.dumps({"agent": AGENT, "message": f"task {name}.", "context": context}).encode()
        headers = {"Content-Type": "application/json", "Idempotency-Key": f"key-{name}"}
        give_up = time.monotonic() + ANSWER_S
        while time.monotonic() < give_up:
            connection = http.client.HTTPConnection("127.0.0.1", random.choice(self._ports), timeout=30)
            with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                connection.request("POST", path, body, headers)
                response = connection.getresponse()
                if response.status == 200 and accepted_only:
                    return 200, ""
                told = json.loads(response.read())
                interrupted = str(told.get("error", "")).startswith("Interrupted: the server ended")
                if response.status == 200 or interrupted or response.status == 500:
                    return response.status, str(told.get("error", ""))
            time.sleep(0.2)
        return 0, "no answer"

    def _look(self) -> None:
        log = (self._shell.home / "serve.log").read_text()
        self.outcome.bugs = re.findall(
            r"^.*A bug in[^\n]*(?:\n(?:Traceback|  ).*)*(?:\n\S*(?:Error|Exception).*)?", log, re.MULTILINE
        )
        store = PostgresStore(self._url)
        for info in store.sessions():
            texts = [
                event.fact.message.text
                for event in store.open(info.id, write=False).events()
                if isinstance(event.fact, Said) and event.fact.message.role == "user"
            ]
            self.outcome.said[info.chat_id] = [
                int(match[1]) for text in texts if (match := re.match(r"task \d+-(\d+)\.", text))
            ]
        bills = [event.fact for _, event in store.spent()]
        self.outcome.billed = sum((Decimal(bill.dollars or 0) for bill in bills if isinstance(bill, Spent)), Decimal(0))
        store.close()
        spending = DailySpending(PostgresSpending(self._url), AGENT, DailyLimits(self._plan.budget))
        self.outcome.ledger = spending.today().get(("agent", ""), Decimal(0))
        for status, text in self.outcome.answers.values():
            self.outcome.states[f"{status} {text.split(':')[0][:40]}".strip()] += 1


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    defaults = msgspec.to_builtins(Plan())
    for name, value in defaults.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    plan = msgspec.convert(vars(parser.parse_args()), Plan)
    folder = programs()
    assert folder is not None, "PostgreSQL is not installed"
    server = PostgresServer(folder)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            outcome = Storm(plan, server, Path(scratch)).run()
    finally:
        server.remove()
    faults = outcome.faults(plan)
    print(f"{plan.chats * plan.tasks} tasks, {outcome.kills} kills, {outcome.seconds:.0f} s: {dict(outcome.states)}")
    print(f"{sum(outcome.calls.values())} model calls; ${outcome.billed} billed, ${outcome.ledger} in the ledger")
    print("\n".join(faults[:20]) or "no fault")
    raise SystemExit(bool(faults))


if __name__ == "__main__":
    main()
