"""The charts of a page as files for papers, from the same definitions."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from vl_convert import vegalite_to_pdf, vegalite_to_png, vegalite_to_svg

from headstart.output.figures import INK, LINE_STYLES, PALE
from headstart.output.page.charts import Palette, definitions
from headstart.output.page.layout import FONT, Figure, Page
from headstart.output.results_folder import FigureFormat

ON_PAPER = Palette([style.colour for style in LINE_STYLES], pale=PALE, legend=True)
# Width in pixels, and dots per pixel in a PNG.
WIDTH, SCALE = 480, 3
LINES = ("learning_curves", "reached", "by_value", "accuracy_by_value")
AXIS = {"labelFontSize": FONT, "titleFontSize": FONT, "titleFontWeight": "normal", "labelColor": INK, "titleColor": INK}
CONFIG = {"axis": AXIS, "legend": {"labelFontSize": FONT}, "title": {"fontSize": FONT, "fontWeight": "normal"}}


def figure_writers(page: Page, formats: Iterable[FigureFormat]) -> dict[str, Callable[[Path], object]]:
    """Return what writes each chart of a page in each of the formats, by file name.

    Lines are those that the page shows when it is opened.
    """
    charts = {name: chart.to_dict() for name, chart in definitions(len(page.methods), ON_PAPER).items()}
    return {
        f"{figure.name}.{form}": partial(_write, _fill(charts[figure.chart], page, figure), form)
        for figure in page.figures
        for form in formats
    }


def _write(chart: dict[str, Any], form: FigureFormat, path: Path) -> None:
    if form == "png":
        path.write_bytes(vegalite_to_png(chart, scale=SCALE))
    elif form == "pdf":
        path.write_bytes(vegalite_to_pdf(chart))
    else:
        path.write_text(vegalite_to_svg(chart), encoding="utf-8")


def _fill(chart: dict[str, Any], page: Page, figure: Figure) -> dict[str, Any]:
    """Return the definition of a figure with its numbers, as `draw` of page.js fills it."""
    shown = page.shown if figure.chart in LINES else range(len(page.methods))
    values = {"labels": page.methods, "shown": list(shown), **figure.series.values}
    parameters = [{**each, "value": values.get(each["name"], each["value"])} for each in chart["params"]]
    filled = {
        "params": parameters,
        "datasets": {figure.chart: figure.series.rows()},
        "config": {**chart["config"], **CONFIG},
    }
    return {**chart, **filled, "title": figure.about, "width": WIDTH, "height": figure.series.height}
