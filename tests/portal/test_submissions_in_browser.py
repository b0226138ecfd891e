"""A challenge in the system's Chromium: submit, withdraw, choose, disqualified, a phase ends, ties under both rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headstart.portal.records.accounts import add_team
from headstart.portal.records.decisions import disqualify
from headstart.portal.records.log import announce
from headstart.portal.settings import Settings
from headstart.portal.work.queue import claim, finish
from headstart.tests.material.browsers import needs_chromium, open_browser
from headstart.tests.material.phases import make_two_phases
from headstart.tests.material.portals import Site, blue, make_settings
from headstart.tests.material.served_portals import serve_portal
from headstart.tests.material.stub_scores import stub_score
from headstart.tests.portal.test_in_browser import log_in

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = needs_chromium
CHOSEN: dict[str, Any] = {"teams": {"blue": {"standing": "chosen"}}}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@contextmanager
def visit(browser: Browser, settings: Settings, scripts: bool = True) -> Iterator[tuple[Site, Page]]:
    """Serve a portal, and open a page of it; at the end nothing may have been blocked or failed."""
    with (
        (site := Site(settings)).client,
        serve_portal(settings) as address,
        browser.new_context(base_url=address, java_script_enabled=scripts) as context,
    ):
        context.set_default_timeout(15_000)
        page = context.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield site, page
        assert errors == []


def submit(page: Page, content: bytes) -> int:
    page.goto("/blue")
    page.get_by_label("Or paste its text").fill(content.decode())
    page.get_by_role("button", name="Submit", exact=True).click()
    page.wait_for_url(re.compile(r"/submissions/\d+$"))
    return int(page.url.rpartition("/")[2])


def ranks(page: Page, path: str = "/leaderboard") -> list[tuple[str, str]]:
    """Return rank and participant of each line of the Blue Team's leaderboard."""
    page.goto(path)
    lines = page.get_by_role("region", name="Leaderboard of the Blue Team").locator("tbody tr")
    return [(line.locator("td").first.inner_text(), line.get_by_role("rowheader").inner_text()) for line in lines.all()]


def main_text(page: Page) -> str:
    return page.get_by_role("main").inner_text()


@pytest.mark.slow
@pytest.mark.parametrize("scripts", [True, False])
def test_a_submission_is_withdrawn_after_a_question(browser: Browser, tmp_path: Path, scripts: bool) -> None:
    settings = make_settings(tmp_path, {"teams": {"blue": {"submissions": 1}}})
    with visit(browser, settings, scripts) as (site, page):
        log_in(page, add_team(site.database, "Owls"))
        submit(page, blue("owl", "lark"))
        page.get_by_role("link", name="Withdraw it").click()
        assert "does not count against the quotas" in main_text(page)
        page.get_by_role("link", name="Keep it").click()
        assert page.locator("[aria-current='step']").inner_text() == "queue"
        page.get_by_role("link", name="Withdraw it").click()
        page.get_by_role("button", name="Withdraw it").click()
        page.wait_for_url("**/submissions/1")
        assert page.locator("[aria-current='step']").inner_text() == "cancelled"
        assert "Its team withdrew it" in main_text(page)
        assert page.get_by_role("link", name="Withdraw it").count() == 0
        # The attempt is there again, and the second submission is scored and ranked.
        assert submit(page, blue("owl", "wren")) == 2
        site.work()
        assert ranks(page) == [("1", "Owls")]


@pytest.mark.slow
def test_a_page_follows_its_submission_while_it_waits(browser: Browser, tmp_path: Path) -> None:
    with visit(browser, make_settings(tmp_path, {})) as (site, page):
        log_in(page, add_team(site.database, "Owls"))
        submit(page, blue("owl", "lark"))
        assert "received." in page.locator(".log").inner_text()
        job = claim(site.database, "test")
        assert job is not None
        page.wait_for_selector(".log >> text=attempt 1 began.")
        assert finish(site.database, job, stub_score(job))
        page.wait_for_selector(".log >> text=scored, ")
        with page.expect_download() as download:
            page.get_by_role("link", name="Download the document").click()
        assert download.value.path().read_bytes() == blue("owl", "lark")


@pytest.mark.slow
def test_the_same_document_asks_once_more(browser: Browser, tmp_path: Path) -> None:
    with visit(browser, make_settings(tmp_path, {})) as (site, page):
        log_in(page, add_team(site.database, "Owls"))
        submit(page, blue("owl", "lark"))
        site.work()
        page.goto("/blue")
        page.get_by_label("Or paste its text").fill(blue("owl", "lark").decode())
        score = f"{1 / len(blue('owl', 'lark')):.6f}"
        page.wait_for_selector(f"#verdict >> text=the same document as submission 1, whose score is {score}.")
        page.get_by_role("button", name="Submit", exact=True).click()
        assert "Nothing was submitted." in page.get_by_role("alert").inner_text()
        page.get_by_role("button", name="Submit anyway").click()
        page.wait_for_url("**/submissions/2")


@pytest.mark.slow
def test_the_chosen_one_stands(browser: Browser, tmp_path: Path) -> None:
    with visit(browser, make_settings(tmp_path, CHOSEN)) as (site, page):
        log_in(page, add_team(site.database, "Owls"))
        for names in (("owl", "lark"), ("owl", "lark", "wren")):
            submit(page, blue(*names))
        site.work()
        page.goto("/leaderboard")
        assert page.locator("#blue-1").count() == 1
        page.goto("/submissions/2")
        page.get_by_role("button", name="Choose it for the leaderboard").click()
        page.wait_for_selector("text=Its team chose it")
        page.goto("/leaderboard")
        assert page.locator("#blue-2").count() == 1
        page.goto("/submissions")
        assert "chosen" in page.get_by_role("row").nth(1).inner_text()


@pytest.mark.slow
def test_everybody_reads_what_was_disqualified_and_announced(browser: Browser, tmp_path: Path) -> None:
    with visit(browser, make_settings(tmp_path, {})) as (site, page):
        token = add_team(site.database, "Owls")
        for name, models in (("Larks", ("owl", "wren", "rook")), ("Owls", ("owl", "lark"))):
            site.submit(blue(*models), token=token if name == "Owls" else add_team(site.database, name))
        site.work()
        assert ranks(page) == [("1", "Owls"), ("2", "Larks")]
        disqualify(site.database, 2, "The weights are not public.")
        announce(site.database, "One submission was disqualified.")
        assert ranks(page) == [("1", "Larks")]
        assert "Disqualified: submission 2 of Owls: The weights are not public." in main_text(page)
        page.goto("/log")
        assert "disqualified: The weights are not public." in main_text(page)
        page.goto("/")
        assert "One submission was disqualified." in page.get_by_role("region", name="Announcements").inner_text()
        log_in(page, token)
        page.goto("/submissions/2")
        assert "The organisers disqualified it: The weights are not public." in main_text(page)


@pytest.mark.slow
def test_a_phase_ends_and_the_next_begins(browser: Browser, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    soon, past = ((now + timedelta(hours=hours)).isoformat() for hours in (1, -1))
    with visit(browser, make_two_phases(tmp_path, {"deadline": soon}, {"opens": soon})) as (site, page):
        token = add_team(site.database, "Owls")
        log_in(page, token)
        submit(page, blue("owl", "lark"))
        site.work()
        page.goto("/")
        assert "The development phase (current)" in main_text(page)
    with visit(browser, make_two_phases(tmp_path, {"deadline": past}, {"opens": past})) as (site, page):
        log_in(page, token)
        page.goto("/")
        assert "The final phase (current)" in main_text(page)
        page.goto("/submissions/1")
        assert page.get_by_role("link", name="Withdraw it").count() == 0
        page.goto("/leaderboard")
        assert main_text(page).count("No scores yet.") == 2
        submit(page, blue("owl", "lark"))
        site.work()
        page.goto("/leaderboard")
        assert page.locator("#blue-2").count() == 1
        page.get_by_role("link", name="The development phase").click()
        assert page.locator("#blue-1").count() == 1
        page.goto("/submissions")
        assert [row.locator("td").first.inner_text() for row in page.get_by_role("row").all()[1:]] == [
            "final",
            "development",
        ]


@pytest.mark.parametrize(("rule", "second"), [("earliest", "2"), ("shared", "1")])
def test_ties_follow_the_rule_which_is_shown(browser: Browser, tmp_path: Path, rule: str, second: str) -> None:
    with visit(browser, make_settings(tmp_path, {"ties": rule})) as (site, page):
        for name in ("Wrens", "Larks", "Owls"):
            models = ("owl", "lark", "wren") if name == "Owls" else ("owl", "lark")
            site.submit(blue(*models), token=add_team(site.database, name))
        site.work()
        assert ranks(page) == [("1", "Wrens"), (second, "Larks"), ("3", "Owls")]
        sentence = "Equal scores share a rank." if rule == "shared" else "the earlier submission ranks first"
        assert sentence in main_text(page)
        page.goto("/")
        assert sentence in main_text(page)
