"""The charts, each defined once in `charts.yaml`: the page and the figures fill a definition with numbers."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from headstart.output.figures import LINE_STYLES

# Pixels.
HEIGHT, ROW, WIDTH = 280, 22, 2.0
FONT = 12
# Labels of an axis that would touch each other are left out.
CONFIG = {
    "background": None,
    "font": "system-ui, sans-serif",
    "axis": {
        "labelFontSize": FONT,
        "titleFontSize": FONT,
        "titleFontWeight": "normal",
        "labelOverlap": "greedy",
        "labelSeparation": 4,
    },
    "legend": {"labelFontSize": FONT, "labelLimit": 220, "symbolSize": 400},
    "view": {"stroke": None},
}


class Palette(NamedTuple):
    """The colours of a page: variables of its style, for light and dark.

    Attributes:
        lines: Colours of the lines, in the order of `LINE_STYLES`.
        pale: Colour of methods that are not chosen, and of reference lines.
    """

    lines: Sequence[str]
    pale: str


class Mark(NamedTuple):
    """Style of a method, the same in all charts.

    Attributes:
        line: Index of its colour in `LINE_STYLES`.
        dashes: Pixels on and off; none for a solid line.
    """

    line: int
    dashes: list[float]


def marks(count: int) -> list[Mark]:
    """Return a style for each method: those of one colour differ in their dashes, up to 36 methods."""
    styles = len(LINE_STYLES)
    return [
        Mark(i % styles, [WIDTH * each for each in LINE_STYLES[(i + i // styles) % styles].dashes])
        for i in range(count)
    ]


def definitions(count: int, palette: Palette, has_legend: bool = False) -> dict[str, dict[str, Any]]:
    """Define all charts of a page, as Vega-Lite reads them.

    Their numbers are tables with the chart's own name. Parameters are `labels`, the names of methods by their indices,
    and `shown`, the indices of the chosen ones.

    Args:
        count: Number of methods.
        palette: The colours.
        has_legend: Whether lines are explained beside the chart; the page has a legend for all charts.

    Returns:
        The charts, by name: `learning_curves`, `reached`, `improvement`, `aggregate`, and `stability`, whose labels are
        the parts of a setup.
    """
    styles, indices = marks(count), list(range(count))
    legend: dict[str, Any] = {"title": None, "labelExpr": "labels[datum.value]", "values": {"expr": "shown"}}
    legend |= {"symbolType": "stroke", "symbolOpacity": 1}
    filled: dict[str, Any] = {
        "colours": {"domain": indices, "range": [palette.lines[each.line] for each in styles]},
        "dashes": {"domain": indices, "range": [each.dashes or [1, 0] for each in styles]},
        "legend": legend if has_legend else None,
        "pale": palette.pale,
        "first": palette.lines[0],
        **{"height": HEIGHT, "stroke": WIDTH},
    }
    environment = Environment(loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined)
    text = environment.get_template("charts.yaml").render({name: json.dumps(value) for name, value in filled.items()})
    charts: dict[str, dict[str, Any]] = yaml.safe_load(text)["charts"]
    return charts
