"""Joining, inviting, recovering, accepting terms and signing in, in the system's Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from headstart.portal.records.accounts import add_team, create_team, find_account, find_team, make_account
from headstart.portal.records.invitations import invite
from headstart.portal.settings import Oidc
from headstart.tests.material.browsers import needs_chromium, open_browser
from headstart.tests.material.identity_providers import CLIENT, SECRET, IdentityProvider, serve_provider
from headstart.tests.material.portals import Site, blue, make_settings
from headstart.tests.material.served_portals import serve_portal

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = needs_chromium
TERMS = {"version": "1", "text": "Be kind.\n\nShare your code."}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with serve_provider() as provider:
        yield provider


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, provider: IdentityProvider) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("portal")
    (folder / "secret").write_text(SECRET)
    oidc = Oidc(provider.address, CLIENT, str(folder / "secret"))
    site = Site(make_settings(folder, {"terms": TERMS}, oidc=oidc))
    with site.client:
        yield site


@pytest.fixture(scope="module")
def address(site: Site) -> Iterator[str]:
    with serve_portal(site.settings) as address:
        yield address


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    yield from open_page(browser, address)


@pytest.fixture
def other(browser: Browser, address: str) -> Iterator[Page]:
    """Open a page of another person."""
    yield from open_page(browser, address)


def open_page(browser: Browser, address: str) -> Iterator[Page]:
    """Open a page, and check at the end that its rules blocked nothing."""
    with browser.new_context(base_url=address, viewport={"width": 1100, "height": 800}) as context:
        context.set_default_timeout(15_000)
        page = context.new_page()
        messages: list[str] = []
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        yield page
        assert [text for text in messages if "[DOM]" not in text and "status of 40" not in text] == []


def log_in(page: Page, token: str) -> None:
    page.goto("/login")
    page.get_by_label("Your token").fill(token)
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    page.wait_for_url("**/submissions")


def secrets(page: Page) -> list[str]:
    page.wait_for_selector("text='Save this now. It is not shown again.'")
    return page.locator("main code").all_inner_texts()


def members(page: Page) -> list[str]:
    return page.locator("tbody th").all_inner_texts()


@pytest.mark.slow
def test_a_team_registers_and_a_member_is_added(page: Page, other: Page, site: Site) -> None:
    with site.database.writing() as session:
        code = invite(session, datetime.now(UTC), None, "a test")
    add_team(site.database, "Owls")
    page.goto(f"/join/{code}")
    page.get_by_label("Name of the team").fill("0wls")
    page.get_by_label("Your name").fill("Alice")
    page.get_by_role("button", name="Register").click()
    assert "looks like a team that exists, 'Owls'" in page.get_by_role("alert").inner_text()
    # What was written is still there.
    assert page.get_by_label("Your name").input_value() == "Alice"
    page.get_by_label("Name of the team").fill("Larks")
    page.get_by_role("button", name="Register").click()
    token, _ = secrets(page)
    account = find_account(site.database, token)
    assert account is not None
    assert account.team is not None
    assert (account.name, account.team.name, account.team.approved) == ("Alice", "Larks", None)
    page.get_by_role("link", name="Go to the team").click()
    assert "must approve your team" in page.get_by_role("main").inner_text()

    page.get_by_role("button", name="Invite a member").click()
    (link,) = secrets(page)
    other.goto(link)
    other.get_by_label("Your name").fill("Bob")
    other.get_by_role("button", name="Join").click()
    lost, _ = secrets(other)
    page.goto("/team")
    assert members(page) == ["Alice (you)", "Bob"]
    # Bob has lost his token.
    page.get_by_role("button", name="Renew the token of Bob").click()
    found, _ = secrets(page)
    other.goto("/team")
    other.wait_for_url("**/login")
    log_in(other, found)
    assert find_account(site.database, lost) is None
    page.goto("/team")
    page.get_by_role("button", name="Remove Bob").click()
    page.wait_for_url("**/team")
    assert members(page) == ["Alice (you)"]
    page.get_by_role("button", name="Log out everywhere").click()
    page.wait_for_url("**/login")


@pytest.mark.slow
def test_a_lost_token_is_recovered(page: Page, site: Site) -> None:
    keys = create_team(site.database, "Forgetful")
    page.goto("/login")
    page.get_by_role("link", name="I have lost my token").click()
    page.get_by_label("Recovery code").fill("wrong")
    page.get_by_role("button", name="Get a new token").click()
    assert "unknown" in page.get_by_role("alert").inner_text()
    page.get_by_label("Recovery code").fill(keys.recovery)
    page.get_by_role("button", name="Get a new token").click()
    token, _ = secrets(page)
    # The browser is logged in.
    page.get_by_role("link", name="Go to the team").click()
    page.wait_for_url("**/team")
    assert members(page) == ["Forgetful (you)"]
    page.get_by_role("button", name="Log out", exact=True).click()
    log_in(page, token)


@pytest.mark.slow
def test_terms_are_accepted_before_the_first_submission(page: Page, site: Site) -> None:
    log_in(page, add_team(site.database, "Readers"))
    page.goto("/blue")
    assert "Share your code." in page.get_by_role("region", name="Terms, version 1").inner_text()
    page.get_by_label("Or paste its text").fill(blue("owl", "lark").decode())
    page.get_by_role("button", name="Submit").click()
    # The browser does not send the form.
    assert page.get_by_label("I accept these terms").evaluate("(each) => each.matches(':invalid')")
    page.get_by_role("button", name="Check only").click()
    page.wait_for_selector("#verdict >> text='Valid. It is not submitted yet.'")
    page.get_by_label("I accept these terms").check()
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile(r"/submissions/\d+$"))
    page.goto("/blue")
    assert page.get_by_label("I accept these terms").count() == 0


def test_the_cookie_is_set_after_an_answer_from_another_site(
    page: Page, site: Site, provider: IdentityProvider
) -> None:
    provider.claims = {"email": "carol@example.org", "email_verified": True}
    add_team(site.database, "Wrens")
    with site.database.writing() as session:
        make_account(session, datetime.now(UTC), "Carol", find_team(session, "Wrens"), "carol@example.org")
    page.goto("/login")
    page.get_by_role("link", name="Sign in with your organisation").click()
    page.wait_for_url("**/submissions")
    page.goto("/team")
    assert members(page) == ["Wrens", "Carol (you)"]


@pytest.mark.parametrize("width", [320, 768])
def test_no_page_scrolls_sideways(page: Page, site: Site, width: int) -> None:
    keys = create_team(site.database, "W" * 40 + str(width))
    with site.database.writing() as session:
        code = invite(session, datetime.now(UTC), None, "a test")
    page.set_viewport_size({"width": width, "height": 800})
    for path in ("/recover", f"/join/{code}"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    log_in(page, keys.token)
    page.goto("/team")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("button", name="Invite a member").click()
    secrets(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
