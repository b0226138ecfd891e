"""Pages and charts by themselves: looks that differ, definitions that Vega-Lite takes, texts that end nothing."""

import re
from pathlib import Path

import pytest
from PIL import Image

from headstart.output.page.charts import definitions, marks
from headstart.output.page.figures import figure_writers
from headstart.output.page.layout import ON_PAGE, Figure, Page, Part, Section, Series, Text, render
from headstart.output.tables import Table
from headstart.tests.material import pages

NUMBERS = {
    "learning_curves": "method,samples,mean,low,high\n0,1,50,40,60\n0,2,70,60,80",
    "reached": "method,samples,share\n0,1,0\n0,9,100",
    "improvement": "method,estimate,low,high\n0,5,4,6",
    "aggregate": "method,estimate,low,high\n0,0.9,0.8,1",
    "stability": "part,estimate,low,high\n0,0.5,0.4,0.6",
}
VALUES = {"first": 1.0, "last": 9.0, "threshold": 80.0, "labels": ["a part"]}


def page(*parts: Part) -> Page:
    return Page("A <title>", ["One & two."], ["a", "</script>"], [0, 1], [Section("one", "One", parts=parts)])


def write(tmp_path: Path, shown: Page) -> pages.Page:
    path = tmp_path / "page.html"
    path.write_text(render(shown), encoding="utf-8")
    return pages.Page(path)


def test_methods_look_different() -> None:
    looks = [(look.line, tuple(look.dashes)) for look in marks(36)]
    assert len(set(looks)) == 36
    # Colours go round before they come again.
    assert [line for line, _ in looks[:6]] == [0, 1, 2, 3, 4, 5]


@pytest.mark.slow
@pytest.mark.parametrize("name", NUMBERS)
def test_charts_are_files_and_parts_of_the_page(tmp_path: Path, name: str) -> None:
    figure = Figure("mine", name, "seen", "about", Series(NUMBERS[name], VALUES, height=120))
    shown = page(Part(figures=[figure]))
    writers = figure_writers(shown, ("png", "pdf", "svg"))
    for file, writer in writers.items():
        writer(tmp_path / file)
    assert (tmp_path / "mine.pdf").read_bytes().startswith(b"%PDF")
    svg = (tmp_path / "mine.svg").read_text()
    assert "</script>" not in svg
    assert {">seen<", ">About<"} <= set(re.findall(">[^<]*<", svg))
    with Image.open(tmp_path / "mine.png") as picture:
        assert picture.height > 300
    content = write(tmp_path, shown).content
    on_paper = definitions(2, ON_PAGE)[name]
    assert set(content["charts"]) == {name}
    assert content["charts"][name]["params"] == on_paper["params"]
    assert content["figures"]["mine"] == {"chart": name, "data": NUMBERS[name], "values": VALUES, "height": 120}


def test_columns_of_dashes_alone_are_left_out(tmp_path: Path) -> None:
    table = Table("T", [["a", "b", "c", "d"], ["–", "–", "", "–"], ["–", "–", "2", "1"]])
    none = Table("none", [["a", "b"]])
    result = write(tmp_path, page(Part(tables=[table, none]))).tables
    assert result == {"T": [["a", "c", "d"], ["–", "–", "–"], ["–", "2", "1"]], "none": [["a", "b"]]}


def test_texts_are_as_they_are(tmp_path: Path) -> None:
    evil = '</code></pre></script><b>"it\'s" & <!-- {{ 1 }}\n  two'
    table = Table(evil, [[evil, "b"], [evil, evil]], notes=[evil])
    result = write(tmp_path, page(Part(evil, evil, [evil], [table], [], [Text(evil, evil)], [Text(evil, evil)])))
    assert result.tables == {evil: [[evil, "b"], [evil, evil]]}
    assert result.texts.count(evil) == 7
    assert result.tags.count("script") == 3
    assert not {"b", "i", "u"} & set(result.tags)
    assert result.content["methods"] == ["a", "</script>"]
