"""The organiser's commands about teams, their members and organisers."""

import csv
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import Engine, event
from sqlalchemy.exc import OperationalError

from headstart.portal.admin import main
from headstart.portal.records.accounts import find_account
from headstart.portal.records.log import read_whole_log
from headstart.tests.material.portals import Site, blue

Admin = Callable[..., str]
ADDRESS = "https://challenge.example.org"
TOKEN = re.compile(r"token ([\w-]{43}),")
LINK = re.compile(rf"{ADDRESS}(/join/[\w-]{{43}})")


@pytest.fixture
def admin(site: Site, capsys: pytest.CaptureFixture[str]) -> Admin:
    """Return a function that runs a command on the portal of the test and returns its output or its error."""

    def run(*words: str) -> str:
        with suppress(SystemExit):
            main([f"--data={site.settings.data}", f"--url={ADDRESS}", *words])
            return capsys.readouterr().out
        return capsys.readouterr().err

    return run


def found(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    assert match is not None, text
    return match[1]


def lines(site: Site) -> list[str]:
    """Return the lines of the log but those about who gave which command."""
    return [event.text for event in read_whole_log(site.database, 50) if event.kind != "command"]


def test_a_team_gets_token_and_recovery_code(site: Site, admin: Admin) -> None:
    told = admin("teams", "add", "Larks")
    code = told.split("recovery code ")[1].split()[0]
    assert site.submit(blue("owl", "lark"), token=found(TOKEN, told)).status_code == 201
    assert "The keys of Larks" in site.client.post("/recover", data={"code": code}).text
    assert site.submit(blue("owl", "lark"), token=found(TOKEN, told)).status_code == 401
    assert "looks like" in admin("teams", "add", "LARKS")
    assert "mixes Latin" in admin("teams", "add", "Lаrks")


def test_a_registration_by_link_waits_for_approval(site: Site, admin: Admin) -> None:
    path = found(LINK, admin("teams", "invite"))
    page = site.client.post(path, data={"team": "Larks", "name": "Alice"}).text
    token = re.findall(r"<code>([\w-]{43})</code>", page)[0]
    assert "waits for approval" in admin("teams", "list")
    answer = site.submit(blue("owl", "lark"), token=token)
    assert (answer.status_code, "approve" in answer.text) == (403, True)
    assert site.read("/api/submissions", token) == []
    assert "The organisers must approve your team" in site.client.get("/blue").text
    assert admin("teams", "approve", "larks") == "Larks may submit.\n"
    assert site.submit(blue("owl", "lark"), token=token).status_code == 201
    admin("teams", "revoke", "Larks")
    assert site.submit(blue("owl", "lark"), token=token).status_code == 401
    # The team may have no member whose token could be renewed.
    assert admin("teams", "approve", "Larks") == "Larks may submit.\n"
    assert site.submit(blue("owl", "lark"), token=token).status_code == 201


@pytest.mark.slow
def test_members_by_name(site: Site, admin: Admin) -> None:
    for name in ("Alice", "Bob"):
        site.client.post(found(LINK, admin("teams", "invite", "Owls")), data={"name": name})
    assert admin("teams", "renew", "Owls").startswith("error: member: Owls, Alice, Bob are members; name one")
    first = found(TOKEN, admin("teams", "renew", "Owls", "--member=alice"))
    second = found(TOKEN, admin("teams", "renew", "Owls", "--member=Alice"))
    assert [find_account(site.database, each) is None for each in (first, second)] == [True, False]
    assert admin("teams", "revoke", "Owls", "--member=Alice") == "Alice was removed from Owls.\n"
    assert find_account(site.database, second) is None
    assert "Owls, Bob" in admin("teams", "list")
    assert admin("teams", "revoke", "Owls", "--member=Nobody").startswith("error: member: there is no person 'Nobody'")
    assert find_account(site.database, found(TOKEN, admin("teams", "renew", "Owls", "--member=Alice"))) is not None
    assert "Owls, Alice, Bob" in admin("teams", "list")


def test_organisers(site: Site, admin: Admin) -> None:
    token = found(TOKEN, admin("organisers", "add", "Olga", "--email=Olga@Example.org"))
    account = find_account(site.database, token)
    assert account is not None
    assert (account.is_organiser, account.team, account.email) == (True, None, "olga@example.org")
    assert site.submit(blue("owl", "lark"), token=token).status_code == 403
    site.log_in(token)
    page = site.client.get("/team").text
    assert "Invite a member" not in page
    assert "Log out" in page
    assert "Olga" in admin("organisers", "list")
    assert "looks like an organiser that exists, 'Olga'" in admin("organisers", "add", "0lga")
    assert "belongs to an account" in admin("organisers", "add", "Otto", "--email=olga@example.org")
    assert admin("organisers", "revoke", "olga") == "Olga is no longer an organiser.\n"
    assert find_account(site.database, token) is None
    assert site.client.get("/team").status_code == 303
    assert "Olga" not in admin("organisers", "list")


def test_import_writes_invitations(site: Site, admin: Admin, tmp_path: Path) -> None:
    table, output = tmp_path / "teams.csv", tmp_path / "invitations.csv"
    table.write_text("team,member,email\nLarks,Alice,alice@example.org\nLarks,Bob,\nOwls,,\n")
    assert admin("teams", "import", str(table), f"--output={output}").startswith("3 invitations are in ")
    assert stat.S_IMODE(output.stat().st_mode) == 0o600
    rows = list(csv.DictReader(output.open()))
    assert [row["team"] for row in rows] == ["Larks", "Larks", "Owls"]
    page = site.client.get(found(LINK, rows[0]["link"])).text
    assert "Join Larks" in page
    assert 'value="Alice"' in page
    # The links are nowhere else, so nothing replaces them.
    before = output.read_bytes()
    assert "exists and may hold earlier invitations" in admin("teams", "import", str(table), f"--output={output}")
    assert output.read_bytes() == before


@pytest.mark.parametrize("what", ["line", "none", "bytes", "folder"])
def test_an_import_that_fails_changes_nothing(site: Site, admin: Admin, tmp_path: Path, what: str) -> None:
    table, output = tmp_path / "teams.csv", tmp_path / "invitations.csv"
    if what != "none":
        table.write_bytes(b"team\nLarks\n" + {"line": "L\u200b\n".encode(), "bytes": b"\xff\n"}.get(what, b""))
    if what == "folder":
        output = tmp_path / "teams.csv" / "none.csv"
    before = lines(site)
    error = admin("teams", "import", str(table), f"--output={output}")
    starts = {
        "line": "error: file: line 3: name: 'L",
        "none": "error: file: ",
        "bytes": "error: file: ",
        "folder": "error: output: ",
    }
    assert error.startswith(starts[what]), error
    assert error.count("\n") == 1
    assert not output.exists()
    assert "Larks" not in admin("teams", "list")
    assert lines(site) == before


def test_an_import_that_cannot_be_stored_leaves_no_file(site: Site, admin: Admin, tmp_path: Path) -> None:
    """Links of invitations that are not in the database would be sent in vain."""
    table, output = tmp_path / "teams.csv", tmp_path / "invitations.csv"
    table.write_text("team\nLarks\n")

    def fail(_: object) -> None:
        if output.exists():
            raise OperationalError("the disk is full", None, OSError())

    event.listen(Engine, "commit", fail)
    try:
        assert admin("teams", "import", str(table), f"--output={output}").startswith("error: database: ")
    finally:
        event.remove(Engine, "commit", fail)
    assert not output.exists()
    assert "Larks" not in admin("teams", "list")


def test_a_list_is_pasted_at_the_desk(site: Site, admin: Admin) -> None:
    site.log_in(found(TOKEN, admin("organisers", "add", "Olga")))
    page = site.client.get("/desk/run/teams/import").text
    fields = {"proof": re.findall(r'name="proof" value="(\w+)"', page)[0], "file": "team,member\r\nLarks,Alice\r\n"}
    answer = site.client.post("/desk/run/teams/import", data=fields)
    assert answer.status_code == 200
    path = re.findall(r"Larks,Alice,,http://[^/]+(/join/[\w-]{43})", answer.text)[0]
    assert "Join Larks" in site.client.get(path).text
    refused = site.client.post("/desk/run/teams/import", data={**fields, "file": "team\n0wls\n"})
    assert (refused.status_code, "looks like a team that exists" in refused.text) == (400, True)
