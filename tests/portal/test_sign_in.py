"""Sign-in by an organisation's OpenID Connect: who gets in, and who does not."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc.jwk import RSAKey
from sqlalchemy import select

from headstart.output.errors import UserError
from headstart.portal.records.accounts import find_team, make_account, revoke_account
from headstart.portal.records.invitations import invite
from headstart.portal.records.tables import AccountRow, SessionRow
from headstart.portal.settings import Oidc, parse_settings
from headstart.portal.web.sessions import COOKIE
from headstart.tests.material.identity_providers import CLIENT, SECRET, IdentityProvider, serve_provider
from headstart.tests.material.portals import Site

OpenSite = Callable[..., Site]
ALICE = {"email": "Alice@Example.org", "email_verified": True, "name": "Alice"}


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with serve_provider() as provider:
        provider.claims = dict(ALICE)
        yield provider


@pytest.fixture
def site(open_site: OpenSite, provider: IdentityProvider, tmp_path: Path) -> Site:
    """Open a portal with the account of Alice, of the team Owls."""
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    site = open_site(oidc=Oidc(provider.address, CLIENT, str(tmp_path / "secret")))
    with site.database.writing() as session:
        make_account(session, datetime.now(UTC), "Alice", find_team(session, "Owls"), "alice@example.org")
    return site


def go(site: Site, provider: IdentityProvider, **changes: str) -> Any:
    """Sign in as a browser does, with other parameters of the answer."""
    leaving = site.client.get("/sign-in")
    assert leaving.status_code == 302, leaving.text
    parts = urlsplit(leaving.headers["location"])
    assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{provider.address}/authorize"
    back = urlsplit(provider.authorize({name: values[0] for name, values in parse_qs(parts.query).items()}))
    assert back.path == "/sign-in/answer"
    query = {name: values[0] for name, values in parse_qs(back.query).items()}
    return site.client.get(back.path, params={**query, **changes})


def visitor(site: Site) -> str:
    """Return who is logged in."""
    page = site.client.get("/team")
    return "" if page.status_code == 303 else page.text.partition(" (you)")[0].rpartition(">")[2]


def refused(site: Site, answer: Any, status: int, words: str) -> None:
    assert answer.status_code == status
    assert words in answer.text
    assert "Traceback" not in answer.text
    assert COOKIE not in answer.headers.get("set-cookie", "")
    assert visitor(site) == ""
    with site.database.reading() as session:
        assert session.scalars(select(SessionRow)).all() == []


def test_a_person_is_found_by_the_verified_address(site: Site, provider: IdentityProvider) -> None:
    assert 'href="/sign-in"' in site.client.get("/login").text
    answer = go(site, provider)
    assert answer.status_code == 200
    assert "You are signed in as Alice." in answer.text
    # A redirect would be sent without the cookie, because another site began it.
    assert 'content="0; url=/submissions"' in answer.text
    cookie = next(each.lower() for each in answer.headers.get_list("set-cookie") if COOKIE in each)
    assert "samesite=strict" in cookie
    assert "httponly" in cookie
    assert visitor(site) == "Alice"
    asked = provider.asked[0]
    assert (asked["client_id"], asked["response_type"], asked["code_challenge_method"]) == (CLIENT, "code", "S256")
    assert "openid" in asked["scope"]


@pytest.mark.parametrize("audience", [{"aud": [CLIENT]}, {"aud": ["another", CLIENT], "azp": CLIENT}])
def test_tokens_may_be_for_several_clients(site: Site, provider: IdentityProvider, audience: dict[str, Any]) -> None:
    provider.claims = {**ALICE, **audience}
    assert go(site, provider).status_code == 200
    assert visitor(site) == "Alice"


def test_an_invitation_to_the_address_is_used(site: Site, provider: IdentityProvider) -> None:
    provider.claims = {**ALICE, "email": "bob@example.org", "name": "Bob"}
    with site.database.writing() as session:
        # One that registers a team has to be opened, because a name is needed.
        invite(session, datetime.now(UTC), None, "a test", email="bob@example.org")
    refused(site, go(site, provider), 403, "no account and no invitation for bob@example.org")
    with site.database.writing() as session:
        invite(session, datetime.now(UTC), find_team(session, "Owls"), "a test", email="Bob@example.org")
    assert go(site, provider).status_code == 200
    assert visitor(site) == "Bob"
    assert go(site, provider).status_code == 200
    with site.database.reading() as session:
        assert list(session.scalars(select(AccountRow.name).order_by(AccountRow.id))) == ["Owls", "Alice", "Bob"]


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({"email": "eve@example.org"}, "no account and no invitation for eve@example.org"),
        ({"email_verified": False}, "has not verified"),
        ({"email_verified": "true"}, "has not verified"),
        ({"email": ""}, "has not verified"),
        ({"nonce": "another"}, "was not completed (invalid_claim)"),
        ({"iss": "https://elsewhere.example"}, "was not completed (invalid_claim)"),
        ({"aud": "another"}, "was not completed (invalid_claim)"),
        ({"aud": "another", "azp": CLIENT}, "was not completed (invalid_claim)"),
        ({"aud": [CLIENT, "another"], "azp": "another"}, "was not completed (invalid_claim)"),
        ({"exp": 1}, "was not completed (expired_token)"),
    ],
)
def test_other_claims_open_nothing(site: Site, provider: IdentityProvider, claims: dict[str, Any], words: str) -> None:
    provider.claims = {**ALICE, **claims}
    refused(site, go(site, provider), 403, words)


def test_answers_that_were_not_asked_for_open_nothing(site: Site, provider: IdentityProvider) -> None:
    refused(site, go(site, provider, state="another"), 403, "was not completed (mismatching_state)")
    refused(site, go(site, provider, error="access_denied"), 403, "was not completed (access_denied)")
    # Another person's browser, which has not begun a sign-in.
    done = go(site, provider)
    assert done.status_code == 200
    site.client.cookies.clear()
    with site.database.writing() as session:
        for row in session.scalars(select(SessionRow)):
            session.delete(row)
    refused(site, site.client.get(done.url.path, params=dict(done.url.params)), 403, "mismatching_state")
    refused(site, site.client.get("/sign-in/answer"), 403, "mismatching_state")


def test_a_forged_signature_opens_nothing(site: Site, provider: IdentityProvider) -> None:
    provider.signer = RSAKey.generate_key(2048, {"kid": "one"})
    refused(site, go(site, provider), 403, "was not completed (bad_signature)")


def test_a_revoked_account_stays_out(site: Site, provider: IdentityProvider) -> None:
    with site.database.writing() as session:
        alice = session.scalars(select(AccountRow).where(AccountRow.name == "Alice")).one()
        revoke_account(session, datetime.now(UTC), alice, "a test")
    refused(site, go(site, provider), 403, "no account and no invitation for alice@example.org")


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/token", "/keys"])
def test_a_provider_that_is_away_is_one_page(site: Site, provider: IdentityProvider, path: str) -> None:
    provider.broken = path
    answer = site.client.get("/sign-in")
    if path not in {"/token", "/keys"}:
        refused(site, answer, 503, "does not work at present")
        assert "Retry-After" in answer.headers
    else:
        refused(site, go(site, provider), 503, "does not work at present")
    provider.broken = ""
    assert go(site, provider).status_code == 200


def test_a_provider_that_cannot_be_reached(open_site: OpenSite, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET)
    site = open_site(oidc=Oidc("http://127.0.0.1:9", CLIENT, str(tmp_path / "secret")))
    refused(site, site.client.get("/sign-in"), 503, "does not work at present")
    site.log_in()


def test_without_settings_there_is_no_sign_in(open_site: OpenSite) -> None:
    site = open_site()
    assert "sign-in" not in site.client.get("/login").text
    assert site.client.get("/sign-in").status_code == 404
    assert site.client.get("/sign-in/answer").status_code == 404


def test_wrong_settings_are_named(open_site: OpenSite, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"oidc.client_secret_file: '.*none' cannot be read"):
        open_site(oidc=Oidc("https://example.org", CLIENT, str(tmp_path / "none")))


def test_settings_are_read_from_a_file(tmp_path: Path) -> None:
    config = tmp_path / "portal.yaml"
    config.write_text("oidc:\n  issuer: https://example.org\n  client_id: portal\n  client_secret_file: secret.txt\n")
    assert parse_settings("A portal.", [f"--config={config}"]).oidc == Oidc(
        "https://example.org", "portal", "secret.txt"
    )
    assert parse_settings("A portal.", []).oidc is None
