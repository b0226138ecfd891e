"""The portal in the system's Chromium: submitting and following on wide and narrow screens, and by ear."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from headstart.tests.material.browsers import needs_chromium, open_browser
from headstart.tests.material.portals import Site, blue, make_settings, red, serve_portal

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = [needs_chromium, pytest.mark.slow]
# Answers that are pages.
EXPECTED = re.compile(r"status of 40[04] ")
NAMES = "login blue red submissions submissions/1 submissions/2 submissions/9 leaderboard log"
PATHS = ["/", *(f"/{name}" for name in NAMES.split())]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, str]]:
    """Serve a portal; its participant's name has no position for a line break."""
    site = Site(make_settings(tmp_path_factory.mktemp("portal"), {"deadline": "2999-12-31T23:59:59Z"}))
    with site.client:
        site.token = site.add_team("W" * 64)
        site.submit(blue("owl", "lark"))
        site.submit(blue("x" * 200, "owl", "Owl"))
        site.submit(red(0, 1, 2), "red")
        site.work()
        with serve_portal(site.settings) as address:
            yield site, address


@pytest.fixture
def page(browser: Browser, served: tuple[Site, str]) -> Iterator[Page]:
    """Open a page, and check at the end that its rules blocked nothing and that it requested nothing elsewhere."""
    _, address = served
    with browser.new_context(base_url=address, viewport={"width": 1280, "height": 800}) as context:
        context.set_default_timeout(15_000)
        page = context.new_page()
        messages: list[str] = []
        urls: list[str] = []
        page.on("console", lambda message: messages.extend([message.text] if message.type == "error" else []))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: urls.append(request.url))
        yield page
        assert [text for text in messages if not EXPECTED.search(text)] == [], messages
        assert [url for url in urls if not url.startswith(address)] == []


def log_in(page: Page, token: str) -> None:
    page.goto("/login")
    page.get_by_label("Your team's token").fill(token)
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    page.wait_for_url("**/submissions")


def test_a_submission_is_handed_in_and_followed_to_the_leaderboard(
    page: Page, served: tuple[Site, str], tmp_path: Path
) -> None:
    site, _ = served
    page.set_viewport_size({"width": 390, "height": 800})
    log_in(page, site.add_team("Followers"))
    assert "No submissions yet." in page.get_by_role("main").inner_text()
    page.get_by_role("link", name="Submit as Blue Team").click()
    page.get_by_label("Or paste its text").fill(blue("owl", "crow").decode())
    page.get_by_role("button", name="Check only").click()
    assert page.get_by_role("status").get_by_role("cell", name="/models/1").count() == 1
    page.get_by_label("Or paste its text").fill("")
    for name in ("owl", "wren"):
        page.get_by_label(name).check()
    page.get_by_role("button", name="Check only").click()
    assert page.get_by_role("status").inner_text() == "Valid. It is not submitted yet."
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile(r"/submissions/\d+$"))
    assert page.locator(".badge").inner_text() == "queue"
    site.work()
    # The page loads itself again.
    page.wait_for_selector(".badge >> text=scored")
    score = f"{1 / len(blue('owl', 'wren')):.6f}"
    assert score in page.locator(".figures").inner_text()
    page.get_by_role("link", name="Leaderboard").click()
    row = page.get_by_role("region", name="Leaderboard of the Blue Team").get_by_role("row", name="Followers")
    assert score in row.inner_text()
    assert row.get_attribute("class") == "own"

    page.goto("/red")
    (tmp_path / "red.json").write_bytes(red(0, 0))
    page.get_by_label("Choose a file").set_input_files(tmp_path / "red.json")
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile(r"/submissions/\d+$"))
    assert page.locator(".badge").inner_text() == "refused"
    assert page.get_by_role("row").count() == 2


def test_pages_fit_and_have_names_for_ears(page: Page, served: tuple[Site, str]) -> None:
    log_in(page, served[0].token)
    for path in PATHS:
        page.goto(path)
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        for role in ("banner", "main", "contentinfo", "navigation"):
            assert page.get_by_role(role).count() == 1, (path, role)
        assert page.locator("h1").count() == 1, path
        assert unnamed(page) == [], path
        assert page.locator("table th:not([scope]), table:not(:has(thead th)), img:not([alt])").count() == 0, path


def unnamed(page: Page) -> list[str]:
    """Return the controls without a name in the browser's accessibility tree."""
    session = page.context.new_cdp_session(page)
    nodes: list[dict[str, Any]] = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    used = {"link", "button", "textbox", "checkbox", "region", "navigation", "img"}
    results = [node for node in nodes if not node["ignored"] and node["role"]["value"] in used]
    assert results
    return [node["role"]["value"] for node in results if not node.get("name", {}).get("value", "").strip()]
