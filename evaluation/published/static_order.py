"""How much of each published table is one fixed order of the models: a table and a figure over all of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from headstart.evaluation.audit.rankers import MEAN_RANK
from headstart.evaluation.audit.tables import ranker_titles
from headstart.evaluation.estimates import with_interval
from headstart.evaluation.published.register import TABLES
from headstart.evaluation.stability.study_tables import with_error
from headstart.output.figures import ALARM, INK, drawing
from headstart.output.markup import escape_markdown
from headstart.output.results_folder import FigureFormat, ResultsFolder
from headstart.output.tables import format_number, markdown_report, print_table

FILES = ("static_order.json", "static_order.md", "static_order.csv", "static_order.png")
TITLE = "How much of a published table is one fixed order?"
CAPTION = (
    "static order: weighted Kendall of the mean rank on the other targets, mean over targets; beyond it: Kendall of a "
    "metric given the mean rank; in brackets 95 % intervals over targets; stability: of the metrics, where the target, "
    "the measure and the pool vary, after ± the standard error of drawing pools"
)

Document = Mapping[str, Any]


def write_static_order(
    documents: Mapping[str, Document], folder: Path, figure_formats: Sequence[FigureFormat], overwrite: bool
) -> None:
    """Write and print the table and the figure.

    Args:
        documents: What audit.json holds, by the names of the tables.
        folder: Where they are written.
        figure_formats: File formats of the figure.
        overwrite: Whether files of other tables are replaced.
    """
    results = ResultsFolder("", FILES, str(folder), overwrite)
    digests = {name: document["table"]["sha256"] for name, document in documents.items()}
    results.check_configuration({"tables": digests})

    rows = [_row(name, document) for name, document in documents.items()]
    header = ["table", "sources x targets", "static order", "beyond it", "stability", "holes"]
    cells = [header, *rows]
    notes = [f"{name}: {note}" for name, document in documents.items() for note in document["notes"]]
    notes += [f"{name}: {warning}" for name, document in documents.items() for warning in document["warnings"]]
    report = [[escape_markdown(cell) for cell in row] for row in cells]
    text = markdown_report(TITLE, CAPTION, notes, [("Tables", "", report)])

    results.write(
        {"tables": digests, "rows": [dict(zip(header, row, strict=True)) for row in rows], "notes": notes},
        {"static_order": (header, rows)},
        {"static_order.md": text},
        {"static_order": plot_static_order(documents)},
        figure_formats,
    )
    print_table(TITLE, cells, CAPTION)
    results.print_written()


def _row(name: str, document: Document) -> list[str]:
    titles = ranker_titles(document)
    beyond = [
        f"{titles[metric]} {with_interval(document['kendall_given_mean_rank'][metric])}"
        for metric in document["metrics"]
    ]
    values, errors = document["setup_stability"], (document["standard_error"] or {}).get("setup_stability", {})
    estimates = [with_error(format_number(value, ".2f"), errors.get(varying)) for varying, value in values.items()]
    stability = " / ".join(estimates) if any(values.values()) else "–"
    return [
        TABLES[name].title,
        f"{len(document['sources'])} x {len(document['targets'])}",
        with_interval(document["rankers"][MEAN_RANK]["weighted_kendall"]),
        "; ".join(beyond) or "–",
        stability,
        _holes(document["holes"]),
    ]


def _holes(effects: Document) -> str:
    """Return what the static order is on each part of a table with holes."""
    parts = [
        f"{part['sources']} x {part['targets']}: {format_number(part['rankers'][MEAN_RANK]['mean'], '.3f')}"
        for part in effects.values()
    ]
    return "; ".join(dict.fromkeys(parts)) or "none"


@drawing()
def plot_static_order(documents: Mapping[str, Document]) -> Figure:
    """Plot a line for each table, from the lowest static order to the highest, with its targets.

    Args:
        documents: What audit.json holds, by the names of the tables.
    """
    summaries = {name: document["rankers"][MEAN_RANK]["weighted_kendall"] for name, document in documents.items()}
    ordered = sorted(summaries, key=lambda name: summaries[name]["mean"])
    figure = Figure(figsize=(9, 1.4 + 0.42 * len(ordered)), layout="constrained")
    axes = figure.subplots()
    for line, name in enumerate(ordered):
        summary = summaries[name]
        values = [value for value in summary["per_target"].values() if value is not None]
        axes.plot(values, [line] * len(values), "o", color=INK, alpha=0.25, markersize=4, markeredgewidth=0)
        if summary["ci95"][0] is not None:
            axes.plot(summary["ci95"], [line, line], color=ALARM, linewidth=2.2, solid_capstyle="butt")
        axes.plot([summary["mean"]], [line], "D", color=ALARM, markersize=6)

    sizes = [f"{len(documents[name]['sources'])} x {len(documents[name]['targets'])}" for name in ordered]
    axes.set_yticks(range(len(ordered)), [f"{name}, {size}" for name, size in zip(ordered, sizes, strict=True)])
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.grid(axis="x", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_xlabel("weighted Kendall of the mean rank on the other targets; grey: targets, red: mean, 95 % interval")
    axes.set_title(TITLE, loc="left")
    return figure
