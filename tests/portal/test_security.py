"""What a portal refuses: other sites and hosts, large bodies, too many requests, revoked teams; and what it stores."""

import hashlib

import pytest
from sqlalchemy import text

from headstart.output.errors import UserError
from headstart.portal.tables import Table
from headstart.portal.teams import add_team
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


def test_names_that_are_not_one_visible_line(site: Site) -> None:
    for name in ("", "Owls\n", "Ow\u202els", "W" * 65, "\udcff"):
        with site.database.writing() as session, pytest.raises(UserError, match=r"^name: .* is not valid"):
            add_team(session, name)


def test_another_sites_page_changes_nothing(shown: Site) -> None:
    origins = ("http://other.example.org", "https://testserver", "null", "http://[::1")
    others = [("Origin", origin) for origin in origins]
    others += [("Sec-Fetch-Site", value) for value in ("same-site", "cross-site")]
    for header in others:
        assert shown.client.post("/login", headers=[header]).status_code == 403, header
        # Whoever follows a link is let in, and so is a page of the portal.
        assert shown.client.get("/", headers=[header]).status_code == 200, header
    same_origin = {"Origin": "http://testserver", "Sec-Fetch-Site": "same-origin"}
    assert shown.client.post("/login", headers=same_origin).status_code == 401


def test_every_answer_has_the_headers(open_site: OpenSite) -> None:
    site = open_site(url=f"{URL}:443")
    cookie = site.client.post("/login", data={"token": site.token}, headers={"Origin": URL}).headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Secure", "Path=/"} <= set(cookie.split("; "))
    for path in ("/", "/static/portal.css", "/none", "/api/none", "/submissions/999", "/health"):
        headers = site.client.get(path).headers
        policy = headers["content-security-policy"]
        assert ("default-src 'none'" in policy, "script-src" in policy, "unsafe" in policy) == (True, False, False)
        assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "same-origin")
        assert "strict-transport-security" in headers
        assert ("cache-control" in headers) == (not path.startswith("/static"))


def test_only_the_hosts_of_the_settings_are_answered(open_site: OpenSite) -> None:
    site = open_site(url=URL)
    for host in ("challenge.example.org", "challenge.example.org:443", "127.0.0.1:8000", "[::1]:80"):
        assert site.client.get("/", headers={"Host": host}).status_code == 200, host
    for host in ("other.example.org", "challenge.example.org.other", "", "["):
        assert site.client.get("/", headers={"Host": host}).status_code == 400, host


def test_large_documents_are_refused_before_they_are_read(open_site: OpenSite) -> None:
    site, document = open_site(max_submission_bytes=1000, bytes_per_day=10_000), blue("owl", "lark")
    assert site.submit(document.ljust(1000)).status_code == 201
    assert "The document is larger than the limit of 1,000 bytes." in site.submit(document.ljust(1001)).text
    answer = site.submit(document.ljust(20_000))
    assert (answer.status_code, answer.headers["connection"]) == (413, "close")
    assert site.client.post("/api/validate?team=blue", content=iter([document])).status_code == 411
    # What a team sends on one day is limited as well.
    answers = [site.submit(blue("crow", "owl").ljust(number)) for number in range(900, 920)]
    assert [answer.status_code for answer in (answers[0], answers[-1])] == [422, 403]
    assert "of 10,000 bytes per day" in answers[-1].json()["error"]


def test_of_very_many_problems_the_first_are_named_and_kept(site: Site) -> None:
    content = blue(*(f"crow{number}" for number in range(150)))
    shown = site.check(content).json()["problems"]
    assert [problem["pointer"] for problem in shown[:100]] == [f"/models/{index}" for index in range(100)]
    assert [problem["rule"] for problem in shown[100:]] == ["and 50 more problems"]
    assert site.submit(content).json()["problems"] == shown


def test_documents_are_limited_by_team(open_site: OpenSite) -> None:
    site = open_site(documents_per_minute=3)
    other = site.add_team("Larks")
    assert [answer.status_code for answer in (site.check(b"{}"), *(site.submit(b"{}") for _ in range(3)))] == [
        *(200, 422, 422, 429)
    ]
    assert site.check(b"{}", other).status_code == 200
    assert int(site.submit(b"{}").headers["retry-after"]) > 0


def test_defects_say_nothing_of_the_server(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    from headstart.portal.web import pages

    def fail(*_: object) -> None:
        raise RuntimeError("a path of the server")

    monkeypatch.setattr(pages, "read_log", fail)
    site.client.__dict__["_transport"].raise_server_exceptions = False
    answer = site.client.get("/log")
    assert (answer.status_code, "made an error" in answer.text) == (500, True)
    assert "a path" not in answer.text
    assert "content-security-policy" in answer.headers
