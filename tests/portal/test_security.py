"""What a portal refuses: other sites and hosts, large bodies, too many requests, revoked teams; and what it stores."""

import asyncio
import hashlib
from time import sleep
from typing import Any

import pytest
from sqlalchemy import text

from headstart.contract.problems import Problem
from headstart.output.errors import UserError
from headstart.portal.tables import Table
from headstart.portal.teams import add_team
from headstart.portal.web import state
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
    for name in ("", "Owls\n", "Ow\u202els", "W" * 65, "\ufdfa" * 20, "\udcff"):
        with site.database.writing() as session, pytest.raises(UserError, match=r"^name: .* is not valid"):
            add_team(session, name)
    with site.database.writing() as session, pytest.raises(UserError, match="there is a team 'Owls'"):
        add_team(session, "OWLS")
    site.submit(blue("owl", "lark"))
    site.log_in()
    site.admin("teams", "revoke", "owls")
    assert site.client.get("/submissions").headers["location"] == "/login"
    assert site.client.post("/login", data={"token": site.token}).status_code == 401
    assert site.client.get("/api/submissions", headers=site.headers()).status_code == 401
    renewed = site.add_team("Owls")
    assert [row["id"] for row in site.read("/api/submissions", renewed)] == [1]
    assert site.client.get("/api/submissions", headers=site.headers()).status_code == 401


def test_another_sites_page_changes_nothing(shown: Site) -> None:
    origins = ("http://other.example.org", "https://testserver", "null", "http://[::1")
    others = [("Origin", origin) for origin in origins]
    others += [("Sec-Fetch-Site", value) for value in ("same-site", "cross-site")]
    for header in others:
        assert shown.client.post("/api/validate?team=blue", headers=[header]).status_code == 403, header
        # Whoever follows a link is let in, and so is a page of the portal.
        assert shown.client.get("/", headers=[header]).status_code == 200, header
    same_origin = {"Origin": "http://testserver", "Sec-Fetch-Site": "same-origin"}
    assert shown.client.post("/api/validate?team=blue", headers=same_origin).status_code == 200


def test_a_form_needs_the_proof_of_its_own_session(site: Site) -> None:
    other = site.add_team("Larks")
    site.log_in(other)
    wrong = site.proof()
    site.log_in()
    assert site.proof() != wrong
    for path in ("/blue", "/logout"):
        for proof in (wrong, "", "\u00e9"):
            answer = site.client.post(path, data={"proof": proof, "document": blue("owl", "lark").decode()})
            assert (answer.status_code, "another session" in answer.text) == (403, True)
    assert site.read("/api/submissions") == []


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
    site = open_site(max_submission_bytes=1000, bytes_per_day=10_000)
    document = blue("owl", "lark")
    assert site.submit(document + b" " * (1000 - len(document))).status_code == 201
    assert site.submit(document + b" " * (1001 - len(document))).json() == {
        "error": "The document is larger than the limit of 1,000 bytes."
    }
    answer = site.submit(document + b" " * 20_000)
    assert (answer.status_code, answer.headers["connection"]) == (413, "close")
    chunked = site.client.post("/api/validate?team=blue", content=iter([document]))
    assert chunked.status_code == 411
    # What a team sends on one day is limited as well.
    answers = [site.submit(blue("crow", "owl") + b" " * number) for number in range(900, 920)]
    assert [answer.status_code for answer in answers[:2]] == [422, 422]
    assert answers[-1].status_code == 403
    assert "of 10,000 bytes per day" in answers[-1].json()["error"]


def test_of_very_many_problems_the_first_are_named_and_fewer_kept(site: Site) -> None:
    content = blue(*(f"crow{number}" for number in range(1500)))
    shown = site.client.post("/api/validate?team=blue", content=content).json()["problems"]
    assert [problem["pointer"] for problem in shown[:1000]] == [f"/models/{index}" for index in range(1000)]
    assert [problem["rule"] for problem in shown[1000:]] == ["and 500 more problems"]
    kept = site.submit(content).json()["problems"]
    assert (kept[:100], kept[100]["rule"]) == (shown[:100], "and 1,400 more problems")


def test_a_submission_waits_for_one_check_at_most(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    order = list[bytes]()

    def note(documents: object, track: str, content: bytes) -> list[Problem]:
        order.append(content)
        sleep(0.05)
        return []

    monkeypatch.setattr(state, "find_problems", note)
    portal: state.Portal = site.client.app.state.portal  # type: ignore[attr-defined] # an application

    async def use() -> None:
        contents = [(b"check 1", False), (b"check 2", False), (b"check 3", False), (b"submit", True)]
        await asyncio.gather(*(portal._validate(content, "blue", submitted) for content, submitted in contents))

    asyncio.run(use())
    assert order == [b"check 1", b"submit", b"check 2", b"check 3"]


def test_documents_are_limited_by_team_and_address(open_site: OpenSite) -> None:
    site = open_site(documents_per_minute=3)
    other = site.add_team("Larks")

    def check(token: str | None) -> int:
        headers = site.headers(token) if token else {}
        return int(site.client.post("/api/validate?team=blue", content=b"{}", headers=headers).status_code)

    assert [check(site.token), *(site.submit(b"{}").status_code for _ in range(3))] == [200, 422, 422, 429]
    for token in (other, None):
        assert [check(token) for _ in range(4)] == [200, 200, 200, 429]
    assert int(site.submit(b"{}").headers["retry-after"]) > 0


def test_tokens_cannot_be_tried_one_after_the_other(site: Site) -> None:
    def attempt(number: int) -> Any:
        if number % 2:
            return site.client.post("/login", data={"token": f"wrong {number}"})
        return site.client.get("/api/submissions", headers=site.headers(f"wrong{number}"))

    statuses = [attempt(number).status_code for number in range(24)]
    assert statuses == [401] * 20 + [429] * 4
    # Who has a token is let in.
    assert site.read("/api/submissions") == []


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
