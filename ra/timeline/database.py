"""Who may touch the file, and when? One connection, opened at first use, behind one lock."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ra.timeline import schema


class Database:
    """The file of a store. Nothing is opened before it is needed, and nothing is made before a write."""

    def __init__(self, path: Path, *, busy_s: float) -> None:
        self.path = path
        self._busy_s = busy_s
        self._guard = threading.RLock()
        self._connection: sqlite3.Connection | None = None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """The connection, or None while nothing was ever stored. Raises StoreError."""
        with self._guard, schema.translated(self.path):
            if self._connection is None:
                self._connection = schema.open_existing(self.path, busy_s=self._busy_s)
            yield self._connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: on the disk when it ends, or not there at all. Raises StoreError."""
        with self._guard, schema.translated(self.path):
            if self._connection is None:
                self._connection = schema.create(self.path, busy_s=self._busy_s)
            with schema.transaction(self._connection):
                yield self._connection

    def shrink(self) -> None:
        """Leave no trace of what was deleted: not in the index, not in free pages, not in the log."""
        with self._guard, schema.translated(self.path):
            if self._connection is not None:
                self._connection.execute("INSERT INTO words (words) VALUES ('optimize')")
                self._connection.execute("PRAGMA incremental_vacuum").fetchall()
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        with self._guard:
            if self._connection is not None:
                self._connection.close()
            self._connection = None
