"""A resolver for ra: `db:users/7` in a prompt attaches the row of table `users` whose id is 7.

    agent:
      context:
        resolvers:
          - {name: record, path: ./resolvers/sqlite_record.py}

The database is app.db in the project, or $RA_SQLITE. It is opened for reading only.
"""

import os
import sqlite3

name = "record"
pattern = r"\bdb:(\w+/\w+)\b"


def resolve(ref, ctx):
    table, _, key = ref.partition("/")
    file = ctx.root / os.environ.get("RA_SQLITE", "app.db")
    database = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)
    try:
        database.row_factory = sqlite3.Row
        tables = [row[0] for row in database.execute("select name from sqlite_master where type = 'table'")]
        if table not in tables:  # a name cannot be a parameter, so it must be one that we know
            raise LookupError(f"{file.name} has no table {table}; it has {', '.join(tables)}")
        row = database.execute(f'select * from "{table}" where id = ?', (key,)).fetchone()  # noqa: S608 - see above
        if row is None:
            raise LookupError(f"{table} has no row with id {key}")
        return "\n".join(f"{column}: {row[column]}" for column in row.keys())  # noqa: SIM118 - a Row, not a dict
    finally:
        database.close()
