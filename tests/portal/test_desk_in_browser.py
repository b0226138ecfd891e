"""The organisers' desk in the system's Chromium: teams, freezing, a failure and its reason, on a phone and by keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import pytest

from headstart.portal.records.accounts import add_team
from headstart.portal.work.queue import Outcome, claim, finish
from headstart.tests.material.browsers import contrast, needs_chromium, open_browser
from headstart.tests.material.organisers import add_organiser
from headstart.tests.material.portals import Site, blue, make_settings, red
from headstart.tests.material.served_portals import serve_portal
from headstart.tests.portal.test_in_browser import COLOURS, LONG, log_in, unnamed, walk

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = needs_chromium
REASON = "UserError: weights.pth of <lark> cannot be read"
PATHS = (
    *("/desk", "/desk/teams", "/desk/submissions", "/desk/submissions?state=failed"),
    *("/desk/run/teams/add", "/desk/run/rescore?numbers=1", "/desk/run/freeze"),
)
EXPECTED = re.compile(r"status of 40[04] |\[DOM\] Password forms")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Serve a portal with an organiser, whose participants' submissions are scored, refused and failed."""
    site = Site(make_settings(tmp_path_factory.mktemp("portal"), {"deadline": "2999-12-31T23:59:59Z"}))
    with site.client:
        add_organiser(site.database)
        site.token = add_team(site.database, LONG)
        site.submit(blue("owl", "lark"))
        job = claim(site.database, "worker")
        assert job is not None
        assert finish(site.database, job, Outcome("failed", "For a reason on our side.", REASON))
        site.submit(blue("x" * 200, "owl"))
        site.submit(red(0, 1, 2), "red")
        site.work()
        yield site


@pytest.fixture(scope="module")
def address(site: Site) -> Iterator[str]:
    with serve_portal(site.settings) as address:
        yield address


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """Open a page for the organiser without scripts of ours, and check that nothing was blocked or asked elsewhere."""
    with browser.new_context(base_url=address, viewport={"width": 1280, "height": 800}) as context:
        context.set_default_timeout(15_000)
        page = context.new_page()
        messages: list[str] = []
        urls: list[str] = []
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: urls.append(request.url))
        log_in(page, "token of Ada")
        yield page
        assert [text for text in messages if not EXPECTED.search(text)] == []
        assert [url for url in urls if not url.startswith(address)] == []


def press(page: Page, name: str) -> None:
    page.get_by_role("main").get_by_role("button", name=name).click()


@pytest.mark.slow
def test_an_organiser_adds_a_team_which_then_submits(page: Page, browser: Browser, address: str) -> None:
    page.get_by_role("link", name="Desk").click()
    page.get_by_role("navigation", name="Desk").get_by_role("link", name="Teams").click()
    page.get_by_role("link", name="Add a team").click()
    page.get_by_label("Name").fill("New owls")
    press(page, "Teams add")
    told = page.get_by_role("status")
    text = told.inner_text()
    # It can be marked and copied.
    told.locator("pre").click(click_count=3)
    assert page.evaluate("getSelection().toString()").strip() == text.strip()
    found = re.search(r"token ([\w-]{43})", text)
    assert found is not None
    page.goto("/desk/teams")
    row = page.get_by_role("row", name="New owls")
    assert "takes part" in row.inner_text()

    with browser.new_context(base_url=address) as context:
        other = context.new_page()
        log_in(other, found[1])
        assert other.get_by_role("link", name="Desk").count() == 0
        for path in PATHS:
            answer = other.goto(path)
            assert answer is not None
            assert answer.status == 404, path
        row.get_by_role("link", name="revoke New owls").click()
        assert page.get_by_label("Name").input_value() == "New owls"
        press(page, "Teams revoke")
        page.wait_for_selector("pre >> text=New owls")
        other.goto("/submissions")
        assert other.url.endswith("/login")


@pytest.mark.slow
def test_an_organiser_freezes_and_thaws(page: Page) -> None:
    for command, said in (("freeze", "paused submissions"), ("thaw", "Submissions are open")):
        page.goto("/desk")
        page.get_by_role("main").get_by_role("link", name=command).click()
        press(page, command.capitalize())
        page.wait_for_selector("[role=status]")
        page.goto("/")
        assert said in page.get_by_role("main").inner_text()
        page.goto("/log")
        assert "Ada" not in page.get_by_role("main").inner_text()
        page.goto("/desk")
        assert f"Ada ran the command `{command}`." in page.get_by_role("main").inner_text()


@pytest.mark.slow
def test_an_organiser_reads_why_a_submission_failed_and_has_it_scored_again(page: Page, site: Site) -> None:
    page.goto("/desk/submissions")
    page.get_by_label("State", exact=True).select_option("failed")
    press(page, "Show")
    row = page.get_by_role("row", name="Submission 1")
    assert REASON in row.inner_text()
    assert page.locator("tbody tr").count() == 1
    row.get_by_role("link", name="rescore submission 1").click()
    press(page, "Rescore")
    assert "1 submission is in the queue again" in page.get_by_role("status").inner_text()
    # A second time is a mistake, which is explained.
    page.get_by_label("Numbers").fill("1")
    press(page, "Rescore")
    assert "it is being scored" in page.get_by_role("alert").inner_text()
    site.work()
    page.goto("/desk/submissions?state=failed")
    assert "No submissions." in page.get_by_role("main").inner_text()


@pytest.mark.parametrize("width", [320, 1280])
def test_no_page_of_the_desk_scrolls_sideways(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    for path in PATHS:
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        # Targets for fingers have at least the size of success criterion 2.5.8, or the line of a text around them.
        targets = page.locator("main :is(button, .button, input:not([type=hidden]), select, .row a, .tabs a)")
        size = "(each.closest('label') || each).getBoundingClientRect()"
        heights = targets.evaluate_all(f"(all) => all.map((each) => {size}.height)")
        assert min(heights) >= 24, path


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_desk_is_readable_and_has_names(page: Page, scheme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=scheme)
    for path in PATHS:
        page.goto(path)
        for text, colour, behind in page.evaluate(COLOURS):
            # Success criterion 1.4.3.
            assert contrast(colour, behind) >= 4.5, (path, text, colour, behind)
        assert unnamed(page) == [], path
        assert page.locator("h1").count() == 1
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map((each) => each.id)")
        assert len(ids) == len(set(ids)), path
        assert page.locator("main :is(input:not([type=hidden]), textarea, select)").evaluate_all(
            "(all) => all.every((each) => each.labels.length === 1)"
        )


def test_a_command_is_given_by_keys_alone(page: Page) -> None:
    page.goto("/desk/run/teams/add")
    names = walk(page, "Name")
    assert names[0] == "Skip to content"
    page.keyboard.type("Typed owls")
    page.keyboard.press("Enter")
    page.wait_for_selector("[role=status] >> text=Typed owls has the token")
