"""The SQLite file: its tables, opening it, transactions, what is said when the disk fails, and writers' locks.

WAL mode with `synchronous=FULL`: a commit that returned survives a crash and a power cut. An event's key is
`session << 32 | at`, so a session lies in one piece, in order, without a second index, and the full-text index can
be asked for one session by a range of keys.
"""

import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from ra.core.errors import SessionInUse, StoreError
from ra.system.files import make_private, open_lock

VERSION = 1
APPLICATION = 0x72615F74  # "ra_t": tells our file from any other SQLite database

_SCHEMA = """
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    project TEXT NOT NULL,
    agent TEXT NOT NULL,
    channel TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    parent TEXT NOT NULL,           -- the session that this one was forked from, or ''
    forked_at INTEGER NOT NULL,     -- events up to here were copied from it, and paid there
    created REAL NOT NULL
) STRICT;
CREATE INDEX by_project ON sessions (project);
CREATE INDEX by_chat ON sessions (agent, channel, chat_id);
CREATE TABLE events (
    key INTEGER PRIMARY KEY,        -- session << 32 | at
    time REAL NOT NULL,
    kind TEXT NOT NULL,             -- the tag of the fact
    fact BLOB NOT NULL              -- JSON
) STRICT;
CREATE INDEX spent ON events (key, time) WHERE kind = 'spent';
CREATE VIRTUAL TABLE words USING fts5(
    body, content='', tokenize="unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);
CREATE TABLE texts (ref TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE keepers (session INTEGER NOT NULL, ref TEXT NOT NULL, PRIMARY KEY (session, ref)) STRICT, WITHOUT ROWID;
CREATE TABLE models (model TEXT PRIMARY KEY, window INTEGER, factor REAL) STRICT, WITHOUT ROWID; -- of 0.1
"""

ENDPOINTS = """
CREATE TABLE IF NOT EXISTS endpoints (
    provider TEXT NOT NULL,
    base_url TEXT NOT NULL,
    model TEXT NOT NULL,
    window INTEGER,
    factor REAL,
    guessed INTEGER NOT NULL DEFAULT 0,
    text TEXT NOT NULL DEFAULT '',
    window_at REAL NOT NULL DEFAULT 0,
    factor_at REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (provider, base_url, model)
) STRICT, WITHOUT ROWID
"""
"""What endpoints taught. A file of 0.1 gets this table when something is first learned, and 0.1 still opens it."""


def key_of(session: int, at: int) -> int:
    return session << 32 | at


def at_of(key: int) -> int:
    return key & 0xFFFFFFFF


def create(path: Path, *, busy_s: float) -> sqlite3.Connection:
    """Open for writing; the directory, the file and the tables are made when they are missing."""
    with translated(path):
        try:
            make_private(path.parent)
            # SQLite gives the files beside the database the mode of the database.
            path.touch(mode=0o600, exist_ok=True)
        except OSError as error:
            raise StoreError(f"Sessions cannot be stored in {path}: {error.strerror}. {_ELSEWHERE}") from error
        connection = _connect(path, "mode=rw", busy_s)
        if _version(connection, path) == 0:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA journal_mode = WAL")
            with transaction(connection):
                # Asked again under the lock: another process may have been first.
                if _version(connection, path) == 0:
                    for statement in _SCHEMA.split(";\n"):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA application_id = {APPLICATION}")
                    connection.execute(f"PRAGMA user_version = {VERSION}")
        return connection


def open_existing(path: Path, *, busy_s: float) -> sqlite3.Connection | None:
    """Open for reading, and for writing if the disk lets us; None when nothing was ever stored."""
    with translated(path):
        try:
            if not path.stat().st_size:
                return None
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}. {_ELSEWHERE}") from error
        try:
            connection = _connect(path, "mode=rw", busy_s)
            version = _version(connection, path)
        except sqlite3.OperationalError:
            # A WAL database in a directory that may not be written to opens only when it is declared unchanging,
            # which is the truth as long as no other process has left a log beside it.
            log = path.with_name(path.name + "-wal")
            if log.exists() and log.stat().st_size:
                raise
            connection = _connect(path, "mode=ro&immutable=1", busy_s)
            version = _version(connection, path)
        return connection if version else None


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing, and on the disk when it returns."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # After a full disk SQLite may have rolled back by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn what SQLite says into what a user can do about it."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(_sentence(path, error)) from error


def check(connection: sqlite3.Connection, path: Path, *, limit_s: float) -> None:
    """Reads every page, and the whole search index, whose form SQLite does not check. Raises StoreError, sqlite3.Error.

    It only reads, so that no writer has to wait. If it takes longer than the limit, part of the file is checked.
    """
    give_up = time.monotonic() + limit_s
    connection.set_progress_handler(lambda: time.monotonic() > give_up, 10_000)
    try:
        ((verdict,),) = connection.execute("PRAGMA quick_check(1)").fetchall()
        if verdict != "ok":
            raise StoreError(_damaged(path, verdict.strip().splitlines()[-1]))
        _read_index(connection, path)
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
    finally:
        connection.set_progress_handler(None, 0)


def _read_index(connection: sqlite3.Connection, path: Path) -> None:
    try:
        connection.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab(main, words, 'row')")
        connection.execute("SELECT count(*) FROM temp.vocabulary").fetchall()
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
            raise
        raise StoreError(
            f"The search index of {path} is damaged. `ra sessions copy --all --to NEW.db` copies the sessions "
            "and makes a new index; then put that file in its place."
        ) from error


_LEAST_BYTES = 64 * 1024  # the log's index alone has 32 KiB
_ELSEWHERE = "Set app.dataDir or RA_HOME to a directory that you can write to, or run with --no-session."


_READ_ERRORS = (
    sqlite3.SQLITE_IOERR_READ,
    sqlite3.SQLITE_IOERR_SHORT_READ,
    sqlite3.SQLITE_IOERR_FSTAT,
    sqlite3.SQLITE_IOERR_CORRUPTFS,
    sqlite3.SQLITE_IOERR_DATA,
)


def _is_full(folder: Path) -> bool:
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _LEAST_BYTES and not disk.f_flag & os.ST_RDONLY


def _sentence(path: Path, error: sqlite3.Error) -> str:
    extended = getattr(error, "sqlite_errorcode", 0)
    code = extended & 0xFF
    if path.is_dir():
        return f"{path} is a directory, not a database. {_ELSEWHERE}"
    if code == sqlite3.SQLITE_READONLY and _is_full(path.parent):  # there was no room for the log, so it opened to read
        code = sqlite3.SQLITE_FULL
    match code:
        case sqlite3.SQLITE_IOERR if extended in _READ_ERRORS:
            return f"{path} could not be read ({error}): the disk reports an error. Nothing was changed."
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            return f"{path} could not be written ({error}): free some disk space. Nothing was half-written."
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return f"{path} is locked by another program and stayed so. Try again when it is done."
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return f"{path} is read-only. {_ELSEWHERE}"
        case sqlite3.SQLITE_CANTOPEN:
            return f"{path} cannot be opened. {_ELSEWHERE}"
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return _damaged(path, str(error))
        case sqlite3.SQLITE_TOOBIG:
            return f"An event is too large to be stored in {path} ({error})."
        case _:
            return f"{path} cannot be used: {error}."


def _damaged(path: Path, what: str) -> str:
    return (
        f"{path} is damaged ({what}). Move it away to start afresh; `sqlite3 {path} .recover` may save what is in it."
    )


def _connect(path: Path, mode: str, busy_s: float) -> sqlite3.Connection:
    # Statements begin their transactions themselves; the store has a lock of its own around the connection.
    connection = sqlite3.connect(
        f"file:{quote(os.fsencode(path.absolute()))}?{mode}",
        uri=True,
        timeout=busy_s,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")
    return connection


def _version(connection: sqlite3.Connection, path: Path) -> int:
    """0 for a new file. Raises StoreError for a newer version, and for a database that is not ours."""
    # In one snapshot: another process may be making the tables at this moment.
    (version, application, tables) = connection.execute(
        "SELECT (SELECT user_version FROM pragma_user_version), "
        "(SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)"
    ).fetchone()
    if version == 0 and application == 0:
        if tables:
            raise StoreError(f"{path} is a database of another program. {_ELSEWHERE}")
        return 0
    if application != APPLICATION:
        raise StoreError(f"{path} is a database of another program. {_ELSEWHERE}")
    if version > VERSION:
        raise StoreError(
            f"{path} was written by a newer ra (format {version}, this one reads up to {VERSION}). "
            "Upgrade ra, or set app.dataDir or RA_HOME to another directory."
        )
    return int(version)


class Database:
    """The file of a store. Nothing is opened before it is needed, and nothing is made before a write."""

    def __init__(self, path: Path, *, busy_s: float) -> None:
        self.path = path
        self._busy_s = busy_s
        self._guard = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._opened: os.stat_result | None = None  # the file behind the connection

    @property
    def gone(self) -> bool:
        """Whether the file that was opened is no longer the one at the path."""
        return self._connection is not None and not _is_at(self.path, self._opened)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """The connection, or None while nothing was ever stored. Raises StoreError."""
        with self._guard, translated(self.path):
            if self._connection is None:
                self._connection = open_existing(self.path, busy_s=self._busy_s)
                self._opened = _file_at(self.path)
            yield self._connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: on the disk when it ends, or not there at all. Raises StoreError.

        In WAL mode SQLite writes on into a file that has been deleted.
        """
        with self._guard, translated(self.path):
            if self._connection is None:
                self._connection = create(self.path, busy_s=self._busy_s)
                self._opened = _file_at(self.path)
            if self.gone:
                raise StoreError(
                    f"{self.path} was moved away or deleted while this session was open: what follows is not stored."
                )
            with transaction(self._connection):
                yield self._connection

    def shrink(self) -> None:
        """Leave no trace of what was deleted: not in the index, not in free pages, not in the log."""
        with self._guard, translated(self.path):
            if self._connection is not None:
                self._connection.execute("INSERT INTO words (words) VALUES ('optimize')")
                self._connection.execute("PRAGMA incremental_vacuum").fetchall()
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        with self._guard:
            if self._connection is not None:
                self._connection.close()
            self._connection = None


class WriterLock:
    """An flock on a file of the session's own. The kernel lets go of it when the holder dies, even by `kill -9`.

    flock and not a POSIX record lock, because it also excludes a second writer inside the same process.
    """

    def __init__(self, directory: Path, session: str) -> None:
        self._path = directory / f"{session}.lock"
        self._file = self._take(session)

    def _take(self, session: str) -> int:
        while True:
            try:
                make_private(self._path.parent)
                file = open_lock(self._path)
            except OSError as error:
                raise StoreError(
                    f"{self._path} cannot be made ({error.strerror}), so nothing can be recorded. {_ELSEWHERE}"
                ) from error
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                holder = os.pread(file, 20, 0).decode("ascii", "replace").strip()
                os.close(file)
                raise SessionInUse(
                    f"Session {session} is in use by another process{f' ({holder})' if holder else ''}. "
                    f"Wait until it is done, or continue in a copy: --resume {session} --fork."
                ) from error
            # The holder before us removes its file before it lets go: a lock on a removed file guards nothing.
            if _is_at(self._path, os.fstat(file)):
                with suppress(OSError):  # who holds it is a courtesy to others: a full disk does not matter
                    os.ftruncate(file, 0)
                    os.pwrite(file, str(os.getpid()).encode(), 0)
                return file
            os.close(file)

    def release(self) -> None:
        if self._file >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = -1


def _is_at(path: Path, file: os.stat_result | None) -> bool:
    present = _file_at(path)
    return present is not None and file is not None and os.path.samestat(present, file)


def _file_at(path: Path) -> os.stat_result | None:
    """None also where the file cannot be reached any more: a closed folder, a network disk that is away."""
    try:
        return path.stat()
    except OSError:
        return None
