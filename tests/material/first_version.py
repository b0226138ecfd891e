"""A database as the first version of the portal wrote it."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import inspect, text

from headstart.portal.records.database import Database

# Written by the first version, with submissions in every state.
FIRST = Path(__file__).with_name("portal_format_1.sql")
TYPES = {"\tid INTEGER": "\tid SERIAL", "DATETIME": "TIMESTAMPTZ", "BLOB": "BYTEA"}
TABLES = ("teams", "submissions", "scorings", "events", "facts")


def read_tables(connection: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    return {table: connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() for table in TABLES}


def fill_first_version(url: str, folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """Write the first version's database at a URL, and return its rows."""
    file = folder / ("portal.sqlite3" if url.startswith("sqlite") else "first.sqlite3")
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(FIRST.read_text())
        rows = read_tables(connection)
    if url.startswith("sqlite"):
        return rows
    with closing(Database(url)) as database, database.engine.begin() as connection:
        script = FIRST.read_text()
        for of_sqlite, of_postgresql in TYPES.items():
            script = script.replace(of_sqlite, of_postgresql)
        created = [re.findall(rf"CREATE TABLE {table} [^;]*;", script)[0] for table in TABLES]
        for statement in [*created, *re.findall(r"CREATE INDEX [^;]*;", script)]:
            connection.execute(text(statement))
        for table in TABLES:
            columns = inspect(connection).get_columns(table)
            names = [column["name"] for column in columns]
            flags = [index for index, column in enumerate(columns) if str(column["type"]) == "BOOLEAN"]
            for row in rows[table]:
                values = [bool(value) if index in flags else value for index, value in enumerate(row)]
                slots = ", ".join(f":{name}" for name in names)
                insert = text(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({slots})")
                connection.execute(insert, dict(zip(names, values, strict=True)))
            if "id" in names:
                sequence = f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table}"
                connection.execute(text(sequence))
    return rows
