"""The state of the system: for machines at /health and /metrics, and for organisers at the desk."""

import html
import json
import re
import sqlite3
from collections import namedtuple
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.exc import OperationalError

from headstart.portal.admin import main
from headstart.portal.records.accounts import add_team
from headstart.portal.records.backups import find_last_backup
from headstart.portal.records.database import Database
from headstart.portal.records.tables import ScoringRow
from headstart.portal.web import system
from headstart.portal.web.system import Work, read_size, read_work
from headstart.portal.work.queue import LEASE, claim, put_back
from headstart.tests.material import portals
from headstart.tests.material.organisers import add_organiser, run_at_desk
from headstart.tests.material.portals import STIMULI, Site, blue, make_settings
from headstart.tests.portal.conftest import OpenSite

NOW = datetime(2030, 1, 1, tzinfo=UTC)
WAITS = "Submissions are waiting, but no worker is active"
Usage = namedtuple("Usage", "free")


def health(site: Site) -> tuple[int, dict[str, Any]]:
    answer = site.client.get("/health")
    return answer.status_code, answer.json()


def metrics(site: Site) -> dict[str, float]:
    lines = [line.rsplit(" ", 1) for line in site.client.get("/metrics").text.splitlines() if line[0] != "#"]
    return {name: float(value) for name, value in lines}


def set_times(site: Site, **times: datetime) -> None:
    with site.database.writing() as session:
        session.execute(update(ScoringRow).values(**times))


def test_health_is_ok_while_all_holds(site: Site) -> None:
    assert health(site) == (200, {"status": "ok", "database": "ok", "warnings": []})


def test_a_file_that_was_removed_or_replaced_is_told(open_site: OpenSite, tmp_path: Path) -> None:
    site = open_site()
    file = tmp_path / "portal.sqlite3"
    file.rename(tmp_path / "elsewhere")
    told = {"status": "failing", "database": "its file was removed or replaced while it was open", "warnings": []}
    assert health(site) == (503, told)
    file.touch()
    assert health(site) == (503, told)
    (tmp_path / "elsewhere").rename(file)
    assert health(site)[0] == 200


def test_a_database_that_does_not_answer_is_told(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OperationalError("SELECT 'secret'", None, OSError("at postgresql://portal:secret@host"))

    monkeypatch.setattr(site.database, "reading", fail)
    assert health(site) == (503, {"status": "failing", "database": "it does not answer", "warnings": []})
    assert metrics(site)["headstart_database_up"] == 0


def test_submissions_that_nobody_scores_are_told(site: Site) -> None:
    site.submit(blue("owl", "lark"))
    assert health(site)[1]["warnings"] == []
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    set_times(site, queued=long_ago, not_before=long_ago)
    code, told = health(site)
    assert code == 200
    assert WAITS in told["warnings"][0]
    site.log_in(add_organiser(site.database))
    assert WAITS in site.client.get("/desk").text
    assert 3600 <= metrics(site)["headstart_oldest_waiting_seconds"] < 3700
    # A process that comes is seen.
    job = claim(site.database, "worker-1")
    assert job is not None
    assert health(site)[1]["warnings"] == []
    assert metrics(site)["headstart_oldest_waiting_seconds"] == 0
    assert metrics(site)["headstart_worker_seen_seconds"] < 60
    assert "worker-1" in site.client.get("/desk").text
    # Its machine is switched off.
    set_times(site, started=long_ago, lease_until=long_ago)
    assert WAITS in health(site)[1]["warnings"][0]
    site.work()
    assert health(site)[1]["warnings"] == []


def test_what_waits_and_who_scores_in_either_database(database_url: str, tmp_path: Path) -> None:
    site = Site(make_settings(tmp_path, {}, database=database_url))
    with site.client:
        site.token = add_team(site.database, "Owls")
        with site.database.reading() as session:
            assert read_work(session, datetime.now(UTC)) == Work(None, False, [])
            size, revision = read_size(session)
        assert size > 50_000
        assert re.fullmatch(r"\d{4}", revision)
        for _ in range(3):
            site.submit(blue("owl", "lark"))
        first, second = claim(site.database, "one"), claim(site.database, "two")
        assert first is not None
        assert second is not None
        put_back(site.database, first, "", "")
        with site.database.reading() as session:
            scorings = {row.id: row for row in session.query(ScoringRow)}
            work = read_work(session, datetime.now(UTC))
        assert work.oldest == min(row.queued for row in scorings.values() if row.state == "queue")
        assert not work.is_stalled
        lease, started = scorings[second.id].lease_until, scorings[second.id].started
        assert lease is not None
        assert started is not None
        assert work.workers == [("two", max(lease - LEASE, started)), ("one", scorings[first.id].started)]


def test_a_disk_without_room_is_told(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda folder: Usage(5 * 2**20))
    code, told = health(site)
    assert code == 200
    assert "The disk of the data folder has only 5 MB of free space." in told["warnings"]
    assert metrics(site)['headstart_free_bytes{folder="data"}'] == 5 * 2**20


def test_room_is_that_of_the_disk_of_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    settings = replace(make_settings(tmp_path, {}), data=str(tmp_path / "not" / "yet"))
    assert system.read_room(settings)["data"] > 0


def test_the_last_copy_is_recorded(site: Site, tmp_path: Path) -> None:
    site.log_in(add_organiser(site.database))
    assert 'Last backup</dt><dd><span class="wrong">none' in site.client.get("/desk").text
    main([f"--data={tmp_path}", "backup", str(tmp_path / "copy.sqlite3")])
    page = site.client.get("/desk").text
    assert f"The database was copied to {tmp_path / 'copy.sqlite3'}." in page
    with site.database.reading() as session:
        copied = find_last_backup(session)
    assert copied is not None
    assert f'Last backup</dt><dd><time datetime="{copied.isoformat()}"' in page
    assert abs(copied - datetime.now(UTC)) < timedelta(minutes=1)


def test_the_copy_before_a_migration_is_recorded(tmp_path: Path) -> None:
    file = tmp_path / "portal.sqlite3"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(Path(portals.__file__).with_name("portal_format_1.sql").read_text())
    database = Database(f"sqlite:///{file}")
    assert database.create_tables() is not None
    with database.reading() as session:
        assert find_last_backup(session) is not None
    assert database.create_tables() is None


def test_scores_of_other_documents_are_told_and_scored_again_with_a_button(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, {})
    site = Site(settings)
    with site.client:
        organiser = add_organiser(site.database)
        site.token = add_team(site.database, "Owls")
        site.submit(blue("owl", "lark"))
        site.work()
        site.log_in(organiser)
        page = site.client.get("/desk").text
        assert "not on the leaderboard" not in page
        assert "Scores are computed from these documents." in page
    (tmp_path / "catalog.jsonl").write_text("\n".join(map(json.dumps, STIMULI[:4])))
    other = Site(settings)
    with other.client:
        other.log_in(organiser)
        page = other.client.get("/desk").text
        assert "1 scored submission is not on the leaderboard" in page
        link = re.search(r'class="button" href="(/desk/run/rescore[^"]*)"', page)
        assert link is not None
        assert 'name="held_back" value="true" checked' in other.client.get(html.unescape(link[1])).text
        assert run_at_desk(other, "rescore", held_back="true").status_code == 200
        other.work()
        assert "not on the leaderboard" not in other.client.get("/desk").text


def test_held_out_scores_are_not_at_the_desk(tmp_path: Path) -> None:
    """An organiser may be a member of a team, too."""
    (tmp_path / "held.jsonl").write_text("\n".join(map(json.dumps, STIMULI[:2])))
    site = Site(make_settings(tmp_path, {}, held_out_catalog=str(tmp_path / "held.jsonl")))
    with site.client:
        site.token = add_team(site.database, "Owls")
        site.submit(blue("owl", "lark"))
        jobs = site.work()
        assert [job.kind for job in jobs] == ["public", "held_out"]
        site.log_in(add_organiser(site.database))
        pages = [site.client.get(path).text for path in ("/desk", "/desk/submissions", "/desk/teams")]
        value = 1 / len(blue("owl", "lark"))
        assert f"{value:.6f}" in pages[0]
        assert f"{value:.6f}" in pages[1]
        assert not any(f"{1 - value:.5f}"[:7] in page for page in pages)
