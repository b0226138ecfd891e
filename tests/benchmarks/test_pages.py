"""The pages of measurements name every benchmark, and are made of what the benchmarks return."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from headstart.output.errors import UserError
from headstart.tests.material.root import ROOT, require_checkout

require_checkout()
pages = import_module("headstart.benchmarks.pages")


def quick() -> str:
    """How quick is it?

    Details.
    """
    return "twice"


def shares() -> Iterator[tuple[str, dict[str, float]]]:
    """Shares of something."""
    yield "first", {"held": 0.951, "width": 0.2}
    yield "second", {"held": 1.0, "width": 0.1}
    yield "third", {"power": 0.5}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the benchmarks by quick ones."""
    found = {"speed": {ModuleType("a", "Quick things.\n"): [quick]}, "coverage": {ModuleType("b", "Few.\n"): [shares]}}
    monkeypatch.setattr(pages, "modules", lambda room, _: found[room])


@pytest.mark.usefixtures("made")
def test_answers_and_shares_are_written(tmp_path: Path) -> None:
    pages.speed(output=tmp_path / "speed.md")
    assert "## Quick things\n\n| question" in (tmp_path / "speed.md").read_text()
    assert "| How quick is it? | `quick` | twice |" in (tmp_path / "speed.md").read_text()
    pages.coverage(output=tmp_path / "coverage.md")
    text = (tmp_path / "coverage.md").read_text()
    assert "| case | held | width |\n| --- | ---: | ---: |\n| first | 95.1 | 20.0 |\n| second | 100.0 | 10.0 |" in text
    assert "| case | power |\n| --- | ---: |\n| third | 50.0 |" in text


@pytest.mark.usefixtures("made")
def test_some_are_printed_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pages.speed(["quick"], tmp_path / "speed.md")
    assert "twice" in capsys.readouterr().out
    assert not (tmp_path / "speed.md").exists()
    with pytest.raises(UserError, match=r"only: there is no benchmark 'slow'; there are quick"):
        pages.speed(["slow"])


@pytest.mark.parametrize(("room", "names"), [("speed", pages.SPEED), ("coverage", pages.COVERAGE)])
def test_the_pages_have_every_benchmark(room: str, names: tuple[str, ...]) -> None:
    text = (ROOT / "docs" / "results" / f"{room}.md").read_text()
    found = [each for benchmarks in pages.modules(room, names).values() for each in benchmarks]
    assert [each.__name__ for each in found if f"`{each.__name__}`" not in text] == []
    assert [pages.title_of(each) for each in found if pages.title_of(each) not in text] == []
