"""The pages: every link leads somewhere, and every page is in the index."""

import re
import string
from pathlib import Path

import pytest

from headstart.tests.material.root import ROOT, require_checkout

require_checkout()

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)")
DROPPED = str.maketrans("", "", string.punctuation.replace("-", "").replace("_", ""))


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text())


def anchors(page: Path) -> set[str]:
    """Name the headings as GitHub does."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {heading.strip().lower().translate(DROPPED).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    broken = []
    for path, anchor in LINK.findall(prose(page)):
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(f"{path}#{anchor}")
    return broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    assert broken_links(page) == []


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# One: *two*, three?\n\n```\n# no heading\n```\n")
    page = tmp_path / "page.md"
    page.write_text("[a](other.md#one-two-three) [b](other.md#no-heading) [c](none.md) [d](#here) [e](https://x.org/y)")
    assert broken_links(page) == ["other.md#no-heading", "none.md#", "#here"]


def test_every_page_is_in_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / path).resolve() for path, _ in LINK.findall(index.read_text())}
    assert {page for page in PAGES if page.is_relative_to(ROOT / "docs")} - {index} <= linked
