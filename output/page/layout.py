"""The parts of a page, and its rendering as one HTML file that needs nothing else."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from csv import DictReader
from dataclasses import dataclass, field
from functools import cache, partial
from html import escape
from pathlib import Path
from typing import Any

import vl_convert
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from headstart.output.figures import LINE_STYLES, ON_DARK, PALE, setting_in_words, titles
from headstart.output.page.charts import CHART_HEIGHT, CONFIG, Palette, definitions, method_styles
from headstart.output.results_folder import FigureFormat
from headstart.output.tables import Table
from headstart.output.version import describe_version

# Variables of the page's style, which is light or dark.
ON_PAGE = Palette([f"var(--line-{i})" for i in range(len(LINE_STYLES))], pale="var(--pale)")
ON_PAPER = Palette([style.colour for style in LINE_STYLES], pale=PALE)
# Pixels of the axes, and those of a PNG file for each of them.
FILE_WIDTH, NAMES_WIDTH, SCALE = 440, 220, 3
# The columns that a phone shows at once, where a table does not say which are essential.
MOST_COLUMNS = 3
# Headers of the columns that name methods, and of those that are aligned to the left.
NAMING = ("method", "better", "worse", "best")
WORDS = (*NAMING, "group", "tied for first")
# Between the ends of an interval: a narrow column breaks before an interval, not within it.
COMMA = ",\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class Series:
    """Data of a chart.

    Attributes:
        data: Its numbers, CSV; what is missing is empty.
        values: Its parameters, such as the ends of its axes, by their names.
        height: Pixels.
    """

    data: str
    values: Mapping[str, Any] = field(default_factory=dict)
    height: int = CHART_HEIGHT


@dataclass(frozen=True)
class Figure:
    """A chart with its numbers.

    Attributes:
        name: Unique name, by which the page finds it, and the beginning of its file names.
        chart: Name of one of `charts.definitions`.
        caption: Caption on the page.
        about: Title of the file, which explains it without the page around it.
        series: Its data.
    """

    name: str
    chart: str
    caption: str
    about: str
    series: Series


@dataclass(frozen=True)
class Part:
    """A part of a section; empty parts of it are left out.

    Attributes:
        title: Its title.
        id: Its identifier, to which links lead.
        remarks: Remarks below the title.
        tables: Its tables.
        figures: Its charts.
        setting: Name of the setting that it shows alone, by which it is filtered.
    """

    title: str = ""
    id: str = ""
    remarks: Sequence[str] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    setting: str = ""


@dataclass(frozen=True)
class Section:
    """A section of the page.

    Attributes:
        id: Its identifier.
        title: Its title.
        definitions: Paragraphs on what its numbers mean, which are folded at its end.
        parts: Its parts.
    """

    id: str
    title: str
    definitions: Sequence[str] = ()
    parts: Sequence[Part] = ()


@dataclass(frozen=True)
class Page:
    """A page.

    Attributes:
        title: Its title.
        answers: What it says, in a sentence or some, for each kind of results; they stand first.
        methods: Names of the methods, which are referred to by their indices.
        shown: Indices of the methods that are chosen when it is opened.
        sections: Its sections.
        warnings: Warnings that stand beside the answers.
        hints: Tooltips of columns, by their headers.
    """

    title: str
    answers: Sequence[str]
    methods: Sequence[str]
    shown: Sequence[int]
    sections: Sequence[Section]
    warnings: Sequence[str] = ()
    hints: Mapping[str, str] = field(default_factory=dict)

    @property
    def figures(self) -> list[Figure]:
        """All figures, in the order of the page."""
        return [figure for section in self.sections for part in section.parts for figure in part.figures]


@cache
def _library() -> str:
    """Return the JavaScript that draws the charts, without closing tags that would end it."""
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")


def _arrange(table: Table, page: Page, links: Mapping[str, str]) -> dict[str, Any]:
    """Return a table as the template shows it, without columns that hold only dashes; the first column stays.

    Beside the name of a method its line is drawn; an addition in brackets may follow the name.
    """
    header, *rows = table.rows
    numbers = {name: index for index, name in enumerate(page.methods)}
    essential = table.essential or header[:MOST_COLUMNS]
    filled = [i for i in range(len(header)) if i == 0 or not rows or {row[i] for row in rows} - {"", "–"}]

    def cell(title: str, text: str) -> dict[str, Any]:
        if title in NAMING:
            return {"text": text, "method": numbers.get(text, numbers.get(text.rpartition(" (")[0])), "link": None}
        shown = text.replace(", ", COMMA) if "[" in text else text or "–"
        return {"text": shown, "method": None, "link": links.get(text)}

    columns = [
        {"title": each, "hint": page.hints.get(each), "words": each in WORDS, "is_extra": each not in essential}
        for each in header
    ]
    return {
        **vars(table),
        "columns": [columns[i] for i in filled],
        "rows": [[cell(header[i], row[i]) for i in filled] for row in rows],
    }


def render(page: Page) -> str:
    """Return a page as HTML; all texts in it are escaped."""
    folder = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=folder, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    parts = [part for section in page.sections for part in section.parts]
    links = {part.title: part.id for part in parts if part.id}
    environment.filters["arranged"] = partial(_arrange, page=page, links=links)
    # Long names break after an underscore, not within a word.
    environment.filters["breakable"] = lambda text: Markup(escape(text).replace("_", "_<wbr>"))

    charts = {figure.chart for figure in page.figures}
    content = {
        "methods": page.methods,
        "shown": page.shown,
        "config": CONFIG,
        "charts": {name: chart for name, chart in definitions(len(page.methods), ON_PAGE).items() if name in charts},
        "figures": {each.name: {"chart": each.chart, **vars(each.series)} for each in page.figures},
    }

    return environment.get_template("page.html").render(
        **vars(page),
        settings=len({part.setting for part in parts} - {""}),
        light=[style.colour for style in LINE_STYLES],
        dark=ON_DARK,
        styles=method_styles(len(page.methods)),
        content=content,
        library=Markup(_library()),
        version=describe_version(),
    )


def figure_writers(page: Page, formats: Iterable[FigureFormat]) -> dict[str, Callable[[Path], object]]:
    """Return what writes each chart of a page in each of the formats, by file name.

    Lines are those that the page shows when it is opened.
    """
    charts = definitions(len(page.methods), ON_PAPER, True)
    return {
        f"{figure.name}.{form}": partial(_write, specification(page, figure, charts[figure.chart]), form)
        for figure in page.figures
        for form in formats
    }


def specification(page: Page, figure: Figure, chart: dict[str, Any]) -> dict[str, Any]:
    """Return a chart's definition with a figure's numbers, as Vega-Lite draws it.

    Args:
        page: The page of the figure.
        figure: The figure.
        chart: The definition of its chart.
    """
    series = figure.series
    values = {"labels": titles(page.methods), "shown": page.shown, "names_width": NAMES_WIDTH, **series.values}
    parameters = [{**each, "value": values.get(each["name"], each["value"])} for each in chart["params"]]
    rows = [{name: float(text) for name, text in row.items()} for row in DictReader(series.data.splitlines())]

    about = [setting_in_words(figure.about)] if figure.about else []
    title = {"text": figure.caption, "subtitle": about, "anchor": "start", "frame": "group", "fontWeight": "normal"}
    size = {"width": FILE_WIDTH, "height": series.height, "padding": 8}
    return {**chart, **size, "title": title, "params": parameters, "datasets": {figure.chart: rows}, "config": CONFIG}


def _write(specification: dict[str, Any], form: FigureFormat, path: Path) -> None:
    if form == "png":
        path.write_bytes(vl_convert.vegalite_to_png(specification, scale=SCALE))
    elif form == "pdf":
        path.write_bytes(vl_convert.vegalite_to_pdf(specification))
    else:
        path.write_text(vl_convert.vegalite_to_svg(specification), encoding="utf-8")
