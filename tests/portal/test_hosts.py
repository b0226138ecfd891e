"""The host that a request names: another one than the portal's gets nothing, and no answer leads there."""

import re

import pytest

from headstart.tests.portal.conftest import OpenSite

URL = "https://challenge.example.org"
PATHS = ("/", "/login", "/blue", "/leaderboard", "/log", "/nothing", "/api/challenge", "/api/", "/static/", "/log/")


@pytest.mark.parametrize("path", PATHS)
def test_only_hosts_of_the_portal_are_answered(open_site: OpenSite, path: str) -> None:
    client = open_site(url=URL).client
    answer = client.get(path, headers={"Host": "evil.example"})
    assert answer.status_code == 400
    assert "evil" not in f"{answer.headers} {answer.text}"
    assert answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    "host", ["", "[", "[::1", "challenge.example.org.evil.example", "evil.example:443", "::1", "é"]
)
def test_hosts_that_are_almost_right_or_none_are_not_answered(open_site: OpenSite, host: str) -> None:
    client = open_site(url=URL).client
    assert client.get("/health", headers={b"Host": host.encode()}).status_code == 400


HOSTS = ("challenge.example.org", "CHALLENGE.example.org:443", "127.0.0.1:8000", "localhost", "[::1]:8000")


@pytest.mark.parametrize("host", HOSTS)
def test_checks_of_the_machine_itself_are_answered(open_site: OpenSite, host: str) -> None:
    client = open_site(url=URL).client
    assert client.get("/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("path", PATHS)
def test_without_an_address_no_answer_leads_elsewhere(open_site: OpenSite, path: str) -> None:
    client = open_site().client
    answer = client.get(path, headers={"Host": "evil.example"})
    assert "location" not in answer.headers
    # The overview shows how programs submit, as a text.
    assert re.findall(r'(?:href|src|action)="(?!/|#)[^"]*"', answer.text) == []
