"""What a portal refuses: other sites and hosts, large bodies, revoked teams; and what it stores and shows."""

import hashlib

import pytest
from sqlalchemy import text

from headstart.output.errors import UserError
from headstart.portal.tables import Table
from headstart.portal.teams import add_team, revoke_team
from headstart.tests.material.portals import Site, blue
from headstart.tests.portal.conftest import OpenSite

URL = "https://challenge.example.org"


def test_only_digests_of_tokens_are_stored(site: Site) -> None:
    site.log_in()
    site.submit(blue("owl", "lark"))
    with site.database.reading() as session:
        stored = [
            str(row) for table in Table.metadata.tables for row in session.execute(text(f"SELECT * FROM {table}"))
        ]
    assert not any(site.token in row for row in stored)
    assert any(hashlib.sha256(site.token.encode()).hexdigest() in row for row in stored)


def test_a_name_is_one_teams_in_any_case_and_its_token_is_renewed_by_two_commands(site: Site) -> None:
    for name in ("", "Owls\n", "Ow\u202els", "W" * 65, "\udcff"):
        with site.database.writing() as session, pytest.raises(UserError, match=r"^name: .* is not valid"):
            add_team(session, name)
    with site.database.writing() as session, pytest.raises(UserError, match="there is a team 'Owls'"):
        add_team(session, "OWLS")
    site.submit(blue("owl", "lark"))
    site.log_in()
    with site.database.writing() as session:
        revoke_team(session, "owls")
    assert site.client.get("/submissions").headers["location"] == "/login"
    assert site.client.post("/login", data={"token": site.token}).status_code == 401
    assert site.client.get("/api/submissions", headers=site.headers()).status_code == 401
    renewed = site.add_team("Owls")
    assert [each["id"] for each in site.read("/api/submissions", renewed)] == [1]
    assert site.client.get("/api/submissions", headers=site.headers()).status_code == 401


def test_another_sites_page_changes_nothing(shown: Site) -> None:
    origins = ("http://other.example.org", "https://testserver", "null", "http://[::1")
    others = [("Origin", each) for each in origins]
    others += [("Sec-Fetch-Site", each) for each in ("same-site", "cross-site")]
    shown.log_in()
    for header in others:
        assert shown.client.post("/blue", headers=[header]).status_code == 403, header
        # Whoever follows a link is let in.
        assert shown.client.get("/", headers=[header]).status_code == 200, header
    own = {"Origin": "http://testserver", "Sec-Fetch-Site": "same-origin"}
    assert shown.client.post("/blue", headers=own).status_code == 400


def test_every_answer_has_the_headers(open_site: OpenSite) -> None:
    site = open_site(url=f"{URL}:443")
    cookie = site.client.post("/login", data={"token": site.token}, headers={"Origin": URL}).headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Secure", "Path=/"} <= set(cookie.split("; "))
    for path in ("/", "/static/portal.css", "/none", "/api/none", "/submissions/999", "/health"):
        headers = site.client.get(path).headers
        policy = headers["content-security-policy"]
        assert ("default-src 'none'" in policy, "script-src" in policy, "unsafe" in policy) == (True, False, False)
        assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "same-origin")
        assert headers["strict-transport-security"].startswith("max-age=")
        assert ("cache-control" in headers) == (not path.startswith("/static"))


def test_only_the_hosts_of_the_settings_are_answered(open_site: OpenSite) -> None:
    site = open_site(url=URL)
    for host in ("challenge.example.org", "challenge.example.org:443", "127.0.0.1:8000", "[::1]:80"):
        assert site.client.get("/", headers={"Host": host}).status_code == 200, host
    for host in ("other.example.org", "challenge.example.org.other", "", "["):
        assert site.client.get("/", headers={"Host": host}).status_code == 400, host


def test_large_documents_are_refused_before_they_are_read(open_site: OpenSite) -> None:
    site = open_site(max_submission_bytes=1000)
    document = blue("owl", "lark")
    assert site.submit(document + b" " * (1000 - len(document))).status_code == 201
    assert site.submit(document + b" " * (1001 - len(document))).json() == {
        "error": "The document is larger than the limit of 1,000 bytes."
    }
    answer = site.submit(document + b" " * 20_000)
    assert (answer.status_code, answer.headers["connection"]) == (413, "close")
    chunked = site.client.post("/api/validate", content=iter([document]), headers=site.headers())
    assert chunked.status_code == 411


def test_defects_say_nothing_of_the_server(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    from headstart.portal.web import pages

    def fail(*_: object) -> None:
        raise RuntimeError("a path of the server")

    monkeypatch.setattr(pages, "rank_teams", fail)
    site.client.__dict__["_transport"].raise_server_exceptions = False
    answer = site.client.get("/leaderboard")
    assert (answer.status_code, "made an error" in answer.text) == (500, True)
    assert "a path" not in answer.text
    assert "content-security-policy" in answer.headers
