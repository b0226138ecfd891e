"""The organisers' commands, the files that they write, the settings, and the database that they find."""

import csv
import json
import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from headstart.output.errors import UserError
from headstart.portal import admin
from headstart.portal.database import Database, make_private_folder
from headstart.portal.settings import Settings
from headstart.tests.material.portals import Site, blue, red


def test_a_team_from_its_token_to_its_removal(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    def say(*words: str) -> str:
        site.admin(*words)
        return capsys.readouterr().out

    token = say("teams", "add", "Night owls").split("token ")[1].split(",")[0]
    site.submit(blue("owl", "lark"), token=token)
    site.submit(blue("owl", "crow"), token=token)
    states = [line.split()[-3:] for line in say("teams", "list").splitlines() if "owls" in line.lower()]
    assert states == [["takes", "part", "1"], ["takes", "part", "0"]]
    site.log_in(token)
    assert "`teams add` prints a new token" in say("teams", "revoke", "night OWLS")
    assert "revoked" in say("teams", "list")
    assert site.client.get("/submissions").headers["location"] == "/login"
    assert site.client.post("/login", data={"token": token}).status_code == 401
    assert site.client.get("/api/submissions", headers=site.headers(token)).status_code == 401
    renewed = site.add_team("Night owls")
    assert [row["id"] for row in site.read("/api/submissions", renewed)] == [2, 1]
    assert site.client.get("/api/submissions", headers=site.headers(token)).status_code == 401
    site.work()
    assert "submissions: 2." in say("teams", "remove", "Night owls")
    assert "Night" not in say("teams", "list")
    assert site.client.get("/api/leaderboard?team=blue").json()["standings"] == []


def test_mistakes_are_one_line(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.submit(blue("owl", "crow"))
    site.submit(blue("owl", "lark"))
    for words, message in {
        "teams add OWLS": "name: there is a team 'Owls'; for another token, run `teams revoke` first",
        "teams revoke none": "name: there is no team 'none'; `teams list` names all",
        "teams remove \udcff": "name: there is no team '\\udcff'; `teams list` names all",
        "submissions show 9": "number: there is no submission 9; `submissions list` names all",
        "submissions hide -1": "number: there is no submission -1; `submissions list` names all",
        f"submissions rescore {2**40}": f"number: there is no submission {2**40}; `submissions list` names all",
        "submissions rescore all": "which: expected a whole number or one of failed, held_back, not all",
        "submissions rescore 1": "numbers: submission 1 was refused when it was submitted; choose another",
        "submissions rescore 2": "numbers: submission 2 is being scored; wait for its end",
        "submissions show one": "number",
        "none": "argument",
    }.items():
        with pytest.raises(SystemExit):
            site.admin(*words.split(" "))
        error = capsys.readouterr().err
        assert (error.count("\n"), message in error) == (1, True), error


def test_everything_is_exported_and_shown(site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    formula = site.add_team("=1+1")
    site.submit(blue("owl", "lark"))
    site.submit(red(0, 1), "red", formula)
    site.submit(blue("owl", "crow"))
    site.work()
    site.admin("export", str(tmp_path / "out"))
    paths = sorted((tmp_path / "out").iterdir())
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600}
    with paths[0].open() as file:
        (line,) = csv.DictReader(file)
    assert (line["rank"], line["participant"], float(line["score"])) == ("1", "Owls", 1 / len(blue("owl", "lark")))
    # No spreadsheet takes a name for a formula.
    assert "'=1+1" in paths[1].read_text()
    submissions = [json.loads(line) for line in paths[3].read_text().splitlines()]
    assert [row["document"] for row in submissions] == [blue("owl", "lark").decode(), red(0, 1).decode(), None]
    assert [row["score"] for row in submissions] == [1 / len(blue("owl", "lark")), 1 / len(red(0, 1)), None]
    assert submissions[0]["result"]["score"] == submissions[0]["score"]
    assert submissions[2]["problems"][0]["pointer"] == "/models/1"
    events = [json.loads(line) for line in paths[2].read_text().splitlines()]
    assert [event["public"] for event in events if event["event"] in ("scored", "refused")] == [False, True, True]
    capsys.readouterr()
    site.admin("submissions", "show", "1")
    assert json.loads(capsys.readouterr().out) == submissions[0]
    site.admin("submissions", "list")
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines() if "Owls" in line] == ["3", "1"]


def test_settings_that_cannot_be_served() -> None:
    for host in ("challenge.example.org", "https://challenge.example.org/portal", "https://", "https://[::1"):
        with pytest.raises(UserError, match="is not a portal's address"):
            Settings(url=host)
    for host in ("https://[::1]:8000", "http://localhost:8000/", "https://challenge.example.org:443"):
        assert Settings(url=host).hosts


def test_other_databases_are_refused_without_their_password(monkeypatch: pytest.MonkeyPatch) -> None:
    for url in ("none", "mysql://root:secret@host/portal", "sqlite+none:///a", ""):
        with pytest.raises(UserError, match=r"^database: ") as caught:
            Database(url)
        assert "secret" not in str(caught.value)
    monkeypatch.setenv("DATABASE_URL", "postgres://portal@host/portal")
    assert Settings(database="sqlite:///a").database_url == "sqlite:///a"
    assert Database(Settings().database_url).engine.dialect.name == "postgresql"


def test_a_database_of_another_schema_is_refused(database: Database) -> None:
    changes = {"UPDATE facts SET value = '1' WHERE name = 'schema'": "1", "DROP TABLE facts": "of another program"}
    for change, schema in changes.items():
        with database.engine.begin() as connection:
            connection.execute(text(change))
        with pytest.raises(UserError, match=rf"^database: has schema {schema}, and this portal reads schema 2; use an"):
            database.create_tables()


def test_a_removed_or_replaced_file_takes_nothing_more(site: Site) -> None:
    assert site.submit(blue("owl", "lark")).status_code == 201
    file = site.settings.folder / "portal.sqlite3"
    file.rename(file.with_name("away"))
    assert site.submit(blue("owl", "wren")).status_code == 503
    assert site.client.get("/health").status_code == 503
    with closing(sqlite3.connect(file)) as other:
        other.execute("CREATE TABLE other (id)")
    assert site.submit(blue("owl", "wren")).status_code == 503
    file.with_name("away").replace(file)
    assert site.client.get("/health").status_code == 200
    assert site.submit(blue("owl", "wren")).status_code == 201


def test_files_are_the_owners_alone(tmp_path: Path) -> None:
    settings = Settings(data=str(tmp_path / "data"))
    before = os.umask(0)
    try:
        make_private_folder(settings.folder)
        with closing(Database(settings.database_url)) as opened:
            opened.create_tables()
            assert opened.reading().scalar(text("SELECT 1")) == 1
            modes = [stat.S_IMODE(path.stat().st_mode) for path in settings.folder.glob("portal.sqlite3*")]
    finally:
        os.umask(before)
    assert stat.S_IMODE(settings.folder.stat().st_mode) == 0o700
    assert set(modes) == {0o600}


def test_a_database_that_is_away_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        admin.main([f"--data={tmp_path}", "--database=postgresql://nobody@127.0.0.1:1/none", "teams", "list"])
    error = capsys.readouterr().err
    assert error.startswith("error: database: cannot be used (")
    assert error.count("\n") == 1
