"""Opens the store at an address, and copies sessions from one store to another."""

import time
from collections.abc import Callable
from pathlib import Path

from ra.core.errors import UserError
from ra.timeline.sqlite import SqliteStore
from ra.timeline.store import Store

POSTGRES = ("postgresql://", "postgres://")
FILE = "ra.db"


def open_store(data_dir: Path, address: str | None = None, *, clock: Callable[[], float] = time.time) -> Store:
    """The store at `address`: postgresql://… or the path of a SQLite file; by default the file in the data folder.

    Connects on first use. Raises UserError.
    """
    if not address:
        return SqliteStore(data_dir / FILE, clock=clock)
    if address.startswith(POSTGRES):
        try:
            from ra.timeline.postgres import PostgresStore  # an optional dependency, and 60 ms of start-up time
        except ImportError as error:
            raise UserError(
                "A store in PostgreSQL needs psycopg: install ra with its extra, `pip install 'ra-agent[postgres]'`."
            ) from error
        return PostgresStore(address, clock=clock)
    if "://" in address:
        raise UserError(
            f"{address.split('://')[0]}:// is not a supported store; use postgresql://… or the path of a file."
        )
    return SqliteStore(Path(address).expanduser(), clock=clock)


def copy_session(source: Store, session: str, target: Store) -> str:
    """Copy a session with its id, times, stored texts and chat. Raises UserError if the target has it already."""
    info = source.info(session)
    timeline = source.open(info.id, write=False)
    return target.adopt(info.project, list(timeline.events()), texts=timeline.texts(), like=info)
