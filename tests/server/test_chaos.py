"""A small storm: workers killed and the database restarted while clients send tasks."""

from pathlib import Path

import pytest

pytest.importorskip("procrastinate", reason="the extra `postgres` is not installed")

from tests.postgres import PostgresServer
from tests.server.chaos import Plan, Storm


def test_every_accepted_task_ends_once_in_order_and_within_the_budget(postgres: PostgresServer, tmp_path: Path) -> None:
    plan = Plan(workers=2, chats=4, tasks=3, clients=4, kill_every_s=2.5, budget=50)
    outcome = Storm(plan, postgres, tmp_path).run()
    assert outcome.faults(plan) == []
