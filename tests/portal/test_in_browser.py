"""The portal in the system's Chromium: submitting and following, on a phone, by keys, by ear, without scripts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from headstart.portal.records.accounts import add_team
from headstart.portal.work.queue import claim, finish
from headstart.tests.material.browsers import contrast, needs_chromium, open_browser
from headstart.tests.material.portals import Site, blue, make_settings, red
from headstart.tests.material.served_portals import serve_portal
from headstart.tests.material.stub_scores import MODELS, stub_score

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = needs_chromium
LONG = "W" * 64
# Answers that are pages, and what Chromium would like password forms to have.
EXPECTED = re.compile(r"status of 40[04] |\[DOM\] Password forms")
# Submissions of every state, and a participant whose name has no position for a line break.
PATHS = (
    *("/", "/login", "/blue?example=true", "/red", "/submissions", "/submissions/1", "/submissions/2"),
    *("/submissions/999", "/leaderboard", "/log", "/team", "/recover"),
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Serve a portal where one participant's submissions are scored and refused."""
    site = Site(make_settings(tmp_path_factory.mktemp("portal"), {"deadline": "2999-12-31T23:59:59Z"}))
    with site.client:
        site.token = add_team(site.database, LONG)
        site.submit(blue("owl", "lark"))
        site.submit(blue("x" * 200, "owl", "Owl"))
        site.submit(red(0, 1, 2), "red")
        site.work()
        yield site


@pytest.fixture(scope="module")
def address(site: Site) -> Iterator[str]:
    with serve_portal(site.settings) as address:
        yield address


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """Open a page, and check at the end that its rules blocked nothing and that it requested nothing elsewhere."""
    with browser.new_context(base_url=address, viewport={"width": 1100, "height": 800}) as context:
        context.set_default_timeout(15_000)
        page = context.new_page()
        messages: list[str] = []
        urls: list[str] = []
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: urls.append(request.url))
        yield page
        assert [text for text in messages if not EXPECTED.search(text)] == []
        assert [url for url in urls if not url.startswith(address)] == []


def log_in(page: Page, token: str) -> None:
    page.goto("/login")
    page.get_by_label("Your token").fill(token)
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    page.wait_for_url("**/submissions")


def test_a_submission_is_handed_in_and_followed_to_the_leaderboard(page: Page, site: Site) -> None:
    log_in(page, add_team(site.database, "Followers"))
    assert "No submissions yet." in page.get_by_role("main").inner_text()
    page.get_by_role("link", name="Submit as Blue Team").click()
    page.get_by_role("link", name="Fill in a valid example").click()
    document = page.get_by_label("Or paste its text")
    assert json.loads(document.input_value()) == {"models": list(MODELS[:2])}
    page.wait_for_selector("#verdict >> text='Valid. It is not submitted yet.'")
    # The text is checked while it is written.
    document.fill('{"models": ["owl", "crow"]}')
    page.wait_for_selector("#verdict td >> text='\"crow\"'")
    document.fill(blue("owl", "rook", "wren").decode())
    page.wait_for_selector("#verdict >> text='Valid. It is not submitted yet.'")
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile(r"/submissions/\d+$"))
    current = page.locator("[aria-current='step']")
    assert current.inner_text() == "queue"
    assert "place 1 in the queue" in page.get_by_role("main").inner_text()
    # The page is not loaded again.
    page.evaluate("window.stays = true")
    job = claim(site.database, "test")
    assert job is not None
    page.wait_for_selector("[aria-current='step'] >> text=running")
    assert page.get_by_role("status").inner_text() == "running"
    assert finish(site.database, job, stub_score(job))
    page.wait_for_selector("[aria-current='step'] >> text=scored")
    assert page.evaluate("window.stays")
    score = f"{1 / len(blue('owl', 'rook', 'wren')):.6f}"
    assert score in page.locator(".figures").inner_text()
    page.get_by_role("link", name="Leaderboard").click()
    row = page.get_by_role("region", name="Leaderboard of the Blue Team").get_by_role("row", name="Followers")
    assert score in row.inner_text()
    assert "own" in (row.get_attribute("class") or "")


@pytest.mark.slow
def test_all_that_is_wrong_with_a_file_is_named(page: Page, site: Site, tmp_path: Path) -> None:
    log_in(page, add_team(site.database, "Wrong files"))
    page.goto("/blue")
    path = tmp_path / "changed.json"
    path.write_bytes(blue("owl", "lark"))
    page.get_by_label("Choose a file").set_input_files(path)
    page.wait_for_selector("#verdict >> text='Valid. It is not submitted yet.'")
    path.write_bytes(blue("owl", "lark", "wren"))
    page.get_by_label("Choose a file").dispatch_event("change")
    page.wait_for_selector("#verdict >> text='The file was changed or moved after you chose it. Choose it again.'")
    for index, content in enumerate((b"\x89PNG", blue("owl", "Owl", "crow", "<b>lark</b>"), red(0, 1))):
        path = tmp_path / f"{index}.json"
        path.write_bytes(content)
        problems = site.client.post("/api/validate?team=blue", content=content).json()["problems"]
        page.get_by_label("Choose a file").set_input_files(path)
        page.wait_for_selector(f"#verdict td >> text={problems[-1]['rule']}")
        shown = page.locator("#verdict tbody tr td:last-child").all_inner_texts()
        assert shown == [problem["rule"] for problem in problems]
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile(r"/submissions/\d+$"))
    assert page.locator("[aria-current='step']").inner_text() == "refused"
    assert page.locator("tbody tr").count() == 1


def test_a_file_and_a_text_at_once_are_not_guessed_between(page: Page, site: Site, tmp_path: Path) -> None:
    log_in(page, site.token)
    page.goto("/blue")
    (tmp_path / "one.json").write_bytes(blue("owl", "lark"))
    page.get_by_label("Choose a file").set_input_files(tmp_path / "one.json")
    page.get_by_label("Or paste its text").fill(blue("owl", "wren").decode())
    page.wait_for_selector("#verdict >> text='Choose a file or paste a document, not both.'")
    page.get_by_role("button", name="Submit").click()
    assert page.get_by_role("alert").inner_text().startswith("Choose a file or paste a document")


@pytest.mark.parametrize(
    "width", [pytest.param(320, marks=pytest.mark.slow), 375, pytest.param(768, marks=pytest.mark.slow)]
)
def test_no_page_scrolls_sideways(page: Page, site: Site, width: int) -> None:
    log_in(page, site.token)
    page.set_viewport_size({"width": width, "height": 800})
    for path in PATHS:
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        lines = page.evaluate("""[...document.querySelectorAll(".figures dd")].map((each) => {
            const range = document.createRange();
            range.selectNodeContents(each.firstChild);
            return range.getClientRects().length;
        })""")
        assert set(lines) <= {1}, f"{path} breaks a number"
    # Targets for fingers have at least the size of success criterion 2.5.8.
    page.goto("/blue")
    sizes = page.evaluate("""[...document.querySelectorAll("button, .button, input:not([type=hidden]), nav a")]
        .map((each) => each.getBoundingClientRect()).map((box) => Math.min(box.width, box.height))""")
    assert min(sizes) >= 24


@pytest.mark.slow
def test_everything_can_be_done_by_keys_alone(page: Page, site: Site) -> None:
    token = add_team(site.database, "Keys")
    page.goto("/")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to content")
    assert skip.evaluate("(each) => each === document.activeElement && each.getBoundingClientRect().left >= 0")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.goto("/login")
    # The browser focuses the field a moment after it shows the page.
    page.wait_for_function("document.activeElement.id == 'token'")
    page.keyboard.type(token)
    page.keyboard.press("Enter")
    page.wait_for_url("**/submissions")
    page.goto("/blue")
    seen = walk(page, "Submit")
    order = ["Skip to content", "Log out", "Overview", "Choose a file", "Or paste its text", "Submit"]
    assert [name for name in seen if name in order] == order
    for _ in range(2):
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.id") == "document":
            break
    page.keyboard.type(blue("owl", "lark").decode())
    walk(page, "Submit")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/submissions/\d+$"))
    assert page.locator("[aria-current='step']").inner_text() == "queue"
    site.work()


def walk(page: Page, until: str) -> list[str]:
    """Press Tab until the control of a name has the focus; every control on the way must show its focus."""
    names: list[str] = []
    while not names or names[-1] != until:
        page.keyboard.press("Tab")
        name, outline, visible = page.evaluate("""() => {
            const each = document.activeElement, style = getComputedStyle(each), box = each.getBoundingClientRect();
            const name = each.labels?.[0]?.textContent || each.getAttribute("aria-label") || each.textContent;
            return [name.trim(), style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
                    box.width > 0 && box.right > 0 && box.bottom > 0 && box.top < innerHeight];
        }""")
        assert outline, f"{name} does not show that it has the focus"
        assert visible, f"{name} has the focus and is not seen"
        names.append(name)
        assert len(names) < 40
    return names


@pytest.mark.slow
def test_pages_have_accessible_names(page: Page, site: Site) -> None:
    log_in(page, site.token)
    for path in PATHS:
        page.goto(path)
        for role in ("banner", "main", "contentinfo", "navigation"):
            assert page.get_by_role(role).count() == 1, (path, role)
        levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map((each) => +each.tagName[1])")
        assert levels[0] == 1, path
        assert levels.count(1) == 1, path
        assert all(after - before <= 1 for before, after in pairwise(levels)), (path, levels)
        # The names of controls in Chromium's accessibility tree.
        assert unnamed(page) == [], path
        assert page.evaluate("document.documentElement.lang") == "en"
        assert page.locator("table th:not([scope])").count() == 0, path
        assert page.locator("table:not(:has(thead th))").count() == 0, path
        assert page.locator("img:not([alt])").count() == 0, path
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map((each) => each.id)")
        assert len(ids) == len(set(ids)), path
        referred = page.evaluate("""[...document.querySelectorAll("[aria-describedby], [aria-labelledby], label[for]")]
            .flatMap((each) => (each.getAttribute("aria-describedby") || each.getAttribute("aria-labelledby")
                || each.htmlFor).split(" "))""")
        assert set(referred) <= set(ids), path
    page.goto("/blue")
    assert page.locator("#verdict").get_attribute("aria-live") == "polite"
    page.locator("summary").click()
    models = page.get_by_role("region", name="Models").get_by_role("list").get_by_role("listitem")
    assert models.all_inner_texts() == list(MODELS)
    page.goto("/submissions")
    assert page.get_by_role("status").count() == 1


def unnamed(page: Page) -> list[str]:
    """Return the controls without a name in the browser's accessibility tree."""
    session = page.context.new_cdp_session(page)
    nodes: list[dict[str, Any]] = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    used = {"link", "button", "textbox", "region", "navigation", "img"}
    results = [node for node in nodes if not node["ignored"] and node["role"]["value"] in used]
    assert results
    return [node["role"]["value"] for node in results if not node.get("name", {}).get("value", "").strip()]


# Texts of buttons whose background is darker than the page, or brighter.
BUTTONS = {"Submit", "Log in", "Invite a member", "Get a new token"}
# Colours of all texts and of their backgrounds.
COLOURS = """() => {
    const parse = (text) => text.match(/[\\d.]+/g).map(Number);
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const each = node.parentElement;
        if (!node.textContent.trim() || !each.checkVisibility() || each.closest(".unseen, .skip, noscript")) continue;
        let behind = each;
        while (behind && parse(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
        found.push([node.textContent.trim(), parse(getComputedStyle(each).color),
                    parse(getComputedStyle(behind || document.documentElement).backgroundColor)]);
    }
    return found;
}"""


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_are_readable_in_light_and_dark(page: Page, site: Site, scheme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=scheme)
    log_in(page, site.token)
    for path in PATHS:
        page.goto(path)
        texts = page.evaluate(COLOURS)
        assert len(texts) > 8
        for text, colour, behind in texts:
            assert (sum(behind[:3]) > 382) == (scheme == "light") or "main" in text or text in BUTTONS
            # Success criterion 1.4.3.
            assert contrast(colour, behind) >= 4.5, (path, text, colour, behind)


@pytest.mark.slow
def test_pages_work_without_scripts(browser: Browser, address: str, site: Site) -> None:
    token = add_team(site.database, "No scripts")
    with browser.new_context(base_url=address, java_script_enabled=False) as context:
        page = context.new_page()
        log_in(page, token)
        page.goto("/blue")
        page.get_by_label("Or paste its text").fill(blue("owl", "crow").decode())
        page.get_by_role("button", name="Check only").click()
        assert "1 problem" in page.locator("#verdict").inner_text()
        page.get_by_label("Or paste its text").fill(blue("owl", "lark").decode())
        page.get_by_role("button", name="Check only").click()
        assert page.locator("#verdict").inner_text() == "Valid. It is not submitted yet."
        page.get_by_role("button", name="Submit").click()
        page.wait_for_url(re.compile(r"/submissions/\d+$"))
        assert page.locator("[aria-current='step']").inner_text() == "queue"
        # The page reloads itself while the submission waits.
        assert page.locator("meta[http-equiv='refresh']").count() == 1
        site.work()
        page.wait_for_selector("[aria-current='step'] >> text=scored", timeout=10_000)
        assert page.locator("meta[http-equiv='refresh']").count() == 0


def test_no_script_of_another_is_run(page: Page, site: Site) -> None:
    policy = site.client.get("/").headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    log_in(page, add_team(site.database, "<img src=x onerror=alert(1)>"))
    page.goto("/blue")
    page.get_by_label("Or paste its text").fill(blue("<script>document.title='in'</script>", "owl").decode())
    page.wait_for_selector("#verdict td")
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile(r"/submissions/\d+$"))
    assert page.title() != "in"
    assert page.locator("main script, main img").count() == 0
