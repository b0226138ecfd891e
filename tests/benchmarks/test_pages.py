"""The pages of measurements name every benchmark, and are made of what the benchmarks return."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from headstart.output.errors import UserError
from headstart.tests.material.root import ROOT, require_checkout

require_checkout()


@pytest.fixture(scope="module")
def pages() -> Any:
    """Return the module, which imports all benchmarks."""
    return import_module("headstart.benchmarks.pages")


def quick() -> str:
    """How quick is it?

    Details.
    """
    return "twice"


def shares() -> Iterator[tuple[str, dict[str, float]]]:
    """Shares of something."""
    yield "first", {"held": 0.951, "width": 0.2}
    yield "second", {"held": 1.0, "width": 0.1}


def test_answers_and_shares_are_written_or_some_are_printed(
    pages: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pages.speeds, "SECTIONS", {"Speed": [quick]})
    for module in pages.COVERAGE:
        monkeypatch.setattr(module, "BENCHMARKS", [shares] if module is pages.COVERAGE[0] else [])
    pages.speed(["quick"], tmp_path / "speed.md")
    assert "twice" in capsys.readouterr().out
    assert not (tmp_path / "speed.md").exists()
    with pytest.raises(UserError, match=r"only: there is no benchmark 'slow'; there are quick"):
        pages.speed(["slow"])

    pages.speed(output=tmp_path / "speed.md")
    assert "| How quick is it? | `quick` | twice |" in (tmp_path / "speed.md").read_text()
    pages.coverage(output=tmp_path / "coverage.md")
    text = (tmp_path / "coverage.md").read_text()
    assert "| case | held | width |\n| --- | ---: | ---: |\n| first | 95.1 | 20.0 |\n| second | 100.0 | 10.0 |" in text


def test_the_pages_have_every_benchmark(pages: Any) -> None:
    coverage = {pages.title_of(module): module.BENCHMARKS for module in pages.COVERAGE}
    for page, sections in (("speed", pages.speeds.SECTIONS), ("coverage", coverage)):
        text = (ROOT / "docs" / "results" / f"{page}.md").read_text()
        every = [benchmark for benchmarks in sections.values() for benchmark in benchmarks]
        assert [benchmark.__name__ for benchmark in every if f"`{benchmark.__name__}`" not in text] == []
        assert [title for title in [*sections, *map(pages.title_of, every)] if title not in text] == []
