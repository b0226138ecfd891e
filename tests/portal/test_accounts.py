"""People, invitations and sessions in the database, also where two requests come at once."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
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
from headstart.portal.records.invitations import DURATION
from headstart.portal.records.sessions import begin_session, end_session, find_visitor
from headstart.portal.records.tables import AccountRow, SessionRow, TeamRow
from headstart.tests.material.invitations import NOW, join, log, make_invitation

T = TypeVar("T")


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
        begin_session(session, datetime.now(UTC), row)
        count = session.scalar(select(func.count()).select_from(SessionRow))
    assert count == (2 if end == "logged out" else 1)


def test_names_that_come_at_once_do_not_look_alike(database: Database) -> None:
    names = ["Owls", "0wls", "OWLS", "owls"]
    results = at_once(4, lambda number: create_team(database, names[number]))
    assert len([each for each in results if isinstance(each, Keys)]) == 1
    assert len([each for each in results if isinstance(each, UserError)]) == 3


def test_members_who_join_at_once_do_not_look_alike(database: Database) -> None:
    add_team(database, "Owls")
    codes = [make_invitation(database, "Owls", "a@example.org") for _ in range(3)]
    results = at_once(3, lambda number: join(database, codes[number], ("Alice", "ALICE", "Bob")[number]))
    # The third has another name and the same address.
    assert len([each for each in results if isinstance(each, Keys)]) == 1
    assert len([each for each in results if isinstance(each, UserError)]) == 2


@pytest.mark.parametrize("who", ["member", "team"])
def test_who_is_shut_out_comes_back_by_no_link(database: Database, who: str) -> None:
    add_team(database, "Owls")
    join(database, make_invitation(database, "Owls", "a@example.org"), "Alice")
    code, other = make_invitation(database, "Owls"), make_invitation(database, None)
    with database.writing() as session:
        team = find_team(session, "Owls")
        if who == "member":
            revoke_account(session, NOW, find_person(session, team, "Alice"), "a test")
        else:
            revoke_team(session, NOW, team)
            team.revoked = None
    assert join(database, code, "Alice") is None
    # Links of others are still valid, and another team may invite her.
    keys = join(database, other, "Olga", "Larks")
    assert keys is not None
    if who == "member":
        assert join(database, make_invitation(database, "Larks", "A@example.org"), "Alice") is not None


def test_a_token_that_is_renewed_at_the_same_time_begins_no_session(database: Database) -> None:
    account = find_account(database, add_team(database, "Owls"))
    assert account is not None
    with database.writing() as session:
        renew_keys(session, NOW, session.get_one(AccountRow, account.id), "a test")
    with pytest.raises(UserError, match="renewed a moment ago"), database.writing() as session:
        begin_session(session, NOW, account)


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
