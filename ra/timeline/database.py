"""Who may touch the file, and when? One connection, opened at first use, behind one lock."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ra.timeline import schema


class Database:
    """The file of a store. Nothing is opened before it is needed, and nothing is made before a write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._guard = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._writable = False

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """The connection, or None while nothing was ever stored. Raises StoreError."""
        with self._guard, schema.translated(self.path):
            if self._connection is None:
                self._connection = schema.open_existing(self.path)
            yield self._connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: on the disk when it ends, or not there at all. Raises StoreError."""
        with self._guard, schema.translated(self.path):
            if not self._writable:
                self.close()
                self._connection = schema.create(self.path)
                self._writable = True
            assert self._connection is not None
            with schema.transaction(self._connection):
                yield self._connection

    def shrink(self) -> None:
        """Give back what was deleted: to the disk, and out of the log."""
        with self._guard, schema.translated(self.path):
            if self._connection is not None:
                self._connection.execute("PRAGMA incremental_vacuum").fetchall()
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        with self._guard:
            if self._connection is not None:
                self._connection.close()
            self._connection, self._writable = None, False
