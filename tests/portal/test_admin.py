"""The organisers' commands, the files that they write, and the settings and the database that they find."""

import csv
import json
import stat
from contextlib import closing
from pathlib import Path

import pytest

from headstart.output.errors import UserError
from headstart.portal import admin
from headstart.portal.database import Database, make_private_folder
from headstart.portal.settings import Settings
from headstart.tests.material.portals import Site, blue, red
from headstart.tests.portal.conftest import OpenSite


def test_mistakes_are_one_line(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.submit(blue("owl", "lark"))
    for words, message in {
        "add-team Owls": "name: there is a team 'Owls'; for another token, run `revoke-team` first",
        "revoke-team none": "name: there is no team 'none'; `list-teams` names all",
        "revoke-team \udcff": "name: there is no team '\\udcff'; `list-teams` names all",
        "hide -1": "number: there is no submission -1; `list-submissions` names all",
        f"rescore {2**70}": f"number: there is no submission {2**70}; `list-submissions` names all",
        "rescore all": "which: expected a whole number or one of failed, held_back, not all",
        "rescore 1": "which: submission 1 is being scored; wait for its end",
        "none": "argument",
    }.items():
        with pytest.raises(SystemExit):
            site.admin(*words.split(" "))
        error = capsys.readouterr().err
        assert (error.count("\n"), message in error) == (1, True), error


def test_everything_is_exported_and_listed(
    open_site: OpenSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = open_site({"deadline": "2999-01-01T00:00:00Z"}, held_out_catalog="hidden.jsonl")
    formula = site.add_team("=1+1")
    site.submit(blue("owl", "lark"))
    site.submit(red(0, 1), formula)
    site.work()
    site.admin("export", str(tmp_path / "out"))
    paths = sorted((tmp_path / "out").iterdir())
    assert [path.name for path in paths] == ["leaderboard_blue.csv", "leaderboard_red.csv", "submissions.jsonl"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600}
    value = 1 / len(blue("owl", "lark"))
    with paths[0].open() as file:
        (line,) = csv.DictReader(file)
    assert (line["rank"], line["participant"], float(line["score"])) == ("1", "Owls", value)
    assert line["held_out_score"] == ""
    # No spreadsheet takes a name for a formula.
    assert "'=1+1" in paths[1].read_text()
    first, second = (json.loads(line) for line in paths[2].read_text().splitlines())
    assert [first["document"], second["document"]] == [blue("owl", "lark").decode(), red(0, 1).decode()]
    assert [first[name] for name in ("participant", "score", "held_out_score")] == ["Owls", value, 1 - value]
    assert [result["score"] for result in first["results"]] == [value, 1 - value]
    capsys.readouterr()
    site.admin("revoke-team", "OWLS")
    site.admin("list-teams")
    site.admin("list-submissions")
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert [row[-2:] for row in rows if row[0] == "Owls"][-1] == ["revoked", "1"]
    assert [row[0] for row in rows if row[1:2] in (["Owls"], ["=1+1"])] == ["2", "1"]


def test_settings_that_cannot_be_served() -> None:
    for host in ("challenge.example.org", "https://challenge.example.org/portal", "https://", "https://[::1"):
        with pytest.raises(UserError, match="is not a portal's address"):
            Settings(url=host)
    for host in ("https://[::1]:8000", "http://localhost:8000/", "https://challenge.example.org:443"):
        assert Settings(url=host).hosts


def test_a_database_of_another_schema_or_none_is_refused(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with site.database.writing() as session:
        session.connection().exec_driver_sql("PRAGMA user_version = 2")
    with pytest.raises(UserError, match=r"^data: portal\.sqlite3 has schema 2, and this portal reads schema 1; use"):
        site.database.create_tables()
    other = tmp_path / "other"
    other.mkdir()
    (other / "portal.sqlite3").write_bytes(b"no database" * 100)
    with pytest.raises(SystemExit):
        admin.main([f"--data={other}", "list-teams"])
    error = capsys.readouterr().err
    assert (error.count("\n"), error.startswith("error: data: the database cannot be used (")) == (1, True), error


def test_files_are_the_owners_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "data"
    folder.mkdir(0o755)
    make_private_folder(folder)
    with closing(Database(folder)) as opened:
        opened.create_tables()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    def refuse(*_: object) -> None:
        raise PermissionError

    folder.chmod(0o750)
    monkeypatch.setattr(Path, "chmod", refuse)
    with pytest.raises(UserError, match=r"^data: .* is open to others .* `chmod go= "):
        make_private_folder(folder)
