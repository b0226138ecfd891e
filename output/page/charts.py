"""Definitions of the charts, which the page fills with the data of every setting."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import altair as alt

from headstart.output.figures import LINE_STYLES

# Height of a chart, height of a row and width of a line, in pixels.
HEIGHT, ROW, WIDTH = 280, 22, 2.0
# Only the first two lines, the baseline and the best other method, have bands: more would overlap.
MOST_BANDS, BAND_OPACITY = 2, 0.14
FONT = 12
# Colours are variables of the page's style, which is light or dark. The pale one is that of hidden methods and of
# reference lines.
COLOURS, PALE = [f"var(--line-{index})" for index in range(len(LINE_STYLES))], "var(--pale)"
# `labelOverlap` leaves out labels of an axis that would touch each other.
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


class MethodStyle(NamedTuple):
    """Style of the line of a method, the same in all charts.

    Attributes:
        colour: Index of its colour in `LINE_STYLES`.
        dashes: Pixels on and off; none for a solid line.
    """

    colour: int
    dashes: list[float]


def method_styles(count: int) -> list[MethodStyle]:
    """Return different styles for up to 36 methods: styles with the same colour have different dashes."""
    styles = len(LINE_STYLES)
    return [
        MethodStyle(i % styles, [WIDTH * dash for dash in LINE_STYLES[(i + i // styles) % styles].dashes])
        for i in range(count)
    ]


def definitions(count: int) -> dict[str, dict[str, Any]]:
    """Return the Vega-Lite specifications of all charts of a page.

    Each chart reads the data set that has its name. The parameters are `labels`, the names of the methods, and
    `shown`, the indices of the methods to show.

    Args:
        count: Number of methods.

    Returns:
        The charts, by name: `learning_curves`, `reached`, `improvement` and `aggregate`.
    """
    lines = _lines(method_styles(count))
    colour = alt.condition(_is_shown(), lines["color"], alt.value(PALE))
    # Titles are split into lines that fit on a phone.
    aggregate_title = ["Samples to criterion,", "1 being the mean of all methods"]
    charts = {
        "learning_curves": _learning_curves(lines),
        "reached": _reached(lines),
        "improvement": _forest("improvement", ["Improvement over the baseline, %"], 0, colour),
        "aggregate": _forest("aggregate", aggregate_title, 1, colour),
    }
    return {name: chart.to_dict() for name, chart in charts.items()}


def _learning_curves(lines: dict[str, Any]) -> alt.LayerChart:
    shown = _chart("learning_curves").transform_filter(_is_shown())
    samples, colour = _samples(), lines["color"]
    accuracy = alt.Y("mean:Q", title="Accuracy, %", scale=alt.Scale(domain=_between("lowest", "highest"), zero=False))
    threshold = alt.Chart(alt.sequence(1)).transform_calculate(threshold="threshold")
    return _layered(
        shown.transform_filter(f"indexof(shown, datum.method) < {MOST_BANDS}")
        .mark_area(opacity=BAND_OPACITY)
        .encode(x=samples, y="low:Q", y2="high:Q", color=colour, tooltip=_name()),
        shown.mark_line(strokeWidth=WIDTH).encode(x=samples, y=accuracy, tooltip=_name(), **lines),
        threshold.mark_rule(color=PALE, strokeDash=[6, 4]).encode(y="threshold:Q"),
        first=1,
        last=2,
        lowest=0,
        highest=100,
        threshold=80,
    )


def _reached(lines: dict[str, Any]) -> alt.LayerChart:
    shown = _chart("reached").transform_filter(_is_shown())
    share = alt.Y("share:Q", title="Orderings that met the criterion, %", scale=alt.Scale(domain=[0, 100]))
    steps = shown.mark_line(interpolate="step-after", strokeWidth=WIDTH)
    return _layered(steps.encode(x=_samples(), y=share, tooltip=_name(), **lines), first=1, last=2)


def _forest(
    name: str,
    title: list[str],
    reference: float,
    colour: Any,  # noqa: ANN401 - whatever Altair takes for a colour
) -> alt.LayerChart:
    """Define a forest plot: an estimate with its interval for each method, and a line at a reference."""
    numbers = _chart(name)
    axis = alt.Axis(labelExpr="labels[datum.value]", labelLimit=alt.ExprRef("names_width"), ticks=False, domain=False)
    shared = {"y": alt.Y("method:O", title=None, sort=None, axis=axis), "color": colour}
    tooltip = [_name(), alt.Tooltip("estimate:Q", format=".4~g")]
    return _layered(
        alt.Chart(alt.sequence(1)).mark_rule(color=PALE).encode(x=alt.XDatum(reference, type="quantitative")),
        numbers.mark_rule(strokeWidth=WIDTH).encode(
            x=alt.X("low:Q", title=title, scale=alt.Scale(zero=False)), x2="high:Q", tooltip=tooltip, **shared
        ),
        numbers.mark_point(filled=True, opacity=1, size=60).encode(x="estimate:Q", tooltip=tooltip, **shared),
        names_width=220,
    )


def _chart(name: str) -> alt.Chart:
    """Return a chart, without a mark, of the named data set; its column `method` has the indices of the labels."""
    return alt.Chart(alt.NamedData(name=name)).transform_calculate(name="labels[datum.method]")


def _layered(*layers: alt.Chart, **parameters: Any) -> alt.LayerChart:
    """Layer charts, with parameters and their values until the charts are filled."""
    named = [alt.param(name=name, value=value) for name, value in {"labels": [], "shown": [], **parameters}.items()]
    return alt.LayerChart(layer=list(layers), width="container", height=HEIGHT).add_params(*named)


def _is_shown() -> str:
    return "indexof(shown, datum.method) >= 0"


def _name() -> alt.Tooltip:
    return alt.Tooltip("name:N", title="method")


def _samples() -> alt.X:
    scale = alt.Scale(type="log", domain=_between("first", "last"), nice=False)
    return alt.X("samples:Q", title="Samples seen", scale=scale)


def _between(*parameters: str) -> list[Any]:
    """Return the domain of an axis that stays the same when methods are shown or hidden."""
    return [alt.ExprRef(name) for name in parameters]


def _lines(styles: Sequence[MethodStyle]) -> dict[str, Any]:
    """Return the colours and dashes of the methods' lines, as encodings of a chart; the page has one legend for all."""
    colours, dashes = [COLOURS[style.colour] for style in styles], [style.dashes or [1, 0] for style in styles]
    return {
        "color": alt.Color("method:N", scale=_scale(colours), legend=None),
        "strokeDash": alt.StrokeDash("method:N", scale=_scale(dashes), legend=None),
    }


def _scale(values: list[Any]) -> alt.Scale:
    return alt.Scale(domain=list(range(len(values))), range=values)
