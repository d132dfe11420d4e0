"""One chat, one task at a time, whatever the queue gives out."""

import asyncio
from pathlib import Path

import pytest

from ra.config.load import Resolved, resolve
from ra.config.options import Options
from ra.core.errors import RaError
from ra.server.agents import Agents
from ra.server.log import Log
from ra.server.sessions import Chats
from ra.server.task import Task, TaskContext
from ra.timeline.sqlite import SqliteStore

FIRST, SECOND = (Task("", message, TaskContext("test", "c1")) for message in ("first", "second"))


class Alone:
    alone = True


@pytest.fixture
def chats(tmp_path: Path) -> Chats:
    env = {"HOME": str(tmp_path), "RA_HOME": str(tmp_path / "data"), "ANTHROPIC_API_KEY": "k"}

    def read(agent: str | None) -> Resolved:
        return resolve(cwd=tmp_path, env=env)

    log = Log()
    return Chats(Agents(read, Options(served=True), env=env, log=log), Alone(), log)


def test_a_second_task_of_a_chat_waits_for_the_one_that_runs_here(chats: Chats) -> None:
    """As when a worker was taken for dead, and is given the chat's next task while it is still at the last one."""

    async def main() -> None:
        first = await chats.enter(FIRST)
        others = [asyncio.create_task(chats.enter(SECOND)) for _ in range(2)]
        await asyncio.sleep(0)
        assert [other.done() for other in others] == [False, False]
        chats.leave(FIRST, keep=True)
        assert await others[0] is first
        assert not others[1].done()
        chats.leave(SECOND, keep=False)  # its session is closed, and made anew for who comes next
        assert await others[1] is not first
        chats.leave(SECOND, keep=True)
        await chats.close()

    asyncio.run(main())


def test_a_chat_whose_session_cannot_be_opened_is_free_for_the_next_task(chats: Chats, tmp_path: Path) -> None:
    async def main() -> None:
        other = SqliteStore(tmp_path / "data/ra.db").open_chat(str(tmp_path), "", "test", "c1")
        for _ in range(2):
            with pytest.raises(RaError, match="in use"):
                await asyncio.wait_for(chats.enter(FIRST), 30)
        other.close()
        await chats.enter(FIRST)
        chats.leave(FIRST, keep=True)
        await chats.close()

    asyncio.run(main())
