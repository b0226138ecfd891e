"""Pages and charts by themselves: looks that differ, definitions that Vega-Lite takes, texts that end nothing."""

from pathlib import Path

from headstart.output.page.charts import method_styles
from headstart.output.page.layout import Page, Part, Section, render
from headstart.output.tables import Table
from headstart.tests.material import pages


def page(*parts: Part) -> Page:
    return Page("A <title>", ["One & two."], ["a", "</script>"], [0, 1], [Section("one", "One", parts=parts)])


def write(tmp_path: Path, shown: Page) -> pages.Page:
    path = tmp_path / "page.html"
    path.write_text(render(shown), encoding="utf-8")
    return pages.Page(path)


def test_methods_look_different() -> None:
    looks = [(style.colour, tuple(style.dashes)) for style in method_styles(36)]
    assert len(set(looks)) == 36
    # Colours go round before they come again.
    assert [colour for colour, _ in looks[:6]] == [0, 1, 2, 3, 4, 5]


def test_columns_of_dashes_alone_are_left_out(tmp_path: Path) -> None:
    table = Table("T", [["a", "b", "c", "d"], ["–", "–", "", "–"], ["–", "–", "2", "1"]])
    none = Table("none", [["a", "b"]])
    result = write(tmp_path, page(Part(tables=[table, none]))).tables
    assert result == {"T": [["a", "c", "d"], ["–", "–", "–"], ["–", "2", "1"]], "none": [["a", "b"]]}


def test_texts_are_as_they_are(tmp_path: Path) -> None:
    evil = '</code></pre></script><b>"it\'s" & <!-- {{ 1 }}\n  two'
    table = Table(evil, [[evil, "b"], [evil, evil]], notes=[evil])
    result = write(tmp_path, page(Part(evil, evil, [evil], [table])))
    assert result.tables == {evil: [[evil, "b"], [evil, evil]]}
    assert result.texts.count(evil) == 3
    assert result.tags.count("script") == 3
    assert not {"b", "i", "u"} & set(result.tags)
    assert result.content["methods"] == ["a", "</script>"]
