"""Documentation pages: every link has a target, and every page is in the index."""

import re
import string
from pathlib import Path

from headstart import datamodules
from headstart.datamodules import PhotoSource
from headstart.tests.material.root import ROOT, require_checkout

require_checkout()

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)")
PUNCTUATION = str.maketrans("", "", string.punctuation.replace("-", "").replace("_", ""))


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text())


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {heading.strip().lower().translate(PUNCTUATION).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    broken = []
    for path, anchor in LINK.findall(prose(page)):
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(f"{path}#{anchor}")
    return broken


def test_links_lead_to_files_and_headings() -> None:
    assert {page.name: broken for page in PAGES if (broken := broken_links(page))} == {}


def test_every_page_is_in_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / path).resolve() for path, _ in LINK.findall(index.read_text())}
    assert {page for page in PAGES if page.is_relative_to(ROOT / "docs")} - {index} <= linked


def test_the_protocol_states_the_order_of_the_photos_of_every_source() -> None:
    """An ordering is a permutation of this order, so other software needs the order to repeat a run."""
    exported = [getattr(datamodules, name) for name in dir(datamodules)]
    sources = {kind for kind in exported if issubclass(kind, PhotoSource)} - {PhotoSource}
    page = (ROOT / "docs" / "protocol.md").read_text()
    section = page.partition("### The order of the photos")[2].partition("###")[0]
    assert {kind.__name__ for kind in sources} <= set(re.findall(r"`(\w+)`", section))
    assert "protocol.md#the-order-of-the-photos" in (ROOT / "docs" / "your_own.md").read_text()
