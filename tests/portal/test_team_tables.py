"""Teams and their invitations from a table in CSV."""

import csv
from io import StringIO

import pytest
from sqlalchemy import event, func, select

from headstart.output.errors import UserError
from headstart.portal.records.accounts import add_team, find_person, find_team, list_members, revoke_team
from headstart.portal.records.database import Database
from headstart.portal.records.invitations import import_teams
from headstart.portal.records.tables import InvitationRow, TeamRow
from headstart.tests.material.invitations import NOW, join, log, make_invitation


def test_a_table_of_teams(database: Database) -> None:
    add_team(database, "Owls")
    lines = (
        "member,team,email",
        "Alice,Larks,A@Example.org",
        "",
        "Bob,larks,",
        ",=Wrens,",
        "Carol,owls,c@example.org",
    )
    text = "\ufeff" + "\r\n".join(lines)
    with database.writing() as session:
        table = import_teams(session, NOW, text, "a test", lambda code: f"https://x/join/{code}")
    rows = list(csv.DictReader(StringIO(table)))
    assert [(row["team"], row["member"], row["email"]) for row in rows] == [
        *(("Larks", "Alice", "A@Example.org"), ("larks", "Bob", "")),
        *(("'=Wrens", "", ""), ("owls", "Carol", "c@example.org")),
    ]
    for row in rows:
        assert join(database, row["link"].removeprefix("https://x/join/"), row["member"] or "Dave") is not None
    with database.reading() as session:
        members = {
            team.name: [each.name for each in list_members(session, team.id)]
            for team in session.scalars(select(TeamRow))
        }
        assert members == {"Owls": ["Owls", "Carol"], "Larks": ["Alice", "Bob"], "=Wrens": ["Dave"]}
        assert find_person(session, find_team(session, "Larks"), "alice").email == "a@example.org"


def test_a_table_as_spreadsheets_in_europe_write_it(database: Database) -> None:
    text = '\ufeffTeam;Member\r\nOwls;"Ana; the first"\r\n;\r\n\r\nКоманда;\r\n'
    with database.writing() as session:
        table = import_teams(session, NOW, text, "a test", str)
    rows = list(csv.DictReader(StringIO(table)))
    assert [(row["team"], row["member"]) for row in rows] == [("Owls", "Ana; the first"), ("Команда", "")]


def test_the_names_of_teams_are_read_once(database: Database) -> None:
    """Each line would be compared with all before otherwise: thousands of lines took minutes."""
    statements: list[str] = []
    event.listen(database.engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    text = "team\n" + "".join(f"{word} {number:03}\n" for word in ("Café", "東京", "Команда") for number in range(20))
    with database.writing() as session:
        table = import_teams(session, NOW, text, "a test", str)
    assert table.count("\n") == 61
    assert len([each for each in statements if "FROM teams" in each]) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: columns are ''; give team"),
        ("team|member\nOwls|Alice\n", "line 1: columns are 'team|member'"),
        ("team,member,member\nOwls,Alice,Bob\n", "line 1: columns are 'team,member,member'"),
        ("team\n" + "x" * 200_000, "line 2: is not valid CSV (field larger than field limit"),
        ("x" * 200_000 + ",team", "line 1: is not valid CSV (field larger than field limit"),
        ("team,token\nOwls,x\n", "line 1: columns are 'team,token'"),
        ("team\nLarks\n\n0wls\n", "line 4: name: '0wls' looks like a team that exists, 'Owls'"),
        ("team\nLarks\nLаrks\n\n\n", "line 3: name: 'Lаrks' mixes"),
        ("team,email\nLarks,a@b\nWrens,A@B\n", "line 3: email: A@B is also in an earlier line"),
        ("team,email\nLarks,none\n", "line 2: email: 'none' is not an address"),
        ("team,email\nLarks,held@example.org\n", "line 2: email: held@example.org belongs to an account"),
        ("team,member\nLarks,a,b\n", "line 2: has more than 2 cells"),
        ("team,member\nLarks," + "x" * 65 + "\n", "line 2: name: 'x"),
        ('team\nLarks\n"Wr\nWrens\n', r"line 4: name: 'Wr\nWrens' is not valid; leave out the invisible"),
        ("team,member\n,x\n" + " x\u200b,y\n" * 99, "line 2: name: '' is not valid"),
        ("team\nGone\n", "line 2: team: 'Gone' is revoked"),
    ],
)
def test_a_table_with_a_wrong_line_changes_nothing(database: Database, text: str, message: str) -> None:
    for name in ("Owls", "Gone"):
        add_team(database, name)
    join(database, make_invitation(database, "Owls", "held@example.org"), "Holder")
    with database.writing() as session:
        revoke_team(session, NOW, find_team(session, "Gone"))
    before = log(database)
    with pytest.raises(UserError) as error, database.writing() as session:
        import_teams(session, NOW, text, "a test", str)
    assert str(error.value).startswith(message)
    assert len(str(error.value)) < 600
    with database.reading() as session:
        assert list(session.scalars(select(TeamRow.name))) == ["Owls", "Gone"]
        assert session.scalar(select(func.count()).select_from(InvitationRow)) == 1
    assert log(database) == before
