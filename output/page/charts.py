"""Vega-Lite specifications of the charts; the page and the figures fill them with the data of each setting."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import altair as alt

from headstart.output.figures import LINE_STYLES

# In pixels.
CHART_HEIGHT, ROW_HEIGHT, LINE_WIDTH = 280, 22, 2.0
# Only the first two lines, the baseline and the best other method, have interval bands: more would overlap.
MAX_BANDS, BAND_OPACITY = 2, 0.14
FONT = 12
# A Vega expression: whether the method of a row is shown.
IS_SHOWN = "indexof(shown, datum.method) >= 0"
# `labelOverlap` hides labels of an axis where they would overlap.
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
    """The colours of the charts; on the page, CSS variables that differ in light and dark mode.

    Attributes:
        lines: Colours of the lines, in the order of `LINE_STYLES`.
        pale: Colour of hidden methods, and of reference lines.
    """

    lines: Sequence[str]
    pale: str


class MethodStyle(NamedTuple):
    """Style of the line of a method, the same in all charts.

    Attributes:
        colour: Index of its colour in `LINE_STYLES`.
        dashes: Lengths of dashes and gaps, in pixels; empty for a solid line.
    """

    colour: int
    dashes: list[float]


def method_styles(count: int) -> list[MethodStyle]:
    """Return different styles for up to 36 methods: styles with the same colour have different dashes."""
    colours = len(LINE_STYLES)
    # Each time that the colours repeat, the dashes are shifted by one.
    dashes = [LINE_STYLES[(i + i // colours) % colours].dashes for i in range(count)]
    return [MethodStyle(i % colours, [LINE_WIDTH * length for length in each]) for i, each in enumerate(dashes)]


def definitions(count: int, palette: Palette, has_legend: bool = False) -> dict[str, dict[str, Any]]:
    """Return the Vega-Lite specifications of all charts of a page.

    Each chart reads the named data set that is called like the chart. The Vega parameters are `labels`, the names of
    the methods, and `shown`, the indices of the methods to show.

    Args:
        count: Number of methods.
        palette: The colours.
        has_legend: Whether each chart has its own legend. The page has one legend for all charts instead.

    Returns:
        The charts, by name: `learning_curves`, `reached`, `improvement` and `aggregate`.
    """
    lines = _line_encodings(method_styles(count), palette, has_legend)
    colour = alt.condition(IS_SHOWN, lines["color"].copy().legend(None), alt.value(palette.pale))
    # Titles are split into lines that fit on a phone.
    samples_title = ["Samples to criterion,", "1 being the mean of all methods"]
    charts = {
        "learning_curves": _learning_curves(lines, palette),
        "reached": _reached(lines),
        "improvement": _forest("improvement", ["Improvement over the baseline, %"], 0, palette, colour),
        "aggregate": _forest("aggregate", samples_title, 1, palette, colour),
    }
    return {name: chart.to_dict() for name, chart in charts.items()}


def _learning_curves(lines: dict[str, Any], palette: Palette) -> alt.LayerChart:
    shown = _chart("learning_curves").transform_filter(IS_SHOWN)
    samples, colour = _samples_axis(), lines["color"]
    accuracy = alt.Y("mean:Q", title="Accuracy, %", scale=alt.Scale(domain=_domain("lowest", "highest"), zero=False))
    threshold = alt.Chart(alt.sequence(1)).transform_calculate(threshold="threshold")
    return _layered(
        shown.transform_filter(f"indexof(shown, datum.method) < {MAX_BANDS}")
        .mark_area(opacity=BAND_OPACITY)
        .encode(x=samples, y="low:Q", y2="high:Q", color=colour, tooltip=_name_tooltip()),
        shown.mark_line(strokeWidth=LINE_WIDTH).encode(x=samples, y=accuracy, tooltip=_name_tooltip(), **lines),
        threshold.mark_rule(color=palette.pale, strokeDash=[6, 4]).encode(y="threshold:Q"),
        first=1,
        last=2,
        lowest=0,
        highest=100,
        threshold=80,
    )


def _reached(lines: dict[str, Any]) -> alt.LayerChart:
    shown = _chart("reached").transform_filter(IS_SHOWN)
    share = alt.Y("share:Q", title="Orderings that met the criterion, %", scale=alt.Scale(domain=[0, 100]))
    steps = shown.mark_line(interpolate="step-after", strokeWidth=LINE_WIDTH)
    return _layered(steps.encode(x=_samples_axis(), y=share, tooltip=_name_tooltip(), **lines), first=1, last=2)


def _forest(
    name: str,
    title: list[str],
    reference: float,
    palette: Palette,
    colour: Any,  # noqa: ANN401 - whatever Altair takes for a colour
) -> alt.LayerChart:
    """Define a forest plot: an estimate with its interval for each method, and a line at the reference value."""
    estimates = _chart(name)
    axis = alt.Axis(labelExpr="labels[datum.value]", labelLimit=alt.ExprRef("names_width"), ticks=False, domain=False)
    shared = {"y": alt.Y("method:O", title=None, sort=None, axis=axis), "color": colour}
    tooltip = [_name_tooltip(), alt.Tooltip("estimate:Q", format=".4~g")]
    return _layered(
        alt.Chart(alt.sequence(1)).mark_rule(color=palette.pale).encode(x=alt.XDatum(reference, type="quantitative")),
        estimates.mark_rule(strokeWidth=LINE_WIDTH).encode(
            x=alt.X("low:Q", title=title, scale=alt.Scale(zero=False)), x2="high:Q", tooltip=tooltip, **shared
        ),
        estimates.mark_point(filled=True, opacity=1, size=60).encode(x="estimate:Q", tooltip=tooltip, **shared),
        names_width=220,
    )


def _chart(name: str) -> alt.Chart:
    """Return a chart without a mark. The column `method` of its named data set holds indices into `labels`."""
    return alt.Chart(alt.NamedData(name=name)).transform_calculate(name="labels[datum.method]")


def _layered(*layers: alt.Chart, **parameters: Any) -> alt.LayerChart:
    """Layer charts, with Vega parameters and the values that they have until the chart is filled."""
    named = [alt.param(name=name, value=value) for name, value in {"labels": [], "shown": [], **parameters}.items()]
    return alt.LayerChart(layer=list(layers), width="container", height=CHART_HEIGHT).add_params(*named)


def _name_tooltip() -> alt.Tooltip:
    return alt.Tooltip("name:N", title="method")


def _samples_axis() -> alt.X:
    scale = alt.Scale(type="log", domain=_domain("first", "last"), nice=False)
    return alt.X("samples:Q", title="Samples seen", scale=scale)


def _domain(lowest: str, highest: str) -> list[Any]:
    """Return the domain of an axis between two Vega parameters, so that hiding methods does not change it."""
    return [alt.ExprRef(lowest), alt.ExprRef(highest)]


def _line_encodings(styles: Sequence[MethodStyle], palette: Palette, has_legend: bool) -> dict[str, Any]:
    """Return the colours and dashes of the methods' lines, as encodings of a chart."""
    legend = alt.Legend(
        title=None,
        labelExpr="labels[datum.value]",
        values=alt.ExprRef("shown"),
        symbolType="stroke",
        symbolOpacity=1,
    )
    shown_legend = legend if has_legend else None
    colours = [palette.lines[style.colour] for style in styles]
    dashes = [style.dashes or [1, 0] for style in styles]
    return {
        "color": alt.Color("method:N", scale=_scale(colours), legend=shown_legend),
        "strokeDash": alt.StrokeDash("method:N", scale=_scale(dashes), legend=shown_legend),
    }


def _scale(values: list[Any]) -> alt.Scale:
    """Return the scale that maps the index of each method to its value."""
    return alt.Scale(domain=list(range(len(values))), range=values)
