"""A database of an earlier version is copied and brought up to date, with all that it holds."""

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import event, inspect, select, text

from headstart.output.errors import UserError
from headstart.portal.records import database as database_module
from headstart.portal.records.accounts import add_team, find_account
from headstart.portal.records.database import Database
from headstart.portal.records.tables import ScoringRow, SubmissionRow, Table
from headstart.tests.material.first_version import TABLES, fill_first_version, read_tables
from headstart.tests.material.portals import Site, blue, make_settings


@pytest.fixture
def first(database_url: str, tmp_path: Path) -> dict[str, list[tuple[object, ...]]]:
    return fill_first_version(database_url, tmp_path)


@pytest.fixture
def site(database_url: str, tmp_path: Path, first: object) -> Iterator[Site]:
    site = Site(make_settings(tmp_path, {}, database=database_url), "token-of-Owls")
    with site.client:
        yield site


def test_everything_is_as_before(site: Site, first: dict[str, list[tuple[object, ...]]]) -> None:
    with site.database.reading() as session:
        submissions = session.execute(
            select(SubmissionRow.id, SubmissionRow.team_id, SubmissionRow.sha256).order_by(SubmissionRow.id)
        ).all()
        assert [tuple(row) for row in submissions] == [(row[0], row[1], row[5]) for row in first["submissions"]]
        scorings = session.execute(
            select(ScoringRow.id, ScoringRow.state, ScoringRow.attempt).order_by(ScoringRow.id)
        ).all()
        assert [tuple(row) for row in scorings] == [(row[0], row[4], row[5]) for row in first["scorings"]]
    assert [line["participant"] for line in site.read("/api/leaderboard?team=blue")] == ["Owls", "Larks"]
    assert [line["submission"] for line in site.read("/api/leaderboard?team=red")] == [3]
    assert "Not counted" not in site.client.get("/leaderboard").text
    states = {record["id"]: record["state"] for record in site.read("/api/submissions")}
    assert states == {1: "queue", 4: "failed", 5: "refused", 6: "refused", 8: "queue"}
    assert site.client.get("/health").status_code == 200
    # The portal was frozen, and Wrens' token revoked.
    assert site.submit(b"{}").status_code == 403
    assert find_account(site.database, "token-of-Wrens") is None
    # What waited is scored; so is what a worker of the earlier version had begun, once its lease has run out.
    assert {job.submission_id for job in site.work()} >= {1, 8}


def test_scores_of_other_documents_are_held_back(database_url: str, tmp_path: Path, first: object) -> None:
    settings = make_settings(tmp_path, {}, database=database_url)
    (tmp_path / "catalog.jsonl").write_text((tmp_path / "catalog.jsonl").read_text().partition("\n")[0])
    with (site := Site(settings, "token-of-Owls")).client:
        assert site.read("/api/leaderboard?team=blue") == []
        assert "documents and rules: 2 submissions." in site.client.get("/leaderboard").text


def test_tables_are_those_of_the_program(database_url: str, tmp_path: Path) -> None:
    for fills in (False, True):
        if fills:
            fill_first_version(database_url, tmp_path)
        with closing(Database(database_url)) as database:
            database.create_tables()
            with database.engine.begin() as connection:
                context = MigrationContext.configure(connection, opts={"compare_type": True})
                assert compare_metadata(context, Table.metadata) == []
                Table.metadata.drop_all(connection)
                connection.execute(text("DROP TABLE alembic_version"))


def test_the_earlier_database_is_copied_first(database_url: str, tmp_path: Path, first: object) -> None:
    with closing(Database(database_url)) as database:
        copy = database.create_tables()
        assert copy is not None
        if database.is_sqlite:
            assert (tmp_path / copy).stat().st_mode & 0o077 == 0
            with closing(sqlite3.connect(copy)) as connection:
                assert read_tables(connection) == first
        else:
            with database.engine.connect() as connection:
                counts = [connection.scalar(text(f"SELECT count(*) FROM {copy}.{table}")) for table in TABLES]
            assert counts == [len(first[table]) for table in TABLES]  # type: ignore[index]
        # There is nothing more to be changed.
        assert database.create_tables() is None


@pytest.mark.slow
def test_a_migration_that_ends_at_any_statement_changes_nothing(
    database_url: str, tmp_path: Path, first: dict[str, list[tuple[object, ...]]]
) -> None:
    """A process that is killed leaves what an error leaves: a transaction without an end."""
    with closing(Database(database_url)) as database:
        statements, last = itertools.count(), 0

        def stop(*_: Any) -> None:
            if next(statements) == last:
                raise RuntimeError("ended")

        event.listen(database.engine, "before_cursor_execute", stop)
        while True:
            statements = itertools.count()
            try:
                assert database.create_tables() is not None
                break
            except RuntimeError:
                last += 1
                event.remove(database.engine, "before_cursor_execute", stop)
                with database.engine.connect() as connection:
                    assert sorted(inspect(connection).get_table_names()) == sorted(TABLES)
                    rows = connection.execute(text("SELECT id, token_sha256 FROM teams ORDER BY id")).all()
                    assert [tuple(row) for row in rows] == [(row[0], row[3]) for row in first["teams"]]
                event.listen(database.engine, "before_cursor_execute", stop)
        assert last > 30


@pytest.mark.parametrize("statement", ["UPDATE facts SET value = '0'", "DROP TABLE facts"])
def test_other_tables_are_not_touched(statement: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'portal.sqlite3'}"
    fill_first_version(url, tmp_path)
    with closing(sqlite3.connect(tmp_path / "portal.sqlite3")) as connection:
        connection.execute(statement)
        connection.commit()
        before = list(connection.iterdump())
        with closing(Database(url)) as database, pytest.raises(UserError, match="was made by a later version"):
            database.create_tables()
        assert list(connection.iterdump()) == before


@pytest.mark.parametrize("replace", [False, True])
def test_a_file_that_is_removed_or_replaced_takes_nothing_more(
    tmp_path: Path, replace: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "_WAIT_SECONDS", 0.1)
    with (site := Site(make_settings(tmp_path, {}))).client:
        site.token = add_team(site.database, "Owls")
        assert site.submit(blue("owl", "lark")).status_code == 201
        file = tmp_path / "portal.sqlite3"
        file.rename(tmp_path / "away.sqlite3")
        if replace:
            file.write_bytes((tmp_path / "away.sqlite3").read_bytes())
        assert site.client.get("/health").status_code == 503
        assert site.submit(blue("owl", "wren")).status_code == 503
        (tmp_path / "away.sqlite3").replace(file)
        assert site.client.get("/health").status_code == 200
        assert site.submit(blue("owl", "wren")).status_code == 201
