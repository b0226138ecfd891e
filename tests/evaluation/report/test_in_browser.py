"""The page in the system's Chromium: nothing is fetched, tables sort, methods come and go in all charts, phones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

import pytest

from headstart.evaluation.report.report import report
from headstart.tests.material.browsers import contrast, needs_chromium, open_browser
from headstart.tests.material.report_runs import EVIL, traces
from headstart.tests.material.runs import write_runs

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

METHODS = ("baseline", *EVIL[:3], "x" * 300, *(f"method {number}" for number in range(3)))

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write a page of two settings and eight methods, and give its address."""
    folder = tmp_path_factory.mktemp("browser")
    counts = {name: traces(seed, len(METHODS)) for seed, name in enumerate(("pets", "flowers"))}
    named = {name: {"correct": own, "dataset": name} for name, own in counts.items()}
    runs = write_runs(folder / "runs", named, limit=60, methods=METHODS)
    return report(str(runs), output=str(folder / "page.html")).as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """Open the page, and check at the end that it said and fetched nothing."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    messages: list[str] = []
    fetched: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: fetched.append(request.url))
    page.goto(address)
    page.get_by_role("button", name="open all").click()
    page.wait_for_selector("body[data-drawn='7']")
    yield page
    page.close()
    assert messages == []
    assert {url for url in fetched if not url.startswith("data:")} == {address}


def column(page: Page, number: int) -> list[str]:
    cells = page.locator("#setting-1 .wide").first.locator(f"tbody tr > :nth-child({number})")
    return [text.strip() for text in cells.all_text_contents()]


def test_a_table_sorts_by_click_and_by_key(page: Page) -> None:
    before = column(page, 1)
    header = page.locator("#setting-1 .wide").first.locator("thead button").nth(5)
    means = [float(text.split(" ")[0]) for text in column(page, 6)]
    assert means == sorted(means)
    header.click()
    header.click()
    assert column(page, 1) == before[::-1]
    assert page.locator("th[aria-sort='descending']").count() == 1
    header.press("Enter")
    assert column(page, 1) == before
    page.locator("#setting-1 .wide").first.locator("thead button").nth(0).press("Space")
    assert column(page, 1) != before
    assert sorted(column(page, 1)) == sorted(before)


def test_methods_come_and_go_in_all_charts(page: Page) -> None:
    figures = [f"setting-{number}-{kind}" for number in (1, 2) for kind in ("learning_curves", "reached")]
    chosen: list[tuple[Callable[[], None], int]] = [
        (page.locator("#legend input").first.uncheck, 5),
        (page.get_by_role("button", name="all", exact=True).click, 8),
        (page.get_by_role("button", name="first 6").click, 6),
    ]
    for choose, count in chosen:
        choose()
        selector = "[data-figure='setting-2-reached'] .mark-line path"
        page.wait_for_function(f'document.querySelectorAll("{selector}").length == {count}')
        lines = [page.locator(f"[data-figure='{figure}'] .mark-line path").count() for figure in figures]
        assert lines == [count] * 4
        # Bands are drawn of two methods alone.
        assert page.locator("[data-figure='setting-1-learning_curves'] .mark-area path").count() == 2


def test_methods_and_settings_are_filtered_in_tables(page: Page) -> None:
    assert column(page, 1) != column(page, 1)[:1]
    page.locator("#legend input").first.uncheck()
    scores = page.locator("#setting-1 .wide").first.locator("tbody tr:visible")
    assert scores.count() == len(METHODS)
    page.check("#in-tables")
    assert scores.count() == 5
    assert "baseline" not in scores.locator("th").all_text_contents()
    page.fill("#filter", "Resnet  FLOW")
    assert page.locator("output").text_content() == "1 of 2 settings, by: Resnet  FLOW"
    for visible in ("#settings h3:visible", "#overview tbody tr:visible", "#sensitivity table:visible"):
        [text] = page.locator(visible).all_text_contents()
        assert "flowers" in text
    page.fill("#filter", "")
    assert page.locator("#settings h3:visible").count() == 2
    charts = page.locator("#settings .chart svg").evaluate_all("(all) => all.map((each) => each.clientWidth)")
    assert min(charts) > 100
    page.get_by_role("button", name="all", exact=True).click()
    assert scores.count() == len(METHODS)


def test_a_phone_shows_the_answer_first_and_main_columns_without_scrolling(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    page.wait_for_selector("body[data-drawn]")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    first = page.locator("#answers p").first
    assert first.evaluate("(each) => each.getBoundingClientRect().bottom") <= 844
    # A method of this page has a name of 300 characters, which breaks.
    for box in page.locator("#overview .wide, #setting-1 .wide").all():
        assert box.evaluate("(each) => each.scrollWidth <= each.clientWidth"), box.get_attribute("aria-label")
    before = page.locator("#setting-1 thead th:visible").count()
    page.locator("#setting-1 .more").first.click()
    assert page.locator("#setting-1 thead th:visible").count() > before

    # The heads of tables break between words alone.
    broken = page.locator("thead button:visible").evaluate_all("""(heads) => heads.flatMap((head) => {
        const walker = document.createTreeWalker(head, NodeFilter.SHOW_TEXT), words = [];
        while (walker.nextNode())
            for (const match of walker.currentNode.data.matchAll(/\\S+/g)) {
                const range = document.createRange();
                range.setStart(walker.currentNode, match.index);
                range.setEnd(walker.currentNode, match.index + match[0].length);
                if (range.getClientRects().length > 1) words.push(match[0]);
            }
        return words;
    })""")
    assert broken == []

    # Labels of an axis do not touch each other.
    touching = page.locator(".chart .role-axis-label").evaluate_all("""(axes) => axes.flatMap((axis) => {
        const boxes = [...axis.querySelectorAll("text")].filter((each) => getComputedStyle(each).opacity !== "0")
            .map((each) => [each.textContent, each.getBoundingClientRect()]);
        return boxes.flatMap(([one, a], i) => boxes.slice(i + 1)
            .filter(([, b]) => a.left < b.right && b.left < a.right && a.top < b.bottom - 1 && b.top < a.bottom - 1)
            .map(([other]) => `${one} and ${other}`));
    })""")
    assert page.locator(".chart .role-axis-label text").count() > 20
    assert touching == []


def test_settings_are_folded_until_they_are_asked_for(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(address)
    page.wait_for_selector("body[data-drawn]")
    assert page.locator("#setting-2 .chart svg").count() == 0
    page.locator("#overview a[href='#setting-2']").first.click()
    page.wait_for_selector("#setting-2[open] .chart svg")
    page.get_by_role("button", name="close all").click()
    page.fill("#filter", "pets")
    [shown] = page.locator("details.part:visible").all()
    assert shown.evaluate("(each) => each.open")
    assert "pets" in (shown.locator("h3").text_content() or "")
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_are_readable_in_light_and_dark(page: Page, scheme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=scheme)
    read = """(selector) => [...document.querySelectorAll(selector)].map((each) => {
        const style = getComputedStyle(each);
        return (each instanceof SVGElement ? style.fill : style.color).match(/[\\d.]+/g).map(Number);
    })"""
    paper = page.evaluate("getComputedStyle(document.documentElement).backgroundColor.match(/[\\d.]+/g).map(Number)")
    assert (sum(paper) < 200) == (scheme == "dark")
    for selector in ("p", "a", "caption", "td", "figcaption", ".chart svg text", "label"):
        colours = page.evaluate(read, selector)
        assert colours
        # Success criterion 1.4.3.
        assert min(contrast(colour, paper) for colour in colours) >= 4.5, selector
