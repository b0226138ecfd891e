"""How well a fixed order of the models predicts each published table: a summary table and a figure."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from headstart.evaluation.audit.figures import plot_summary
from headstart.evaluation.audit.rankers import MEAN_RANK
from headstart.evaluation.audit.tables import OVER_TARGETS, ranker_titles
from headstart.evaluation.estimates import with_interval
from headstart.output.figures import ALARM, GRID, INK, drawing, fold, titles
from headstart.output.markup import escape_names
from headstart.output.results_folder import FigureFormat, ResultsFolder
from headstart.output.tables import markdown_report, print_table

FILES = ("static_order.json", "static_order.md", "static_order.csv", "static_order.png")
TITLE = "How much of a published table is one fixed order?"
Document = Mapping[str, Any]
Rows = list[list[str]]


def write_static_order(
    documents: Mapping[str, Document], folder: Path, figure_formats: Sequence[FigureFormat], overwrite: bool
) -> None:
    """Write the summary tables and the figure, and print the tables.

    Args:
        documents: The content of audit.json by name of the published table.
        folder: Folder of the files.
        figure_formats: File formats of the figure.
        overwrite: Whether to replace results of other tables.
    """
    results = ResultsFolder("", FILES, str(folder), overwrite)
    digests = {name: document["table"]["sha256"] for name, document in documents.items()}
    results.check_configuration({"tables": digests})

    tables = static_order_tables(documents)
    notes = [
        f"{name}: {note}"
        for name, document in documents.items()
        for note in (*document["notes"], *document["not_computed"], *document["warnings"])
    ]
    escaped = [(title, caption, escape_names(rows)) for title, caption, rows in tables]
    about = "Rankings of the models, as headstart audit finds them in every table of headstart published."

    results.write(
        {
            "tables": digests,
            "figures": {title: [dict(zip(rows[0], row, strict=True)) for row in rows[1:]] for title, _, rows in tables},
            "notes": notes,
        },
        {"static_order": (tables[0][2][0], tables[0][2][1:])},
        {"static_order.md": markdown_report(TITLE, about, notes, escaped)},
        {"static_order": plot_static_order(documents)},
        figure_formats,
    )
    for title, caption, rows in tables:
        print_table(title, rows, caption)
    results.print_written()


def static_order_tables(documents: Mapping[str, Document]) -> list[tuple[str, str, Rows]]:
    """Return the title, the caption and the rows (header first) of each summary table.

    Args:
        documents: The content of audit.json by name of the published table.
    """
    orders: Rows = [["table", "sources x targets", "mean rank on the other targets"]]
    partial_kendall: Rows = [["table", "metric", "Kendall", "Kendall given the mean rank"]]
    holes: Rows = [["table", "kept", "sources x targets", "mean rank on the other targets"]]

    for name, document in documents.items():
        titles, size = ranker_titles(document), f"{len(document['sources'])} x {len(document['targets'])}"
        orders.append([name, size, with_interval(document["rankers"][MEAN_RANK]["weighted_kendall"])])
        for metric in document["metrics"]:
            summaries = document["rankers"][metric]["kendall"], document["kendall_given_mean_rank"][metric]
            partial_kendall.append([name, titles[metric], *map(with_interval, summaries)])
        for part_name, part in document["holes"].items():
            agreement = with_interval(part["rankers"][MEAN_RANK])
            holes.append([name, part_name, f"{part['sources']} x {part['targets']}", agreement])

    return [
        ("Static order", f"weighted Kendall, {OVER_TARGETS}", orders),
        ("Metrics beyond the mean rank", OVER_TARGETS, partial_kendall),
        ("Effect of holes", f"weighted Kendall, {OVER_TARGETS}", holes),
    ]


@drawing()
def plot_static_order(documents: Mapping[str, Document]) -> Figure:
    """Plot one row per table, in ascending order of the mean: the targets, the mean and its interval.

    Args:
        documents: The content of audit.json by name of the published table.
    """
    summaries = {name: document["rankers"][MEAN_RANK]["weighted_kendall"] for name, document in documents.items()}
    ordered = sorted(summaries, key=lambda name: summaries[name]["mean"])
    figure = Figure(figsize=(7.5, 1.4 + 0.3 * len(ordered)), layout="constrained")
    axes = figure.subplots()
    for row, name in enumerate(ordered):
        plot_summary(axes, row, summaries[name], ALARM)

    sizes = [f"{len(documents[name]['sources'])} × {len(documents[name]['targets'])}" for name in ordered]
    labels = [f"{name} ({size})" for name, size in zip(titles(ordered), sizes, strict=True)]
    axes.set_yticks(range(len(ordered)), labels)
    axes.tick_params(axis="y", length=0)
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.grid(axis="x", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    label = "Agreement of the mean rank on the other targets with the ranking on a target (weighted Kendall's τ)"
    label = fold(f"{label}\nGrey: targets; red: mean, 95 % interval. In brackets: sources × targets.", 5, 9)
    axes.set_xlabel(label, fontsize=9)
    axes.set_title(TITLE, loc="left")
    return figure
