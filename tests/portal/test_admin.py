"""The organiser's commands."""

import csv
import json
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
import yaml

from headstart.portal.admin import main
from headstart.portal.work.queue import Outcome, claim, finish
from headstart.tests.material.portals import Site, blue, red
from headstart.tests.material.stub_scores import stub_score

Admin = Callable[..., str]
OpenSite = Callable[..., Site]


@pytest.fixture
def admin(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Admin:
    """Return a function that runs a command on the portal of the test and returns its output or its error."""

    def run(*words: str, **settings: object) -> str:
        chosen = {name: str(tmp_path / name) for name in ("challenge.yaml", "registry.json", "catalog.jsonl")}
        paths = {name.partition(".")[0]: path for name, path in chosen.items()}
        without = {"held_out_registry": None, "held_out_catalog": None, "datasets": None, "demonstration": False}
        config = tmp_path / "portal.yaml"
        config.write_text(yaml.safe_dump({**paths, **without, "data": str(tmp_path), **settings}))
        with suppress(SystemExit):
            main([f"--config={config}", *words])
            return capsys.readouterr().out
        return capsys.readouterr().err

    return run


def test_teams(site: Site, admin: Admin) -> None:
    token = admin("teams", "add", "Night owls").split("token ")[1].split(",")[0]
    assert site.submit(blue("owl", "lark"), token=token).status_code == 201
    assert "looks like a team that exists, 'Night owls'" in admin("teams", "add", "night OWLS")
    for name in ("", " x", "a\u202eb", "x" * 65, "a\nb", "\u3164", "a\ufe0f", "\ufdfa" * 64):
        assert admin("teams", "add", name).startswith("error: name: ")
    for name in ("{a: b}", "--x", "-y"):
        assert admin("teams", "add", "--", name).startswith(f"{name} has the token ")
    other = admin("teams", "renew", "Night owls").split("token ")[1].split(",")[0]
    assert site.submit(blue("owl", "lark"), token=token).status_code == 401
    admin("teams", "revoke", "Night owls")
    assert site.submit(blue("owl", "lark"), token=other).status_code == 401
    assert "revoked" in admin("teams", "list")
    for name in ("Nobody", "\udcff"):
        assert admin("teams", "revoke", name).startswith(f"error: name: there is no team {name!a}")
    # No token is anywhere in the database.
    assert token not in Path(site.settings.data, "portal.sqlite3").read_bytes().decode(errors="replace")


def test_scored_again(site: Site, admin: Admin) -> None:
    site.submit(blue("owl", "lark"))
    site.submit(blue("crow", "lark"))
    failing = claim(site.database, "first")
    assert failing is not None
    assert finish(site.database, failing, Outcome("failed", error="no room/for it"))
    assert "no room/for it" in admin("log")
    assert "failed" in admin("status")
    assert "it was refused" in admin("rescore", "2")
    assert "there is none" in admin("rescore", "3")
    assert "give numbers of submissions, or one of" in admin("rescore")
    admin("rescore", "--failed")
    assert "it is being scored" in admin("rescore", "1")
    site.work()
    before = site.read("/api/leaderboard?team=blue")
    admin("rescore", "--scored")
    # The old score stands until there is a new one.
    assert site.read("/api/leaderboard?team=blue") == before
    assert site.read("/api/submissions/1")["state"] == "queue"
    site.work()
    assert site.read("/api/submissions/1")["state"] == "scored"
    assert "public  scored" in admin("status")


def fail_next(site: Site) -> tuple[int, str]:
    job = claim(site.database, "first")
    assert job is not None
    assert finish(site.database, job, Outcome("failed"))
    return job.submission_id, job.kind


def test_a_held_out_score_that_failed_is_computed_again(open_site: OpenSite, admin: Admin) -> None:
    held_out = {"held_out_catalog": "held_out.jsonl"}
    site = open_site(**held_out)
    held_out = {"held_out_catalog": f"{site.settings.held_out_catalog}"}
    site.submit(blue("owl", "lark"))
    site.submit(blue("owl", "wren"))
    job = claim(site.database, "first")
    assert job is not None
    assert finish(site.database, job, stub_score(job))
    assert fail_next(site) == (2, "public")
    assert fail_next(site) == (1, "held_out")
    # The other held-out one waits, and keeps its position.
    assert "2 submissions are in the queue again" in admin("rescore", "--failed", **held_out)
    assert [(job.submission_id, job.kind) for job in site.work()] == [
        (1, "public"),
        (2, "public"),
        (2, "held_out"),
        (1, "held_out"),
    ]
    assert "0 submissions" in admin("rescore", "--failed", **held_out)


def test_scored_submissions_are_scored_again_while_held_out_scores_wait(open_site: OpenSite, admin: Admin) -> None:
    held_out = {"held_out_catalog": "held_out.jsonl"}
    site = open_site(**held_out)
    held_out = {"held_out_catalog": f"{site.settings.held_out_catalog}"}
    site.submit(blue("owl", "lark"))
    job = claim(site.database, "first")
    assert job is not None
    assert finish(site.database, job, stub_score(job))
    assert "1 submission is in the queue again" in admin("rescore", "--scored", **held_out)
    assert "it is being scored" in admin("rescore", "1", **held_out)
    assert [job.kind for job in site.work()] == ["public", "held_out"]


def test_numbers_that_are_none(site: Site, admin: Admin) -> None:
    site.submit(blue("owl", "lark"))
    site.work()
    assert "1 submission is" in admin("rescore", "1", "1")
    for number in ("0", "-1", f"{2**31}", "9" * 30):
        assert "there is none" in admin("rescore", number)
    for lines in ("0", "-1", "x"):
        assert admin("log", f"--lines={lines}").startswith("error: lines: ")


def test_submissions_that_later_rules_refuse_leave_the_leaderboard(site: Site, admin: Admin) -> None:
    site.submit(blue("owl", "lark"))
    site.submit(blue("owl", "lark", "wren"))
    site.work()
    admin("rescore", "1")
    job = claim(site.database, "first")
    assert job is not None
    problems = [{"pointer": "", "value": "", "rule": "must have 3 models"}]
    assert finish(site.database, job, Outcome("refused", "The rules have changed.", problems=problems))
    assert site.read("/api/submissions/1")["state"] == "refused"
    assert [line["submission"] for line in site.read("/api/leaderboard?team=blue")] == [2]
    # The organisers have corrected the rules.
    admin("rescore", "1")
    assert site.read("/api/submissions/1")["state"] == "queue"
    site.work()
    document = site.read("/api/submissions/1")
    assert (document["state"], document["problems"]) == ("scored", [])
    assert [line["submission"] for line in site.read("/api/leaderboard?team=blue")] == [1]


def test_a_failed_submission_counts_again_when_it_is_scored_again(open_site: OpenSite, admin: Admin) -> None:
    site = open_site({"teams": {"blue": {"submissions": 1}}})
    site.submit(blue("owl", "lark"))
    failing = claim(site.database, "first")
    assert failing is not None
    finish(site.database, failing, Outcome("failed"))
    assert site.submit(blue("owl", "wren")).status_code == 201
    assert site.submit(blue("owl", "rook")).status_code == 422
    admin("rescore", "--failed")
    assert site.submit(blue("owl", "rook")).status_code == 422


def test_freezing(site: Site, admin: Admin) -> None:
    site.submit(blue("owl", "lark"))
    admin("freeze")
    admin("freeze")
    assert site.submit(blue("owl", "lark")).status_code == 403
    assert not site.read("/api/challenge")["open"]
    assert len(site.work()) == 1
    admin("thaw")
    assert site.submit(blue("owl", "lark")).status_code == 201


def test_export(open_site: OpenSite, admin: Admin, tmp_path: Path) -> None:

    site = open_site(held_out_catalog="held_out.jsonl")
    site.submit(blue("owl", "lark"))
    site.submit(b"\xff")
    site.submit(red(0, 1), "red")
    site.work()
    admin("export", str(tmp_path / "out"))
    board = list(csv.DictReader((tmp_path / "out" / "leaderboard_blue.csv").open()))
    assert [(line["rank"], line["team"], float(line["score"])) for line in board] == [
        ("1", "Owls", 1 / len(blue("owl", "lark")))
    ]
    records = [json.loads(line) for line in (tmp_path / "out" / "submissions.jsonl").read_text().splitlines()]
    assert [json.loads(records[index]["document"]) for index in (0, 2)] == [
        json.loads(blue("owl", "lark")),
        json.loads(red(0, 1)),
    ]
    assert [each["kind"] for each in records[0]["scorings"]] == ["public", "held_out"]
    assert records[1]["problems"]
    log = [json.loads(line) for line in (tmp_path / "out" / "log.jsonl").read_text().splitlines()]
    assert {line["event"] for line in log} == {"team added", "received", "refused", "started", "scored"}


def test_a_name_is_no_formula_in_a_spreadsheet(site: Site, admin: Admin, tmp_path: Path) -> None:
    token = admin("teams", "add", "=1+1").split("token ")[1].split(",")[0]
    site.submit(blue("owl", "lark"), token=token)
    site.work()
    admin("export", str(tmp_path / "out"))
    board = csv.DictReader((tmp_path / "out" / "leaderboard_blue.csv").open())
    assert [line["team"] for line in board] == ["'=1+1"]


def test_backup(site: Site, admin: Admin, tmp_path: Path) -> None:
    site.submit(blue("owl", "lark"))
    admin("backup", str(tmp_path / "copies" / "copy.sqlite3"))
    with closing(sqlite3.connect(tmp_path / "copies" / "copy.sqlite3")) as copy:
        assert copy.execute("SELECT content FROM submissions").fetchall() == [(blue("owl", "lark"),)]
    (copied,) = (tmp_path / "copies").iterdir()
    assert copied.name == "copy.sqlite3"
    assert stat.S_IMODE(copied.stat().st_mode) == 0o600


def test_a_backup_is_not_put_in_the_place_of_the_database(site: Site, admin: Admin, tmp_path: Path) -> None:
    (tmp_path / "link.sqlite3").symlink_to(tmp_path / "portal.sqlite3")
    before = (tmp_path / "portal.sqlite3").stat().st_ino
    for name in ("portal.sqlite3", "portal.sqlite3-wal", "portal.sqlite3-shm", "link.sqlite3"):
        assert "is the database in use" in admin("backup", str(tmp_path / name))
    assert (tmp_path / "portal.sqlite3").stat().st_ino == before


def test_others_on_the_machine_see_nothing(admin: Admin, tmp_path: Path) -> None:
    assert admin("status", data=str(tmp_path / "new" / "portal"))
    assert stat.S_IMODE((tmp_path / "new" / "portal").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("database", "says"),
    [
        ("mysql://secret@localhost/x", "database: must be a URL of SQLite or PostgreSQL"),
        ("nonsense", "database: must be a URL of SQLite or PostgreSQL"),
        ("postgresql://portal:secret@127.0.0.1:1/x", "database: cannot be used"),
        ("sqlite:////none/there/portal.sqlite3", "database: cannot be used"),
    ],
)
def test_databases_that_cannot_be_used(site: Site, admin: Admin, database: str, says: str) -> None:
    message = admin("status", database=database)
    assert says in message
    assert message.count("\n") == 1
    assert "secret" not in message


def test_a_database_of_another_version(site: Site, admin: Admin) -> None:
    with closing(sqlite3.connect(site.settings.folder / "portal.sqlite3")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    assert "was made by a later version" in admin("status")
