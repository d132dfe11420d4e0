"""The connection to a PostgreSQL database, its tables and their versions, and its errors as sentences."""

import hashlib
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import psycopg
from psycopg import conninfo, errors

from ra.core.errors import StoreAway, StoreError

SCHEMA = """
CREATE TABLE ra_sessions (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    project text NOT NULL,
    agent text NOT NULL,
    channel text NOT NULL,
    chat_id text NOT NULL,
    parent text NOT NULL,
    forked_at integer NOT NULL,
    created double precision NOT NULL
);
CREATE INDEX ra_sessions_by_project ON ra_sessions (project);
CREATE INDEX ra_sessions_by_chat ON ra_sessions (agent, channel, chat_id);
CREATE TABLE ra_events (
    session bigint NOT NULL REFERENCES ra_sessions ON DELETE CASCADE,
    at integer NOT NULL,
    time double precision NOT NULL,
    kind text NOT NULL,
    fact bytea NOT NULL,
    words tsvector,
    PRIMARY KEY (session, at)
);
CREATE INDEX ra_events_spent ON ra_events (session, at) WHERE kind = 'spent';
CREATE INDEX ra_events_words ON ra_events USING gin (words);
CREATE TABLE ra_texts (ref text PRIMARY KEY, body bytea NOT NULL);
CREATE TABLE ra_keepers (
    session bigint NOT NULL REFERENCES ra_sessions ON DELETE CASCADE,
    ref text NOT NULL REFERENCES ra_texts,
    PRIMARY KEY (session, ref)
);
CREATE INDEX ra_keepers_by_ref ON ra_keepers (ref);
CREATE TABLE ra_models (model text PRIMARY KEY, "window" integer, factor double precision);
"""

ENDPOINTS = """
DROP TABLE ra_models;
CREATE TABLE ra_endpoints (
    provider text NOT NULL,
    base_url text NOT NULL,
    model text NOT NULL,
    "window" integer,
    factor double precision,
    guessed boolean NOT NULL DEFAULT false,
    text text NOT NULL DEFAULT '',
    window_at double precision NOT NULL DEFAULT 0,
    factor_at double precision NOT NULL DEFAULT 0,
    PRIMARY KEY (provider, base_url, model)
);
"""

MIGRATIONS = (SCHEMA, ENDPOINTS)
"""Number n leads from version n to n + 1. They run in one transaction, under a lock: workers may start together."""

VERSION = len(MIGRATIONS)

_KEEPALIVE: dict[str, Any] = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
# The locks of a machine that was unplugged end when the server misses it: after half a minute, not two hours.
# To compile the query for the latest of 10 000 sessions takes 400 ms, to run it 75: hence no jit.
_SETTINGS = (
    "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; "
    "SET idle_in_transaction_session_timeout = '60s'; SET client_encoding = 'UTF8'; SET jit = off"
)
CONNECT_S = 10
AGAIN_CONNECT_S = 2  # to connect once more: other tasks of the process stand still meanwhile
PATIENCE_S = 5.0  # a database that restarts is back within this; a read waits so long, once per outage
AGAIN_S = 0.1

_NO_ANSWER = "it does not answer"
SILENT_S = 5.0  # after so long without an answer, a second connection checks whether the server is frozen


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that is closed when its server is frozen, and neither answers nor closes it.

    A server that is only slow still accepts another connection; then the statement goes on.
    """

    address = ""

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
        return super().wait(self._watched(gen), *args, **options)

    def _watched(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """The same generator with a check in it. While it waits, the library resumes it ten times a second."""
        look_at = time.monotonic() + SILENT_S
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() > look_at:
                    self._need_life()
                    look_at = time.monotonic() + SILENT_S
                wanted = gen.send(ready)
        except StopIteration as end:
            return end.value

    def _need_life(self) -> None:
        try:
            psycopg.connect(self.address, connect_timeout=AGAIN_CONNECT_S).close()
        except errors.ConnectionTimeout as error:
            self.close()
            raise psycopg.OperationalError(_NO_ANSWER) from error
        except psycopg.OperationalError:
            return  # the server answers, for example that it has no connection left


class PostgresDatabase:
    """One connection that threads share, made when it is first needed and made anew when it was lost.

    `generation` counts the connections: with each, the advisory locks of the one before are gone.
    """

    def __init__(self, url: str, *, patience_s: float = PATIENCE_S) -> None:
        self._url = url
        self._patience_s = patience_s
        self._lost_at: float | None = None
        self._again_at = 0.0  # no attempt to connect before this time
        self.place = without_password(url)
        self.generation = 0
        self._guard = threading.RLock()
        self._connection: Connection | None = None
        self._migrated = False

    @property
    def lost(self) -> bool:
        return self._connection is None

    def rows(self, query: str, values: Mapping[str, object]) -> list[Any]:
        """What a query finds; nothing while nothing was ever stored. Raises StoreError."""
        with self._guard:
            try:
                return self._rows(query, values)
            except StoreError:
                if self._connection is not None:
                    raise
            return self._rows(query, values)  # the connection was lost: reading twice does no harm

    def _rows(self, query: str, values: Mapping[str, object]) -> list[Any]:
        with self._translated():
            connection = self.connected(patience_s=self._patience_s)
            if not self._migrated and not self._has_tables(connection):
                return []
            return list(connection.execute(query.encode(), values, binary=True).fetchall())

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction: durable when it ends, or not there at all. Raises StoreError."""
        with self._guard, self._translated(), ExitStack() as stack:
            connection = self._ready()
            try:
                stack.enter_context(connection.transaction())
            except psycopg.OperationalError:
                if not connection.closed:
                    raise
                self.close()  # it broke while nobody used it, and nothing was sent yet
                connection = self._ready()
                stack.enter_context(connection.transaction())
            yield connection

    def execute(self, statement: str, values: Mapping[str, object]) -> None:
        """One statement that is a transaction of its own: one way to the server and back. Raises StoreError."""
        with self._guard, self._translated():
            self._ready().execute(statement.encode(), values)

    def lock(self, name: str) -> bool:
        """Take an advisory lock of this connection; False when another connection has it. Raises StoreError."""
        with self._guard, self._translated():
            row = self.connected().execute("SELECT pg_try_advisory_lock(%s)", (lock_key(name),)).fetchone()
            return bool(row and row[0])

    def unlock(self, name: str) -> None:
        """Nothing happens when the lock went with its connection."""
        with self._guard, suppress(StoreError), self._translated():
            if self._connection is not None:
                self._connection.execute("SELECT pg_advisory_unlock(%s)", (lock_key(name),))

    def _ready(self) -> Connection:
        """The connection, with the tables as this version has them."""
        connection = self.connected()
        if not self._migrated:
            self._migrate(connection)
        return connection

    def connected(self, *, patience_s: float = 0) -> Connection:
        if self._connection is None:
            self._connection = self._connect(patience_s)
            self._lost_at = None
            self.generation += 1
            self._connection.execute(_SETTINGS)
        return self._connection

    def _connect(self, patience_s: float) -> Connection:
        parts = conninfo.conninfo_to_dict(self._url)
        timeout_s = AGAIN_CONNECT_S if self.generation else int(parts.get("connect_timeout") or CONNECT_S)
        if self.generation and self._lost_at is None:
            self._lost_at = time.monotonic()
        if time.monotonic() < self._again_at:
            raise psycopg.OperationalError(_NO_ANSWER)
        while True:
            try:
                options = _KEEPALIVE | {"connect_timeout": timeout_s}
                connection = Connection.connect(self._url, autocommit=True, **options)
                connection.address = self._url
                return connection
            except errors.ConnectionTimeout:  # this blocked all tasks of the process: not again at once
                self._again_at = time.monotonic() + PATIENCE_S
                raise
            except psycopg.OperationalError:
                if self._lost_at is None or time.monotonic() > self._lost_at + patience_s:
                    raise
            time.sleep(AGAIN_S)

    def close(self) -> None:
        with self._guard:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _has_tables(self, connection: Connection) -> bool:
        row = connection.execute("SELECT to_regclass('ra_version')").fetchone()
        if row is None or row[0] is None:
            return False
        self._check_version(connection)
        return True

    def _check_version(self, connection: Connection) -> int:
        row = connection.execute("SELECT version FROM ra_version").fetchone()
        version = int(row[0]) if row else 0
        if version > VERSION:
            raise StoreError(f"{self.place} was written by a newer version of ra (format {version}); update ra.")
        self._migrated = version == VERSION
        return version

    def _migrate(self, connection: Connection) -> None:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key("migration"),))
            encoding = connection.execute("SHOW server_encoding").fetchone()
            if encoding != ("UTF8",):
                raise StoreError(f"{self.place} must be a database in UTF8.")
            connection.execute("CREATE TABLE IF NOT EXISTS ra_version (version integer NOT NULL)")
            version = self._check_version(connection)
            for migration in MIGRATIONS[version:]:
                connection.execute(migration.encode())
            connection.execute("DELETE FROM ra_version")
            connection.execute("INSERT INTO ra_version VALUES (%s)", (VERSION,))
        self._migrated = True

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            if self._connection is None or self._connection.broken or self._connection.closed:
                self.close()
                if isinstance(error, psycopg.OperationalError):
                    raise StoreAway(sentence(error, self.place)) from error
            raise StoreError(sentence(error, self.place)) from error


def sentence(error: psycopg.Error, place: str) -> str:
    """What went wrong with a database, for its user."""
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    match error:
        case errors.DiskFull():
            return f"The disk of the database {place} is full."
        case errors.ReadOnlySqlTransaction():
            return f"The database {place} is read-only."
        case errors.InsufficientPrivilege():
            return f"The database {place} does not accept this user: {reason}."
        case psycopg.OperationalError():
            return f"The database {place} cannot be reached: {reason}."
        case _:
            return f"The database {place} cannot be used: {reason}."


def lock_key(name: str) -> int:
    """A number of 64 bits for an advisory lock."""
    return int.from_bytes(hashlib.sha256(f"ra {name}".encode()).digest()[:8], "big", signed=True)


def without_password(url: str) -> str:
    try:
        parts = conninfo.conninfo_to_dict(url)
    except psycopg.Error as error:
        raise StoreError("app.store is not a database address; write postgresql://user@host/database.") from error
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{parts.get('host') or 'localhost'}{port}/{parts.get('dbname') or ''}"
