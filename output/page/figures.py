"""The charts of a page as files for papers, which vl-convert draws from the same definitions and numbers."""

from collections.abc import Callable, Iterable
from csv import DictReader
from functools import partial
from pathlib import Path
from typing import Any

import vl_convert

from headstart.output.figures import LINE_STYLES, PALE, setting_in_words, titles
from headstart.output.page.charts import CONFIG, Palette, definitions
from headstart.output.page.layout import Figure, Page
from headstart.output.results_folder import FigureFormat

ON_PAPER = Palette([style.colour for style in LINE_STYLES], pale=PALE)
# Pixels of the axes, and those of a PNG file for each of them.
WIDTH, NAMES_WIDTH, SCALE = 440, 220, 3


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
    size = {"width": WIDTH, "height": series.height, "padding": 8}
    return {**chart, **size, "title": title, "params": parameters, "datasets": {figure.chart: rows}, "config": CONFIG}


def _write(specification: dict[str, Any], form: FigureFormat, path: Path) -> None:
    if form == "png":
        path.write_bytes(vl_convert.vegalite_to_png(specification, scale=SCALE))
    elif form == "pdf":
        path.write_bytes(vl_convert.vegalite_to_pdf(specification))
    else:
        path.write_text(vl_convert.vegalite_to_svg(specification), encoding="utf-8")
