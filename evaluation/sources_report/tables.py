"""The tables of a sources report, printed, in Markdown and in LaTeX, all from the content of `sources_report.json`."""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from headstart.contract.tables.table import metric_titles
from headstart.evaluation.estimates import INTERVAL, with_interval
from headstart.metrics.ranking.ranking_measures import EVALUATION_MEASURES, MEASURES
from headstart.output.markup import escape_latex, escape_markdown, latex_tables
from headstart.output.printable import print_lines
from headstart.output.tables import format_number, markdown_report, print_table

Document = Mapping[str, Any]
Cells = list[list[str]]


class Style(NamedTuple):
    """How cells are written.

    Attributes:
        text: Escapes a text.
        number: Writes a number.
        best: Marks the best.
        tied: Marks what is not significantly worse than the best.
        legend: Explains the marks.
    """

    text: Callable[[str], str]
    number: Callable[[str], str]
    best: Callable[[str], str]
    tied: Callable[[str], str]
    legend: str


# Values on more targets than these are left to the CSV table.
MOST_TARGETS = 40
LEGEND = (
    f"Mean over targets, {INTERVAL}. {{}}: the best and its equals; {{}}: not significantly different from the "
    "best (paired tests over targets of all pairs of metrics, by t or sign flips likewise, Holm-adjusted, 5 %)."
)
PRINTED = Style(str, str, "{} *".format, "{} ~".format, LEGEND.format("*", "~"))
MARKDOWN = Style(escape_markdown, str, "**{}**".format, "{} †".format, LEGEND.format("Bold", "†"))
LATEX = Style(
    escape_latex,
    # Hyphens before digits are minus signs.
    lambda text: re.sub(r"-(?=\d)", "$-$", escape_latex(text)),
    "\\textbf{{{}}}".format,
    "{}\\textsuperscript{{\\dag}}".format,
    LEGEND.format("Bold", "†"),
)


def print_report(document: Document) -> None:
    """Print the means, the values on every target by the first measure, and the remarks."""
    print_table(_headline(document), over_targets_rows(document, PRINTED), PRINTED.legend)
    for title, rows in _by_target_tables(document, PRINTED)[:1]:
        print_table(title, rows, "*: the best on the target")
    print_lines(remarks(document))


def markdown_text(document: Document) -> str:
    """Return the report in Markdown."""
    about = f"{_headline(document)}: {escape_markdown(document['table']['path'])}."
    tables = [("Over targets", MARKDOWN.legend, over_targets_rows(document, MARKDOWN))]
    tables += [(title, "", rows) for title, rows in _by_target_tables(document, MARKDOWN)]
    return markdown_report("Sources report", about, remarks(document), tables)


def latex_text(document: Document) -> str:
    """Return the tables in LaTeX."""
    notes = "".join(f" {escape_latex(note)}" for note in document["notes"])
    tables = [(f"{_headline(document)}. {LATEX.legend}{notes}", over_targets_rows(document, LATEX))]
    return latex_tables(tables + [(f"{title}.", rows) for title, rows in _by_target_tables(document, LATEX)], fit=True)


def over_targets_rows(document: Document, style: Style) -> Cells:
    """Return the means over targets, metrics by measures: the header, and the rows."""
    rows = [["metric", *(style.text(measure.title) for measure in EVALUATION_MEASURES.values())]]
    for metric, title in _titles(document).items():
        cells = []
        for measure in MEASURES:
            best = document["best"][measure]
            mark = style.best if metric in best["metrics"] else style.tied if metric in best["tied"] else str
            cells.append(mark(style.number(with_interval(document["measured"][metric][measure]))))
        rows.append([style.text(title), *cells])
    return rows


def _by_target_tables(document: Document, style: Style) -> list[tuple[str, Cells]]:
    """Return a title and rows, metrics by targets, for each measure; no table if there are too many targets."""
    tables = []
    for measure in MEASURES if len(document["targets"]) <= MOST_TARGETS else ():
        best = document["best"][measure]["on_target"]
        rows = [["metric", *(style.text(target) for target in document["targets"])]]
        for metric, title in _titles(document).items():
            values = document["measured"][metric][measure]["per_target"]
            cells = {target: style.number(format_number(value, ".3f")) for target, value in values.items()}
            marked = [style.best(cell) if metric in best[target] else cell for target, cell in cells.items()]
            rows.append([style.text(title), *marked])
        tables.append((f"By {EVALUATION_MEASURES[measure].title} on each target", rows))
    return tables


def remarks(document: Document) -> list[str]:
    """Return sentences: which metrics are the best or not significantly worse, and which are not compared."""
    titles, lines, targets = _titles(document), [], document["targets"]
    for name in MEASURES:
        title, best = EVALUATION_MEASURES[name].title, document["best"][name]
        if best["metrics"]:
            have = "has" if len(best["metrics"]) == 1 else "have"
            tied = ", ".join(titles[metric] for metric in best["tied"])
            rest = f"; not significantly different: {tied}" if tied else ""
            leaders = ", ".join(titles[metric] for metric in best["metrics"])
            lines.append(f"{title}: {leaders} {have} the highest mean{rest}.")
        for metric, missing in best["not_compared"].items():
            lines.append(f"{title}: {titles[metric]} has no value on {', '.join(missing)}, and is not compared.")
        if all(measures[name]["mean"] is None for measures in document["measured"].values()):
            lines.append(f"{title}: no metric has a value on any target.")

    if len(targets) > MOST_TARGETS:
        lines.append(f"The values on each of {len(targets):,} targets are in by_target.csv.")
    return [*lines, *document["remarks"]]


def _titles(document: Document) -> dict[str, str]:
    return dict(zip(document["metrics"], metric_titles(document["metrics"]), strict=True))


def _headline(document: Document) -> str:
    sources, targets = len(document["sources"]), len(document["targets"])
    return f"How well metrics predict the performance of {sources} sources on {targets} target{'s' * (targets > 1)}"
