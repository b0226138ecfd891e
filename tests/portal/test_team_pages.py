"""Sessions, invitations, lost tokens and the team's page over HTTP."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from headstart.portal.records import accounts
from headstart.portal.records.accounts import find_account, find_team, make_account, renew_keys, revoke_team
from headstart.portal.records.database import Database
from headstart.portal.records.invitations import invite
from headstart.portal.records.log import read_whole_log
from headstart.portal.records.tables import AccountRow, SessionRow
from headstart.portal.web.sessions import COOKIE
from headstart.tests.material.portals import Site, blue

OpenSite = Callable[..., Site]
SECRET = re.compile(r"<code>(?:https?://[^/]+(?=/join))?(/join/)?([\w-]{43})</code>")


def browser(site: Site) -> TestClient:
    """Return another browser."""
    return TestClient(site.client.app, follow_redirects=False)


def secrets(page: str) -> list[str]:
    return [secret for _, secret in SECRET.findall(page)]


def proof(site: Site, client: TestClient | None = None) -> str:
    page = (client or site.client).get("/team").text
    return str(re.findall(r'name="proof" value="(\w+)"', page)[0])


def change(site: Site, client: TestClient | None = None, **fields: Any) -> Any:
    client = client or site.client
    return client.post("/team", data={"proof": proof(site, client), **fields})


def number_of(site: Site, name: str) -> str:
    page = site.client.get("/team").text
    (form,) = [form for form in page.split("<form") if f"Renew the token of {name}" in form]
    return str(re.findall(r'name="member" value="(\d+)"', form)[0])


def add_member(site: Site, name: str) -> TestClient:
    """Have a person join the team by a link of a member who is logged in, and return the person's browser."""
    (code,) = secrets(change(site, action="invite").text)
    client = browser(site)
    assert secrets(client.post(f"/join/{code}", data={"name": name}).text)
    return client


def test_a_cookie_ends_at_logout_wherever_it_was_copied(site: Site) -> None:
    site.log_in()
    cookie = site.client.cookies[COOKIE]
    assert site.token not in cookie
    copy = browser(site)
    copy.cookies.set(COOKIE, cookie)
    assert copy.get("/submissions").status_code == 200
    assert site.client.post("/logout", data={"proof": proof(site)}).status_code == 303
    copy.cookies.set(COOKIE, cookie)
    assert copy.get("/submissions").status_code == 303
    assert find_account(site.database, site.token) is not None


def test_a_cookie_opens_pages_alone_and_a_token_opens_programs(site: Site) -> None:
    site.submit(blue("owl", "lark"))
    site.log_in()
    assert site.client.get("/submissions/1").status_code == 200
    for path in ("/api/submissions", "/api/submissions/1"):
        assert site.client.get(path).status_code in {401, 404}
        assert site.client.get(path, headers=site.headers()).status_code == 200
    assert site.client.post("/api/submissions?team=blue", content=blue("owl", "lark")).status_code == 401
    # The token is no cookie, nor the cookie a token.
    other = browser(site)
    for name in (COOKIE, "headstart_token"):
        other.cookies.set(name, site.token)
        assert other.get("/submissions").status_code == 303
    assert site.submit(blue("owl", "lark"), token=site.client.cookies[COOKIE]).status_code == 401


@pytest.mark.parametrize("how", ["time", "revoked", "everywhere"])
def test_sessions_end(site: Site, how: str) -> None:
    site.log_in()
    first = browser(site)
    first.cookies.set(COOKIE, site.client.cookies[COOKIE])
    site.log_in()
    with site.database.writing() as session:
        if how == "time":
            session.execute(update(SessionRow).values(expires=datetime.now(UTC) - timedelta(seconds=1)))
        if how == "revoked":
            revoke_team(session, datetime.now(UTC), find_team(session, "Owls"))
    if how == "everywhere":
        assert change(site, action="leave").headers["location"] == "/login"
    assert first.get("/submissions").status_code == 303
    assert site.client.get("/submissions").status_code == 303


def test_a_person_joins_by_a_link_of_a_team_mate(site: Site) -> None:
    site.log_in()
    page = change(site, action="invite").text
    (code,) = secrets(page)
    assert f"http://testserver/join/{code}" in page
    client = browser(site)
    assert "Join Owls" in client.get(f"/join/{code}").text
    wrong = client.post(f"/join/{code}", data={"name": "0wls"})
    assert (wrong.status_code, "looks like" in wrong.text) == (400, True)
    joined = client.post(f"/join/{code}", data={"name": " Alice "})
    token, recovery = secrets(joined.text)
    account = find_account(site.database, token)
    assert account is not None
    assert (account.name, account.team_id, account.is_organiser) == ("Alice", 1, False)
    # Alice is logged in; what she submits is the team's.
    assert "Alice (you)" in client.get("/team").text
    assert site.submit(blue("owl", "lark"), token=token).status_code == 201
    assert len(site.read("/api/submissions")) == 1
    for again in (client.get(f"/join/{code}"), client.post(f"/join/{code}", data={"name": "Bob"})):
        assert (again.status_code, "This invitation was used" in again.text) == (404, True)
    shown = [client.get(path).text for path in ("/team", "/submissions", "/log", "/")]
    assert not any(secret in page for page in shown for secret in (token, recovery, code))


def test_a_login_with_a_token_that_is_renewed_meanwhile_opens_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_and_renew(database: Database, token: str) -> AccountRow | None:
        account = find_account(database, token)
        assert account is not None
        with database.writing() as session:
            renew_keys(session, datetime.now(UTC), session.get_one(AccountRow, account.id), "a test")
        return account

    monkeypatch.setattr(accounts, "find_account", find_and_renew)
    answer = site.client.post("/login", data={"token": site.token})
    assert (answer.status_code, COOKIE in answer.headers.get("set-cookie", "")) == (401, False)
    assert "renewed a moment ago" in answer.text


def test_members_renew_and_shut_out(site: Site) -> None:
    site.log_in()
    alice = add_member(site, "Alice")
    number = number_of(site, "Alice")
    first, _ = secrets(change(site, action="renew", member=number).text)
    # Alice's sessions ended, not those of the member who renewed.
    assert alice.get("/team").status_code == 303
    assert site.client.get("/team").status_code == 200
    second, _ = secrets(change(site, action="renew", member=number).text)
    assert [find_account(site.database, each) is None for each in (first, second)] == [True, False]
    alice.post("/login", data={"token": second})
    assert change(site, action="revoke", member=number).status_code == 303
    assert find_account(site.database, second) is None
    assert alice.get("/team").status_code == 303
    assert "Alice" not in site.client.get("/team").text
    assert change(site, action="renew", member=number).status_code == 404
    lines = [event.text for event in read_whole_log(site.database, 50)]
    assert [line for line in lines if "Alice" in line] == [
        "Alice joined Owls.",
        *["Alice has another token, by Owls."] * 2,
        "Alice was shut out by Owls.",
    ]
    # Nobody else reads of it.
    assert "Alice" not in browser(site).get("/log").text


def test_ones_own_renewal_keeps_this_browser_and_ends_the_others(site: Site) -> None:
    site.log_in()
    other = browser(site)
    other.post("/login", data={"token": site.token})
    before = site.client.cookies[COOKIE]
    token, _ = secrets(change(site, action="renew", member=number_of(site, "Owls")).text)
    assert site.client.cookies[COOKIE] != before
    assert site.client.get("/team").status_code == 200
    assert other.get("/team").status_code == 303
    assert find_account(site.database, site.token) is None
    assert find_account(site.database, token) is not None


def test_nobody_reaches_beyond_the_own_team(site: Site) -> None:
    with site.database.writing() as session:
        now = datetime.now(UTC)
        code = invite(session, now, None, "a test")
        organiser, keys = make_account(session, now, "Olga", None)
        # A member who is an organiser, too.
        both, _ = make_account(session, now, "Otto", find_team(session, "Owls"))
        session.get_one(AccountRow, both.id).is_organiser = True
    stranger = browser(site)
    assert secrets(stranger.post(f"/join/{code}", data={"name": "Bob", "team": "Larks"}).text)
    site.log_in()
    mine = number_of(site, "Owls")
    assert "Renew the token of Otto" not in site.client.get("/team").text
    for action in ("renew", "revoke"):
        assert change(site, stranger, action=action, member=mine).status_code == 404
        for member in (organiser.id, both.id, 0, 999):
            assert change(site, action=action, member=member).status_code == 404
    assert change(site, action="promote", member=mine).status_code == 404
    assert change(site, action="renew", member=2**40).status_code == 400
    assert site.client.post("/team", data={"action": "invite", "proof": "0" * 64}).status_code == 403
    assert browser(site).post("/team", data={"action": "invite"}).status_code == 403
    assert browser(site).get("/team").headers["location"] == "/login"
    assert find_account(site.database, site.token) is not None
    assert find_account(site.database, keys.token) is not None


def test_a_lost_token_is_replaced_by_the_recovery_code(site: Site) -> None:
    site.log_in()
    token, recovery = secrets(change(site, action="renew", member=number_of(site, "Owls")).text)
    client = browser(site)
    page = client.post("/recover", data={"code": f" {recovery} "})
    again, other = secrets(page.text)
    assert page.status_code == 200
    assert client.get("/team").status_code == 200
    assert site.client.get("/team").status_code == 303
    assert [find_account(site.database, each) is None for each in (token, again)] == [True, False]
    assert client.post("/recover", data={"code": recovery}).status_code == 401
    assert client.post("/recover", data={"code": other}).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("POST", "/login", 401), ("POST", "/recover", 401), ("GET", "/join/wrong", 404), ("POST", "/join/wrong", 404)],
)
def test_guesses_are_limited(site: Site, monkeypatch: pytest.MonkeyPatch, method: str, path: str, status: int) -> None:
    writing = Mock(wraps=site.database.writing)
    monkeypatch.setattr(site.database, "writing", writing)
    data = {"token": "wrong", "code": "wrong", "name": "Eve"}
    answers = [site.client.request(method, path, data=data).status_code for _ in range(30)]
    assert answers == [status] * 20 + [429] * 10
    # A guess that is one too many does not keep others from writing.
    assert writing.call_count <= 20


def test_changes_of_one_team_are_limited(site: Site) -> None:
    site.log_in()
    statuses = [change(site, action="invite").status_code for _ in range(25)]
    assert statuses == [200] * 20 + [429] * 5


def test_live_checks_are_limited_by_team_where_there_is_one(open_site: OpenSite) -> None:
    """Behind some proxies everybody has one address."""
    site = open_site(validations_per_minute=3)

    def check(client: TestClient, **headers: str) -> int:
        return int(client.post("/api/validate?team=blue", content=blue("owl", "lark"), headers=headers).status_code)

    assert [check(browser(site)) for _ in range(4)] == [200, 200, 200, 429]
    site.log_in()
    mate = add_member(site, "Alice")
    # The members of a team share its limit, by session or by token.
    assert [check(site.client), check(mate), check(browser(site), **site.headers()), check(site.client)] == [
        200,
        200,
        200,
        429,
    ]
    data = {"proof": proof(site), "document": blue("owl", "lark").decode(), "action": "check"}
    assert site.client.post("/blue", data=data).status_code == 429
    assert check(browser(site)) == 429


def test_the_team_is_in_the_navigation_of_members_alone(site: Site) -> None:
    assert 'href="/team"' not in site.client.get("/").text
    site.log_in()
    assert 'href="/team"' in site.client.get("/").text
