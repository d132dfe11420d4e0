"""The daily spending of an agent, for all processes that share a database: reserved before a call, settled after.

A reservation counts as spent at once. Settling replaces it by the real amount. A process that dies before that leaves
the reservation, which is the worst case.
"""

import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from decimal import ROUND_CEILING, Decimal
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ra.core.errors import Stopped, StoreError
from ra.system.files import make_private

NANO = Decimal(10) ** 9  # amounts are whole numbers of billionths: sums are exact in every database

_TABLES = (
    "CREATE TABLE IF NOT EXISTS ra_spending (agent text NOT NULL, scope text NOT NULL, name text NOT NULL, "
    "day text NOT NULL, nano bigint NOT NULL, PRIMARY KEY (agent, day, scope, name))",
    "CREATE TABLE IF NOT EXISTS ra_reservations (id text PRIMARY KEY, agent text NOT NULL, channel text NOT NULL, "
    "sender text NOT NULL, day text NOT NULL, nano bigint NOT NULL, time double precision NOT NULL)",
)


class DailyLimits(msgspec.Struct, frozen=True):
    """Dollars per day (UTC) for the whole agent, for each channel and for each sender; 0 means no limit."""

    dollars: float = 0
    per_channel: float = 0
    per_sender: float = 0


class Cursor(Protocol):
    """The result of a statement, in either database."""

    def fetchone(self) -> Any: ...


class SpendingDatabase(Protocol):
    """A database with serialized writes: of two transactions that change the same row, one waits for the other."""

    def transaction(self) -> AbstractContextManager["Transaction"]:
        """Raises StoreError."""
        ...


class Transaction(Protocol):
    """Statements with `?` for their values."""

    def execute(self, statement: str, values: Sequence[object]) -> Cursor: ...


class DailySpending:
    """The day's spending of one agent."""

    def __init__(
        self, database: SpendingDatabase, agent: str, limits: DailyLimits, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self.agent = agent
        self.limits = limits
        self._clock = clock

    def purse(self, channel: str, sender: str) -> "Purse":
        return Purse(self, channel, sender)

    def today(self) -> dict[tuple[str, str], Decimal]:
        """Dollars spent or reserved today, by scope and name."""
        with self._database.transaction() as transaction:
            cursor = transaction.execute(
                "SELECT scope, name, nano FROM ra_spending WHERE agent = ? AND day = ?", (self.agent, self._day())
            )
            sums: dict[tuple[str, str], Decimal] = {}
            while (row := cursor.fetchone()) is not None:
                sums[row[0], row[1]] = Decimal(row[2]) / NANO
            return sums

    def reserve(self, channel: str, sender: str, worst: Decimal, least: Decimal) -> tuple[str, Decimal]:
        """Reserve up to `worst` dollars of what is left, and at least `least`. Raises Stopped, StoreError."""
        day, scopes = self._day(), self._scopes(channel, sender)
        with self._database.transaction() as transaction:
            # Adding nothing makes the rows that are missing, locks them, and tells what they hold.
            spent = self._add(transaction, scopes, day, 0)
            granted = _nano(worst)
            for (scope, name), limit in scopes.items():
                left = _nano(Decimal(str(limit))) - spent[scope, name]
                if limit and left < granted:
                    granted = left
                    if granted < _nano(least):
                        raise self._stopped(scope, name, limit, spent[scope, name])
            reservation = secrets.token_hex(8)
            self._add(transaction, scopes, day, granted)
            transaction.execute(
                "INSERT INTO ra_reservations (id, agent, channel, sender, day, nano, time) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (reservation, self.agent, channel, sender, day, granted, self._clock()),
            )
        return reservation, Decimal(granted) / NANO

    def settle(self, channel: str, sender: str, reservation: str, dollars: Decimal) -> None:
        """Replace a reservation by what the call really cost. A second bill of the same call is added."""
        with self._database.transaction() as transaction:
            held = transaction.execute(
                "DELETE FROM ra_reservations WHERE id = ? RETURNING nano, day", (reservation,)
            ).fetchone()
            nano, day = held or (0, self._day())
            self._add(transaction, self._scopes(channel, sender), day, _nano(dollars) - nano)

    def _add(
        self, transaction: Transaction, scopes: Mapping[tuple[str, str], float], day: str, nano: int
    ) -> dict[tuple[str, str], int]:
        """Add an amount to each scope, in one statement; what they hold then."""
        rows = ", ".join(["(?, ?, ?, ?, ?)"] * len(scopes))
        cursor = transaction.execute(
            f"INSERT INTO ra_spending (agent, scope, name, day, nano) VALUES {rows} "
            "ON CONFLICT (agent, day, scope, name) DO UPDATE SET nano = ra_spending.nano + excluded.nano "
            "RETURNING scope, name, nano",
            [value for scope, name in scopes for value in (self.agent, scope, name, day, nano)],
        )
        sums: dict[tuple[str, str], int] = {}
        while (row := cursor.fetchone()) is not None:
            sums[row[0], row[1]] = int(row[2])
        return sums

    def _scopes(self, channel: str, sender: str) -> dict[tuple[str, str], float]:
        """The scopes, always in the same order, so that two transactions cannot deadlock."""
        limits = self.limits
        scopes = {("agent", ""): limits.dollars, ("channel", channel): limits.per_channel}
        return scopes | ({("sender", sender): limits.per_sender} if sender else {})

    def _stopped(self, scope: str, name: str, limit: float, spent: int) -> Stopped:
        whose = {"agent": "", "channel": f" for the channel {name}", "sender": f" for the sender {name}"}[scope]
        return Stopped(
            f"Stopped by the budget of {self.agent}{whose}: ${Decimal(spent) / NANO:.4f} of ${limit:g} a day are spent "
            "or reserved, and the next call could pass it."
        )

    def _day(self) -> str:
        return time.strftime("%Y-%m-%d", time.gmtime(self._clock()))


class Purse:
    """An agent's spending as one run sees it."""

    def __init__(self, spending: DailySpending, channel: str, sender: str) -> None:
        self._spending = spending
        self._place = channel, sender

    def reserve(self, worst: Decimal, least: Decimal) -> tuple[str, Decimal]:
        """The reservation and what it holds. Raises Stopped, StoreError."""
        return self._spending.reserve(*self._place, worst, least)

    def settle(self, reservation: str, dollars: Decimal) -> None:
        with suppress(StoreError):  # the database is unreachable: the reservation stays, as the worst case
            self._spending.settle(*self._place, reservation, dollars)


def _nano(dollars: Decimal) -> int:
    return int((dollars * NANO).to_integral_value(ROUND_CEILING))


class SqliteTransaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[object]) -> Cursor:
        return self._connection.execute(statement, tuple(values))


class SqliteSpending:
    """A file in the data folder, for the processes of one machine."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    @contextmanager
    def transaction(self) -> Iterator[SqliteTransaction]:
        try:
            connection = self._connected()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield SqliteTransaction(connection)
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise StoreError(f"{self._path} cannot be used: {error}.") from error

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            make_private(self._path.parent)
            self._path.touch(mode=0o600, exist_ok=True)
            connection = sqlite3.connect(self._path, isolation_level=None, timeout=10, check_same_thread=False)
            for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", *_TABLES):
                connection.execute(statement)
            self._connection = connection
        return self._connection


class PostgresTransaction:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[object]) -> Cursor:
        cursor: Cursor = self._connection.execute(statement.replace("?", "%s").encode(), tuple(values))
        return cursor


class PostgresSpending:
    """Tables in the store's database, for all workers on all machines."""

    def __init__(self, url: str) -> None:
        from ra.timeline.postgres_database import PostgresDatabase, lock_key  # an extra: only its users have it

        self._database = PostgresDatabase(url)
        self._lock = lock_key("spending tables")
        self._prepared = False

    @contextmanager
    def transaction(self) -> Iterator[PostgresTransaction]:
        if not self._prepared:
            with self._database.writing() as connection:
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (self._lock,))
                for statement in _TABLES:
                    connection.execute(statement.encode())
            self._prepared = True
        with self._database.writing() as connection:
            yield PostgresTransaction(connection)
