"""The report as Markdown, in LaTeX and printed: everything in it comes from the content of `sources_report.json`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from headstart.evaluation.over_targets import with_interval
from headstart.evaluation.stability.table import metric_titles
from headstart.metrics.ranking.ranking_measures import EVALUATION_MEASURES, MEASURES, Measure
from headstart.output.markup import escape_latex, escape_markdown, latex_tables
from headstart.output.printable import print_lines
from headstart.output.tables import format_number, markdown_table, print_table

Document = Mapping[str, Any]
Cells = list[list[str]]


class Look(NamedTuple):
    """How cells are written.

    Attributes:
        text: Lets a text be shown as it is.
        number: Writes a number.
        best: Marks the best.
        tied: Marks what is not told apart from the best.
        legend: Says what the marks mean.
    """

    text: Callable[[str], str]
    number: Callable[[str], str]
    best: Callable[[str], str]
    tied: Callable[[str], str]
    legend: str


# More columns than these are left to the CSV table.
MOST_TARGETS = 40
LEGEND = (
    "Mean over targets, in brackets its 95 % t interval over targets. {}: the best, and what equals it; {}: not told "
    "apart from the best (paired t tests over targets of all pairs of metrics, Holm-adjusted, 5 %)."
)
PRINTED = Look(str, str, "{} *".format, "{} ~".format, LEGEND.format("*", "~"))
MARKDOWN = Look(escape_markdown, str, "**{}**".format, "{} †".format, LEGEND.format("Bold", "†"))
LATEX = Look(
    escape_latex,
    # A minus, and no hyphen.
    lambda text: re.sub(r"-(?=\d)", "$-$", escape_latex(text)),
    "\\textbf{{{}}}".format,
    "{}\\textsuperscript{{\\dag}}".format,
    LEGEND.format("Bold", "†"),
)


def print_report(document: Document) -> None:
    """Print the means, the values on every target by the first measure, and what they come to."""
    print_table(_headline(document), over_targets_rows(document, PRINTED), PRINTED.legend)
    for measure in _shown_by_target(document)[:1]:
        print_table(_title(measure), by_target_rows(document, measure, PRINTED), "*: the best on the target")
    print_lines(remarks(document))


def markdown_report(document: Document) -> str:
    """Write the report in Markdown."""
    sizes = f"{_headline(document)}: {escape_markdown(document['table']['path'])}."
    lines = ["# Sources report", "", sizes, "", *(f"- {escape_markdown(line)}" for line in remarks(document))]
    lines += ["", "## Over targets", "", MARKDOWN.legend, "", *markdown_table(over_targets_rows(document, MARKDOWN))]
    for measure in _shown_by_target(document):
        lines += ["", f"## {_title(measure)}", "", *markdown_table(by_target_rows(document, measure, MARKDOWN))]
    return "\n".join(lines) + "\n"


def latex_report(document: Document) -> str:
    """Write the tables in LaTeX."""
    tables = [(f"{_headline(document)}. {LATEX.legend}", over_targets_rows(document, LATEX))]
    tables += [
        (f"{_title(measure)}.", by_target_rows(document, measure, LATEX)) for measure in _shown_by_target(document)
    ]
    return latex_tables(tables, fit=True)


def over_targets_rows(document: Document, look: Look) -> Cells:
    """Tabulate the means over targets, metrics by measures: the header, and the rows."""
    rows = [["metric", *(look.text(measure.title) for measure in EVALUATION_MEASURES.values())]]
    for metric, title in _titles(document).items():
        cells = []
        for measure in MEASURES:
            best = document["best"][measure]
            cell = look.number(with_interval(document["measured"][metric][measure]))
            mark = look.best if metric in best["metrics"] else look.tied if metric in best["tied"] else str
            cells.append(mark(cell))
        rows.append([look.text(title), *cells])
    return rows


def by_target_rows(document: Document, measure: Measure, look: Look) -> Cells:
    """Tabulate the values by one measure, metrics by targets: the header, and the rows."""
    best = document["best"][measure]["on_target"]
    rows = [["metric", *(look.text(target) for target in document["targets"])]]
    for metric, title in _titles(document).items():
        cells = []
        for target, value in document["measured"][metric][measure]["per_target"].items():
            cell = look.number(format_number(value, ".3f"))
            cells.append(look.best(cell) if metric in best[target] else cell)
        rows.append([look.text(title), *cells])
    return rows


def remarks(document: Document) -> list[str]:
    """Say which metrics are the best, what is not told apart from them, and what is not compared."""
    titles, lines = _titles(document), []
    for name in MEASURES:
        title, best = EVALUATION_MEASURES[name].title, document["best"][name]
        found = [titles[metric] for metric in best["metrics"]]
        if found:
            tied = [titles[metric] for metric in best["tied"]]
            have, these = ("has", "it") if len(found) == 1 else ("have", "these")
            rest = f"; the targets do not tell {_list(tied)} from {these}" if tied else ""
            lines.append(f"{title}: {_list(found)} {have} the highest mean{rest}.")
        for metric, targets in best["not_compared"].items():
            lines.append(f"{title}: {titles[metric]} has no value on {_list(targets)}, and is not compared.")
        if all(measures[name]["mean"] is None for measures in document["measured"].values()):
            lines.append(f"{title}: no metric has a value on any target.")
    if len(document["targets"]) == 1:
        lines.append("There is one target, so that there are no intervals and nothing can be told apart.")
    if not _shown_by_target(document):
        lines.append(f"The values on each of {len(document['targets']):,} targets are in by_target.csv.")
    return [*lines, *document["remarks"]]


def _shown_by_target(document: Document) -> Sequence[Measure]:
    """Give the measures whose values on every target are shown: none where there are too many targets."""
    return MEASURES if len(document["targets"]) <= MOST_TARGETS else ()


def _titles(document: Document) -> dict[str, str]:
    return dict(zip(document["metrics"], metric_titles(document["metrics"]), strict=True))


def _headline(document: Document) -> str:
    sources, targets = len(document["sources"]), len(document["targets"])
    return f"How well metrics foretell the performance of {sources} sources on {targets} target{'s' * (targets > 1)}"


def _title(measure: Measure) -> str:
    return f"By {EVALUATION_MEASURES[measure].title} on each target"


def _list(names: list[str]) -> str:
    return ", ".join(names)
