"""How does the timeline lie on the disk, and what is said when the disk does not play along?

One SQLite file in WAL mode with `synchronous=FULL`: a commit that returned survives a crash and a power cut.
An event's key is `session << 32 | at`, so a session lies in one piece, in order, without a second index, and the
full-text index can be asked for one session by a range of keys.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from ra.core.errors import StoreError

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
CREATE TABLE models (model TEXT PRIMARY KEY, window INTEGER, factor REAL) STRICT, WITHOUT ROWID;
"""


def key_of(session: int, at: int) -> int:
    return session << 32 | at


def at_of(key: int) -> int:
    return key & 0xFFFFFFFF


def make_private(directory: Path) -> None:
    """Make what is missing of a path, for the user alone; what exists keeps the mode that its owner chose."""
    if not directory.is_dir():
        make_private(directory.parent)
        directory.mkdir(mode=0o700, exist_ok=True)


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


_LEAST_BYTES = 64 * 1024  # the log's index alone has 32 KiB
_ELSEWHERE = "Set app.dataDir or RA_HOME to a directory that you can write to, or run with --no-session."


def _is_full(folder: Path) -> bool:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize < _LEAST_BYTES and not disk.f_flag & os.ST_RDONLY


def _sentence(path: Path, error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if path.is_dir():
        return f"{path} is a directory, no database. {_ELSEWHERE}"
    if code == sqlite3.SQLITE_READONLY and _is_full(path.parent):  # there was no room for the log, so it opened to read
        code = sqlite3.SQLITE_FULL
    match code:
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            return f"{path} could not be written ({error}): free some disk space. Nothing was half-written."
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return f"{path} is locked by another program and stayed so. Try again when that is done."
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return f"{path} is read-only. {_ELSEWHERE}"
        case sqlite3.SQLITE_CANTOPEN:
            return f"{path} cannot be opened. {_ELSEWHERE}"
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return (
                f"{path} is damaged ({error}). Move it away to start anew; "
                f"`sqlite3 {path} .recover` may save what is in it."
            )
        case sqlite3.SQLITE_TOOBIG:
            return f"An event is too large to be stored in {path} ({error})."
        case _:
            return f"{path} cannot be used: {error}."


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
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if version == 0 and application == 0:
        if connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone():
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
