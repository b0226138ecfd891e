"""What a page consists of, and how it becomes one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from vl_convert import javascript_bundle

from headstart.output.figures import LINE_STYLES, ON_DARK
from headstart.output.page.charts import HEIGHT, Palette, definitions, marks
from headstart.output.version import describe_version

# Variables of the page's style, which is light or dark.
ON_PAGE = Palette([f"var(--line-{place})" for place in range(len(LINE_STYLES))], pale="var(--pale)", legend=False)
FONT = 12
CONFIG = {
    "background": None,
    "font": "system-ui, sans-serif",
    "axis": {"labelFontSize": FONT, "titleFontSize": FONT, "titleFontWeight": "normal"},
    "view": {"stroke": None},
}


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes:
        text: What is read.
        value: What the column is sorted by; where it is None, the number that the text begins with, or the text.
        mark: Number of the method whose line is drawn beside it.
        link: Identifier of the part that it leads to.
        tint: How much it is coloured, in per cent.
    """

    text: str
    value: float | None = None
    mark: int | None = None
    link: str = ""
    tint: int | None = None


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        title: Its title.
        hint: What is said of it where a pointer rests on it.
        words: Whether it holds words, which stand at the left.
    """

    title: str
    hint: str = ""
    words: bool = False


@dataclass(frozen=True)
class Table:
    """A table: its title, columns, rows, and what stands below it."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


@dataclass(frozen=True)
class Series:
    """What a chart is fed.

    Attributes:
        data: Its numbers, CSV.
        values: Its parameters, such as the ends of its axes, by their names.
        height: Pixels.
    """

    data: str
    values: Mapping[str, Any] = field(default_factory=dict)
    height: int = HEIGHT


@dataclass(frozen=True)
class Figure:
    """A chart with its numbers.

    Attributes:
        name: Unlike that of all other figures; the page finds it by this, and files begin with it.
        chart: One of those that `charts.definitions` gives.
        caption: What is seen.
        about: Of what it is seen, for who does not see the page around it.
        series: What it is fed.
    """

    name: str
    chart: str
    caption: str
    about: str
    series: Series


@dataclass(frozen=True)
class Text:
    """A text as it is, such as a command or a file, and what it is."""

    title: str
    text: str


@dataclass(frozen=True)
class Part:
    """A part of a section; what it has not is left out."""

    title: str = ""
    id: str = ""
    remarks: Sequence[str] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    commands: Sequence[Text] = ()
    files: Sequence[Text] = ()


@dataclass(frozen=True)
class Section:
    """A section of the page: its identifier, title, paragraphs and parts."""

    id: str
    title: str
    paragraphs: Sequence[str] = ()
    parts: Sequence[Part] = ()


@dataclass(frozen=True)
class Page:
    """A page.

    Attributes:
        title: Its title.
        protocol: The paragraphs that it begins with.
        methods: Names of the methods; a method's number is its place.
        shown: Numbers of those that are chosen when it is opened.
        sections: What follows.
    """

    title: str
    protocol: Sequence[str]
    methods: Sequence[str]
    shown: Sequence[int]
    sections: Sequence[Section]

    @property
    def figures(self) -> list[Figure]:
        """All figures, in the order of the page."""
        return [figure for section in self.sections for part in section.parts for figure in part.figures]


@cache
def _library() -> str:
    """Give the JavaScript that draws the charts, which nothing in it can end."""
    return javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")


def _without_empty_columns(table: Table) -> Table:
    """Leave out columns that hold dashes alone, but for the first."""
    kept = [
        place for place in range(len(table.columns)) if not place or {row[place].text for row in table.rows} != {"–"}
    ]
    rows = [[row[place] for place in kept] for row in table.rows]
    return replace(table, columns=[table.columns[place] for place in kept], rows=rows)


def render(page: Page) -> str:
    """Give a page as HTML; whatever is read in it is escaped."""
    folder = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=folder, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    # Quotes need no escaping between tags, and commands have many.
    environment.filters["filled"] = _without_empty_columns
    environment.filters["plain"] = lambda text: Markup(escape(text, quote=False))
    charts = {figure.chart for figure in page.figures}
    content = {
        "methods": page.methods,
        "shown": page.shown,
        "config": CONFIG,
        "charts": {
            name: chart.to_dict() for name, chart in definitions(len(page.methods), ON_PAGE).items() if name in charts
        },
        "figures": {each.name: {"chart": each.chart, **vars(each.series)} for each in page.figures},
    }
    return environment.get_template("page.html").render(
        **vars(page),
        light=[style.colour for style in LINE_STYLES],
        dark=ON_DARK,
        marks=marks(len(page.methods)),
        content=content,
        library=Markup(_library()),
        version=describe_version(),
    )
