"""The pages over HTTP: forms, private submissions, headers for browsers."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from xml.etree import ElementTree

import pytest
from sqlalchemy import select
from sqlalchemy.orm import undefer

from headstart.output.errors import UserError
from headstart.portal.records.accounts import add_team
from headstart.portal.records.tables import SubmissionRow
from headstart.portal.settings import Settings
from headstart.portal.work.intake import freeze
from headstart.tests.material.portals import Site, blue, red
from headstart.tests.material.stub_scores import MODELS

OpenSite = Callable[..., Site]
PAGES = ("/", "/blue", "/red", "/submissions", "/leaderboard", "/log", "/login")


def hidden(page: str) -> dict[str, str]:
    """Return the hidden fields of a form."""
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page.partition("<main")[2]))


def send(site: Site, track: str = "blue", document: str = "", file: bytes = b"", action: str = "submit") -> str:
    fields = {**hidden(site.client.get(f"/{track}").text), "document": document, "action": action}
    answer = site.client.post(f"/{track}", data=fields, files={"file": ("it.json", file) if file else ("", b"")})
    return site.client.get(answer.headers["location"]).text if answer.status_code == 303 else answer.text


def test_a_submission_by_form(site: Site) -> None:
    assert site.client.get("/submissions").headers["location"] == "/login"
    site.log_in()
    assert "place 1" in send(site, document=blue("owl", "lark").decode())
    assert "place 2" in send(site, "red", file=red(0, 1, 2))
    site.work()
    page = site.client.get("/submissions/1").text
    assert "scored" in page
    assert f"{1 / len(blue('owl', 'lark')):.6f}" in page
    assert '/submissions/1/heatmap.png"' in page
    assert site.client.get("/submissions/1/heatmap.png").content == b"PNG"
    assert page.count(f">{1 / len(blue('owl', 'lark')):.4f}<") == 2  # the matrix
    assert "Owls" in site.client.get("/leaderboard").text


def test_problems_are_shown_and_escaped(site: Site) -> None:
    site.log_in()
    document = '{"models": ["owl", "<script>alert(1)</script>"]}'
    for action in ("check", "submit"):
        page = send(site, document=document, action=action)
        assert "/models/1" in page
        assert "not in the model registry" in page
        assert "<script>alert" not in page
    assert len(site.read("/api/submissions")) == 1
    assert "Valid. It is not submitted yet." in send(site, document=blue("owl", "lark").decode(), action="check")
    assert "not both" in send(site, document="{}", file=b"{}")
    assert "Choose a file or paste a document" in send(site)
    empty = site.client.post("/blue", data=hidden(site.client.get("/blue").text), files={"file": ("it.json", b"")})
    assert "The file is empty." in empty.text
    assert len(site.read("/api/submissions")) == 1


def test_a_pasted_document_has_the_size_that_it_was_pasted_with(open_site: OpenSite) -> None:
    content = blue("owl", "lark").decode() + "\n" * 100
    site = open_site(max_submission_bytes=len(content))
    site.log_in()
    # Browsers write the end of a line as two bytes.
    assert "place 1" in send(site, document=content.replace("\n", "\r\n"))
    (record,) = site.read("/api/submissions")
    assert record["sha256"] == sha256(content.encode()).hexdigest()


def test_one_form_sent_twice_is_one_submission_and_changed_another(site: Site) -> None:
    site.log_in()
    fields = hidden(site.client.get("/blue").text)
    for document, count in ((blue("owl", "lark"), 1), (blue("owl", "lark"), 1), (blue("owl", "wren"), 2)):
        site.client.post("/blue", data={**fields, "document": document.decode()})
        assert len(site.read("/api/submissions")) == count


def test_forms_of_other_sites_do_nothing(site: Site) -> None:
    site.log_in()
    form = {**hidden(site.client.get("/blue").text), "document": blue("owl", "lark").decode()}
    assert site.client.post("/blue", data={**form, "proof": "0" * 64}).status_code == 403
    assert site.client.post("/blue", data=form, headers={"Origin": "https://elsewhere.example"}).status_code == 403
    assert site.client.post("/blue", data=form, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert site.client.post("/logout").status_code == 403
    assert site.read("/api/submissions") == []
    assert site.client.post("/blue", data=form, headers={"Origin": "http://testserver"}).status_code == 303


def test_cookies_and_headers_are_secure(open_site: OpenSite) -> None:
    site = open_site(url="https://challenge.example.org")
    site.client.base_url = site.client.base_url.copy_with(scheme="https")
    answer = site.client.post("/login", data={"token": site.token}, headers={"Origin": "https://challenge.example.org"})
    cookie = answer.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=strict", "secure", "path=/"))
    for path in (*PAGES, "/none", "/static/portal.css", "/api/log"):
        headers = site.client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "max-age" in headers["strict-transport-security"]


@pytest.mark.parametrize("url", ["https://Challenge.example.org:443", "https://challenge.example.org/"])
def test_an_address_may_be_written_otherwise_than_browsers_do(open_site: OpenSite, url: str) -> None:
    site = open_site(url=url)
    for origin, status in (
        ("https://challenge.example.org", 303),
        ("http://challenge.example.org", 403),
        ("https://challenge.example.org:8443", 403),
        ("https://challenge.example.org:x", 403),
        ("null", 403),
    ):
        answer = site.client.post("/login", data={"token": site.token}, headers={"Origin": origin})
        assert answer.status_code == status, origin


@pytest.mark.parametrize(
    "url", ["example.org", "https://", "https://a.example/portal", "https://a.example:x", "ftp://a"]
)
def test_addresses_that_are_no_portals_raise_an_error(url: str) -> None:
    with pytest.raises(UserError, match="url: "):
        Settings(url=url)


def test_a_cookie_without_tls(site: Site) -> None:
    cookie = site.client.post("/login", data={"token": site.token}).headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "secure" not in cookie


def test_a_wrong_token_and_logging_out(site: Site) -> None:
    assert site.client.post("/login", data={"token": "wrong"}).status_code == 401
    site.log_in()
    proof = hidden(site.client.get("/blue").text)["proof"]
    assert site.client.post("/logout", data={"proof": proof}).status_code == 303
    assert site.client.get("/submissions").status_code == 303


def test_pages_of_others(open_site: OpenSite) -> None:
    shown = open_site(show_submissions=True, show_matrix=False)
    shown.submit(blue("owl", "lark"))
    shown.client.cookies.clear()
    assert shown.client.get("/submissions/1").status_code == 404
    shown.work()
    page = shown.client.get("/submissions/1")
    assert page.status_code == 200
    assert "heatmap" not in page.text
    assert "The organisers show only scores." in page.text
    assert shown.client.get("/submissions/1/heatmap.png").status_code == 404
    assert "pairwise" not in shown.client.get("/api/submissions/1").json()["result"]


def test_rules_are_those_of_the_challenge(open_site: OpenSite) -> None:
    deadline = (datetime.now(UTC) + timedelta(days=1)).replace(microsecond=0)
    rules = {
        "deadline": deadline.isoformat(),
        "time_zone": "Europe/Berlin",
        "teams": {
            "blue": {
                "count": {"exactly": 3},
                "submissions": 7,
                "families": {"singers": ["lark", "wren"]},
                "most_per_family": 1,
            }
        },
    }
    site = open_site(rules)
    page = " ".join(site.client.get("/").text.split())
    for text in ("exactly 3 of 4 models", "7 submissions per participant", "singers: lark, wren", "Europe/Berlin"):
        assert text in page
    assert "Red Team" not in page
    assert site.client.get("/red").status_code == 404


def test_counts_are_reported_by_day_and_in_total(open_site: OpenSite) -> None:
    site = open_site({"teams": {"blue": {"submissions": 7, "submissions_per_day": 2}}})
    site.log_in()
    assert "Your submissions: 0 of 2 today, 0 of 7 in total." in site.client.get("/blue").text
    for count in (2, 3, 4):
        site.submit(blue(*MODELS[:count]))
    with site.database.writing() as session:
        for row in session.scalars(select(SubmissionRow).where(SubmissionRow.id == 1)):
            row.received -= timedelta(days=1)
    assert "Your submissions: 1 of 2 today, 2 of 7 in total." in site.client.get("/blue").text
    site.submit(blue("wren", "rook"))
    assert "Your submissions: 2 of 2 today, 3 of 7 in total." in site.client.get("/blue").text


def test_many_submissions_are_shown_by_and_by(site: Site) -> None:
    site.log_in()
    assert "No submissions yet." in site.client.get("/submissions").text
    site.submit(b"{}")
    with site.database.writing() as session:
        first = session.scalars(select(SubmissionRow).options(undefer("*"))).one()
        columns = {name: getattr(first, name) for name in ("team_id", "phase", "track", "size", "sha256", "received")}
        session.add_all(
            SubmissionRow(**columns, key=f"{number}", refused=first.refused, is_refused=True) for number in range(204)
        )
    seen, path = [], "/submissions"
    while path:
        page = site.client.get(path).text
        seen += [int(number) for number in re.findall(r'href="/submissions/(\d+)"', page)]
        path = "".join(re.findall(r'href="(/submissions\?before=\d+)"', page))
    assert seen == list(range(205, 0, -1))
    listed = [site.read(f"/api/submissions{before}") for before in ("", "?before=106", "?before=6", "?before=1")]
    assert [[each["id"] for each in part] for part in listed] == [
        list(range(205, 105, -1)),
        list(range(105, 5, -1)),
        list(range(5, 0, -1)),
        [],
    ]
    assert all(each["problems"] for part in listed for each in part)
    assert "No earlier submissions." in site.client.get("/submissions?before=1").text
    assert site.client.get("/submissions?before=0").status_code == 400


def test_a_closed_portal_says_so(site: Site) -> None:
    site.log_in()
    freeze(site.database)
    assert "paused submissions" in site.client.get("/").text
    assert "paused submissions" in send(site, document=blue("owl", "lark").decode())
    assert site.submit(blue("owl", "lark")).status_code == 403


def test_the_feed_is_atom(open_site: OpenSite) -> None:
    site = open_site(show_submissions=True)
    site.submit(blue("owl", "lark"))
    site.submit(blue("owl"))
    add_team(site.database, "A & <B>")
    feed = ElementTree.fromstring(site.client.get("/log.atom").text)
    names = {"atom": "http://www.w3.org/2005/Atom"}
    titles = [entry.text for entry in feed.findall("atom:entry/atom:title", names)]
    assert titles == ["Submission 1 of Owls (Blue Team): received."]
    assert feed.find("atom:entry/atom:updated", names) is not None


@pytest.mark.parametrize("path", ["/none", "/submissions/1", "/submissions/x", "/api/submissions/99999999999999999999"])
def test_missing_pages_are_not_found(site: Site, path: str) -> None:
    answer = site.client.get(path, headers=site.headers())
    assert answer.status_code == 404
    assert "Traceback" not in answer.text


def test_requests_for_headers_alone_are_answered(site: Site) -> None:
    for path in ("/", "/health", "/static/portal.css"):
        shown, headers = site.client.get(path), site.client.head(path)
        assert (headers.status_code, headers.content) == (200, b"")
        assert headers.headers["content-length"] == shown.headers["content-length"]
