"""Files of a forecast: JSON, CSV, Markdown and a figure, and what is printed."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headstart.output.figures import drawing
from headstart.output.markup import escape_cell, escape_markdown
from headstart.output.printable import print_lines
from headstart.output.results_folder import FigureFormat, ResultsFolder
from headstart.output.tables import markdown_report, print_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "forecast"
FILES = [f"{NAME}.{kind}" for kind in ("json", "csv", "md", "png")]
# The tables of more settings are only written into files; so are panels of the figure.
MOST_PRINTED, MOST_PANELS = 4, 9
SHOWN, LEVELS = "0.8", ("0.8", "0.95")
CAPTION = (
    "accuracy in %, expected and [80 % interval]; samples: when the criterion will be met, in 80 % of such forecasts"
)


def write_forecast(
    results: ResultsFolder,
    document: dict[str, Any],
    figure_formats: Sequence[FigureFormat],
) -> None:
    """Write the files of a forecast.

    Args:
        results: Their folder.
        document: The content of `forecast.json`.
        figure_formats: File formats of the figure.
    """
    tables = [
        (escape_markdown(each["name"]), "", [[escape_markdown(cell) for cell in row] for row in _rows(each)])
        for each in document["settings"]
    ]
    report = markdown_report("Forecast", escape_markdown(f"{CAPTION}."), _remarks(document), tables)
    figures = {NAME: plot_forecast(document)}
    results.write(document, {NAME: _table(document)}, {f"{NAME}.md": report}, figures, figure_formats)


def print_forecast(document: Mapping[str, Any]) -> None:
    """Print the tables, if settings are few."""
    for setting in document["settings"] if len(document["settings"]) <= MOST_PRINTED else []:
        print_table(f"{setting['name']}\n{_criterion(setting)}", _rows(setting), CAPTION)
    print_lines(_remarks(document))


def _criterion(setting: Mapping[str, Any]) -> str:
    measure = setting["measure"].replace("_", " ")
    return f"{setting['threshold']:.0%} {measure} at {setting['consecutive']} consecutive evaluations"


def _remarks(document: Mapping[str, Any]) -> list[str]:
    remarks = [f"left out: {each['setting']} ({each['reason']})" for each in document["left_out"]]
    unknown = {each["name"] for of in document["settings"] for each in of["methods"] if not each["is_known_method"]}
    if unknown:
        names = ", ".join(sorted(unknown))
        remarks.append(f"The suite has no curves of {names}: the intervals are the widest of all methods.")
    shares = document["coverage"]
    return [
        *remarks,
        *[f"WARNING: {each['name']}: {warning}" for each in document["settings"] for warning in each["warnings"]],
        *[f"On data sets left out, {shares[each]:.0%} of {float(each):.0%} intervals held." for each in shares],
    ]


def _rows(setting: Mapping[str, Any]) -> list[list[str]]:
    """Return the header and a row for each method."""
    now = setting["methods"][0]["labels"]
    later = [str(each["labels"]) for each in setting["methods"][0]["later"]]
    rows = [["method", f"at {now}", *(f"at {each}" for each in later), "samples"]]
    for each in setting["methods"]:
        cells = [f"{100 * row['accuracy']:.0f} {_percent(row['intervals'][SHOWN])}" for row in each["later"]]
        rows.append([each["name"], f"{100 * each['accuracy']:.0f}", *cells, _samples(each)])
    return rows


def _percent(ends: Sequence[float]) -> str:
    return f"[{100 * ends[0]:.0f}, {100 * ends[1]:.0f}]"


def _samples(method: Mapping[str, Any]) -> str:
    if method["met_at"] is not None:
        return f"met at {method['met_at']:g}"
    low, high = method["samples_to_criterion"][SHOWN]
    beyond = f"> {method['later'][-1]['labels']}"
    return beyond if low is None else f"{low} to {beyond if high is None else high}"


def _table(document: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Return the columns of the CSV file, and a row for each method and number of labels of every setting."""
    ends = [f"{side}_{level}" for level in LEVELS for side in ("low", "high")]
    columns = ["setting", "method", "known", "accuracy_known", "labels", "accuracy", *ends, "met_at"]
    columns += [f"samples_{each}" for each in ends]
    rows = []
    for setting in document["settings"]:
        for each in setting["methods"]:
            met = each["samples_to_criterion"] or dict.fromkeys(LEVELS, (None, None))
            beginning = [setting["name"], each["name"], each["labels"], each["accuracy"]]
            for later in each["later"]:
                row = [*beginning, later["labels"], later["accuracy"]]
                row += [end for level in LEVELS for end in later["intervals"][level]]
                row += [each["met_at"], *(end for level in LEVELS for end in met[level])]
                rows.append([escape_cell(value) for value in row])
    return columns, rows


def plot_forecast(document: Mapping[str, Any]) -> "Figure":
    """Plot the best method of each setting: expected accuracy and both intervals, and the threshold.

    Args:
        document: The content of `forecast.json`.
    """
    from matplotlib.figure import Figure

    from headstart.output.figures import ALARM, INK, LINE_STYLES, as_written, fold, setting_in_words

    settings = document["settings"][:MOST_PANELS]
    columns = min(3, len(settings))
    lines = -(-len(settings) // columns)
    with drawing():
        figure = Figure(figsize=(4 * columns, 3.2 * lines), layout="constrained")
        panels = figure.subplots(lines, columns, squeeze=False, sharey=True)
        for axes, setting in zip(panels.flat, settings, strict=False):
            best = setting["methods"][0]
            labels = [best["labels"], *(each["labels"] for each in best["later"])]
            accuracies = np.array([best["accuracy"], *(each["accuracy"] for each in best["later"])])
            for level, shade in (("0.95", 0.15), ("0.8", 0.3)):
                ends = np.array([[best["accuracy"]] * 2, *(each["intervals"][level] for each in best["later"])])
                look = {"alpha": shade, "color": LINE_STYLES[2].colour, "lw": 0}
                axes.fill_between(labels, *(100 * ends.T), label=f"{100 * float(level):.0f} % interval", **look)

            axes.plot(labels, 100 * accuracies, color=INK, label="expected")
            axes.plot(labels[:1], 100 * accuracies[:1], color=INK, marker="o", linestyle="", label="known")
            axes.axhline(100 * setting["threshold"], color=ALARM, linewidth=0.8, label="threshold")
            axes.set_xscale("log", base=2)
            axes.set_xticks(labels)
            axes.xaxis.set_major_formatter("{x:g}")
            axes.set_title(fold(f"{setting_in_words(setting['name'])}\n{as_written(best['name'])}", 3.2))
            axes.set_xlabel("Labels")
        for axes in panels[:, 0]:
            axes.set_ylabel("Accuracy, %")
        figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize="small")
        for axes in list(figure.axes)[len(settings) :]:
            axes.set_axis_off()
    return figure
