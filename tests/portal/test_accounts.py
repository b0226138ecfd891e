"""People, invitations and sessions in the database, also where two requests come at once."""

import csv
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from threading import Barrier, Thread
from typing import TypeVar

import pytest
from sqlalchemy import func, select, update

from headstart.output.errors import UserError
from headstart.portal.records.accounts import (
    Keys,
    add_team,
    create_team,
    find_account,
    find_person,
    find_team,
    list_members,
    recover,
    renew_keys,
    revoke_account,
    revoke_team,
)
from headstart.portal.records.database import Database
from headstart.portal.records.invitations import DURATION, find_invitation, import_teams, invite, use_invitation
from headstart.portal.records.sessions import begin_session, end_session, find_visitor
from headstart.portal.records.tables import AccountRow, EventRow, InvitationRow, SessionRow, TeamRow

T = TypeVar("T")
NOW = datetime.now(UTC)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    database.create_tables()
    yield database
    database.close()


def at_once(count: int, act: Callable[[int], T]) -> list[T | Exception]:
    """Run a function in threads that begin together; what it raises is its result."""
    barrier, results = Barrier(count), list[T | Exception]()

    def run(number: int) -> None:
        barrier.wait()
        try:
            results.append(act(number))
        except Exception as error:
            results.append(error)

    threads = [Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def make_invitation(database: Database, team: str | None, email: str = "") -> str:
    with database.writing() as session:
        return invite(session, NOW, find_team(session, team) if team else None, "a test", email=email)


def join(database: Database, code: str, name: str, team: str = "", at: datetime = NOW) -> Keys | None:
    with database.writing() as session:
        invitation = find_invitation(session, at, code=code)
        return None if invitation is None else use_invitation(session, at, invitation, name, team)[1]


def log(database: Database) -> list[str]:
    with database.reading() as session:
        return list(session.scalars(select(EventRow.kind).order_by(EventRow.id)))


def test_an_invitation_is_used_once_also_by_two_at_once(database: Database) -> None:
    add_team(database, "Owls")
    for number in range(5):
        code = make_invitation(database, "Owls")

        def use(person: int, code: str = code, number: int = number) -> Keys | None:
            return join(database, code, f"Member {number} {person}")

        results = at_once(3, use)
        keys = [each for each in results if isinstance(each, Keys)]
        assert len(keys) == 1
        assert all(each is None or isinstance(each, UserError) for each in results if each not in keys)
        account = find_account(database, keys[0].token)
        assert account is not None
        assert account.team is not None
        assert account.team.name == "Owls"
        assert join(database, code, "Late") is None
    with database.reading() as session:
        assert len(list_members(session, 1)) == 1 + 5
    assert log(database).count("joined") == 5


def test_of_a_refused_registration_nothing_stays(database: Database) -> None:
    add_team(database, "Owls")
    code = make_invitation(database, None)
    for person, team in (("Alice", "Оwls"), ("Alice", "owls"), ("Аlice", "Larks"), ("", "Larks"), ("Alice", "")):
        with pytest.raises(UserError, match="name: "):
            join(database, code, person, team)
    keys = join(database, code, "Alice", "Larks")
    assert keys is not None
    with database.reading() as session:
        assert list(session.scalars(select(TeamRow.name))) == ["Owls", "Larks"]
        assert find_team(session, "larks").approved is None
        assert find_team(session, "Owls").approved is not None


def test_invitations_end(database: Database) -> None:
    add_team(database, "Owls")
    code = make_invitation(database, "Owls")
    assert join(database, code, "Late", at=NOW + DURATION) is None
    assert join(database, "wrong", "Nobody") is None
    with database.writing() as session:
        revoke_team(session, NOW, find_team(session, "Owls"))
    assert join(database, code, "Late") is None
    with pytest.raises(UserError, match="is revoked"):
        make_invitation(database, "Owls")


def test_one_of_two_renewals_at_once_stays_valid(database: Database) -> None:
    first = create_team(database, "Owls")

    def renew(_: int) -> Keys:
        with database.writing() as session:
            account = find_person(session, find_team(session, "Owls"), None)
            return renew_keys(session, datetime.now(UTC), account, "a test")

    keys = [first, *(each for each in at_once(4, renew) if isinstance(each, Keys))]
    assert len(keys) == 5
    assert [find_account(database, each.token) for each in keys].count(None) == 4


def test_a_recovery_code_is_used_once(database: Database) -> None:
    first = create_team(database, "Owls")

    def use(_: int) -> Keys | None:
        with database.writing() as session:
            found = recover(session, datetime.now(UTC), first.recovery)
        return None if found is None else found[1]

    results = at_once(4, use)
    (keys,) = [each for each in results if isinstance(each, Keys)]
    assert results.count(None) == 3
    assert find_account(database, first.token) is None
    assert find_account(database, keys.token) is not None
    assert keys.recovery != first.recovery
    with database.writing() as session:
        revoke_team(session, NOW, find_team(session, "Owls"))
        assert recover(session, NOW, keys.recovery) is None


@pytest.mark.parametrize("end", ["logged out", "time", "account", "team", "renewed"])
def test_sessions_end(database: Database, end: str) -> None:
    account = find_account(database, add_team(database, "Owls"))
    assert account is not None
    with database.writing() as session:
        cookies = [begin_session(session, NOW, account) for _ in range(2)]
    assert [getattr(find_visitor(database, each), "id", None) for each in cookies] == [account.id] * 2
    with database.writing() as session:
        row = session.get_one(AccountRow, account.id)
        if end == "time":
            session.execute(update(SessionRow).values(expires=datetime.now(UTC)))
        elif end == "account":
            revoke_account(session, NOW, row, "a test")
        elif end == "team":
            revoke_team(session, NOW, find_team(session, "Owls"))
        elif end == "renewed":
            renew_keys(session, NOW, row, "a test")
    if end == "logged out":
        end_session(database, cookies[0])
        assert find_visitor(database, cookies[1]) is not None
    assert find_visitor(database, cookies[0]) is None
    assert find_visitor(database, "") is None
    with database.writing() as session:
        begin_session(session, datetime.now(UTC), account)
        count = session.scalar(select(func.count()).select_from(SessionRow))
    assert count == (2 if end == "logged out" else 1)


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: '' are the columns; give team"),
        ("team;member\nOwls;Alice\n", "line 1: 'team;member' are the columns"),
        ("team,token\nOwls,x\n", "line 1: 'team,token' are the columns"),
        ("team\nLarks\n\n0wls\n", "line 4: name: there is a team 'Owls'"),
        ("team\nLarks\nLаrks\n\n\n", "line 3: name: 'Lаrks' mixes"),
        ("team,email\nLarks,a@b\nWrens,A@B\n", "line 3: has more than 2 cells, or an address of a line before"),
        ("team,email\nLarks,none\n", "line 2: email: 'none' is no address"),
        ("team,email\nLarks,held@example.org\n", "line 2: email: held@example.org belongs to an account"),
        ("team,member\nLarks,a,b\n", "line 2: has more than 2 cells, or"),
        ("team,member\nLarks," + "x" * 65 + "\n", "line 2: name: 'x"),
        ('team\nLarks\n"Wr\nWrens\n', r"line 4: name: 'Wr\nWrens' is not valid"),
        ("team\n" + " \n" * 9 + ",\n" * 9, "line 2: name: '' is not valid"),
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


def test_secrets_are_nowhere_in_the_database(tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("portal") / "portal.sqlite3"
    database = Database(f"sqlite:///{file}")
    database.create_tables()
    keys = create_team(database, "Owls")
    code = make_invitation(database, "Owls")
    account = find_account(database, keys.token)
    assert account is not None
    with database.writing() as session:
        cookie = begin_session(session, NOW, account)
    database.close()
    content = file.read_bytes()
    assert b"Owls" in content
    assert [each for each in (*keys, code, cookie) if each.encode() in content] == []


def test_old_sessions_are_removed_at_a_login(database: Database) -> None:
    account = find_account(database, add_team(database, "Owls"))
    assert account is not None
    with database.writing() as session:
        for days in (15, 20, 13):
            begin_session(session, NOW - timedelta(days=days), account)
        begin_session(session, NOW, account)
        # Those of 15 and 20 days ago have run out.
        assert session.scalar(select(func.count()).select_from(SessionRow)) == 2
