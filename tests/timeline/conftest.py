"""Stores to run the same tests on: a SQLite file, and a real PostgreSQL server where one is installed."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ra.timeline.sqlite import SqliteStore
from ra.timeline.store import Store


class Home:
    """A place for a store; `open` opens it as another process would."""

    def __init__(self, path: Path, url: str = "") -> None:
        self.path = path
        self.url = url
        self._opened: list[Store] = []

    def open(self, clock: Callable[[], float] = time.time) -> Store:
        if self.url:
            from ra.timeline.postgres import PostgresStore

            store: Store = PostgresStore(self.url, clock=clock)
        else:
            store = SqliteStore(self.path, clock=clock)
        self._opened.append(store)
        return store

    def close(self) -> None:
        for store in self._opened:
            store.close()


@pytest.fixture(params=["sqlite", "postgres"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    url = request.getfixturevalue("postgres").fresh() if request.param == "postgres" else ""
    place = Home(tmp_path / "data" / "timeline.db", url)
    yield place
    place.close()
