"""The report on a table, printed and in Markdown: everything in it comes from the content of `audit.json`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headstart.evaluation.audit.rankers import MEAN_RANK
from headstart.evaluation.over_targets import with_interval
from headstart.evaluation.stability.report import RATED
from headstart.evaluation.stability.table import metric_titles
from headstart.metrics.ranking.ranking_measures import EVALUATION_MEASURES
from headstart.output.markup import escape_markdown
from headstart.output.printable import print_lines, say
from headstart.output.tables import format_number, markdown_table, print_table

# What knows nothing of the target: the mean rank, and facts, which a table may have as metrics of the catalogue, too.
STATIC = {MEAN_RANK: "mean rank elsewhere", "parameters": "parameters", "source_accuracy": "source accuracy"}
MOST_PRINTED = 30

Document = Mapping[str, Any]
Cells = list[list[str]]


def ranker_titles(document: Document) -> dict[str, str]:
    """Give the titles of the rankers, by their names."""
    names = list(document["rankers"])
    static = names[: len(names) - len(document["metrics"])]
    return {
        **{name: STATIC[name] for name in static},
        **dict(zip(document["metrics"], metric_titles(document["metrics"]), strict=True)),
    }


def print_audit(document: Document) -> None:
    """Print the tables and what they come to."""
    for title, caption, rows in _tables(document):
        print_table(title, rows[: MOST_PRINTED + 1], caption)
        if len(rows) > MOST_PRINTED + 1:
            say(f"{len(rows) - MOST_PRINTED - 1} more are in report.md")
    print_lines(remarks(document))


def audit_report(document: Document) -> str:
    """Write the report in Markdown."""
    sizes = (
        f"{len(document['sources'])} sources, {len(document['targets'])} targets, {len(document['metrics'])} metrics"
    )
    lines = ["# Audit of a transferability table", "", f"{escape_markdown(document['table']['path'])}: {sizes}.", ""]
    lines += [f"- {escape_markdown(line)}" for line in remarks(document)]
    for title, caption, rows in _tables(document, escape_markdown):
        lines += ["", f"## {title}", "", *([caption, ""] if caption else []), *markdown_table(rows)]
    return "\n".join(lines) + "\n"


def _tables(document: Document, text: Callable[[str], str] = str) -> list[tuple[str, str, Cells]]:
    """Give the titles, captions and rows of all tables, with names as `text` writes them."""
    titles = {name: text(title) for name, title in ranker_titles(document).items()}
    interval = "mean over targets, in brackets its 95 % t interval over targets"
    tables = [("How well each ranker foretells performance", interval, ranker_table(document, titles))]
    if len(titles) > 1:
        about = f"difference and correlation: {interval}; better on: targets, by weighted Kendall"
        tables.append(
            ("What is left beside the mean rank on the other targets", about, _beyond_table(document, titles))
        )
    for kind in ("model", "family"):
        if document[f"leave_one_{kind}_out"]:
            about = "mean over targets: from the lowest to the highest, and what was left out there"
            rows = _left_out_table(document[f"leave_one_{kind}_out"], titles, text)
            tables.append((f"Leave one {kind} out, by weighted Kendall", about, rows))
    tables.append(("Ranks of the sources over the targets", "1 is the best", _rank_table(document["ranks"], text)))
    if document["win_rate_percent"]:
        about = "share of all pools, targets and measures in which a ranker is the best, ties in equal shares"
        tables.append(("Win rate in %", about, _win_table(document, titles)))
    return tables


def ranker_table(document: Document, titles: Mapping[str, str] | None = None) -> Cells:
    """Tabulate how well each ranker foretells performance, by every measure, with intervals over targets.

    Args:
        document: The content of `audit.json`.
        titles: What the rankers are called, by their names; by default as `ranker_titles` does.

    Returns:
        The header, and a row for every ranker.
    """
    titles = titles or ranker_titles(document)
    rows = [["ranker", *(measure.title for measure in EVALUATION_MEASURES.values())]]
    for name, found in document["rankers"].items():
        rows.append([titles[name], *(with_interval(found[measure]) for measure in EVALUATION_MEASURES)])
    return rows


def _beyond_table(document: Document, titles: Mapping[str, str]) -> Cells:
    rows = [
        ["ranker", "weighted Kendall less that of the mean rank", "better on", "Kendall", "Kendall given the mean rank"]
    ]
    for name, found in document["minus_mean_rank"].items():
        differences = [value for value in found["weighted_kendall"]["per_target"].values() if value is not None]
        better = f"{sum(value > 0 for value in differences)} of {len(differences)}"
        kendall, beyond = document["rankers"][name]["kendall"], document["kendall_given_mean_rank"][name]
        rows.append(
            [
                titles[name],
                with_interval(found["weighted_kendall"]),
                better,
                with_interval(kendall),
                with_interval(beyond),
            ]
        )
    return rows


def _left_out_table(left_out: Document, titles: Mapping[str, str], text: Callable[[str], str]) -> Cells:
    rows = [["ranker", "lowest", "without", "highest", "without"]]
    for name, measures in left_out.items():
        known = {each: value for each, value in measures["weighted_kendall"].items() if value is not None}
        ends = [pick(known, key=known.__getitem__) for pick in (min, max)] if known else []
        cells = [cell for each in ends for cell in (format_number(known[each], ".3f"), text(each))]
        rows.append([titles[name], *(cells or ["–"] * 4)])
    return rows


def _rank_table(ranks: Document, text: Callable[[str], str]) -> Cells:
    rows = [["source", "mean rank", "standard deviation", "best", "worst"]]
    for name, found in sorted(ranks["sources"].items(), key=lambda item: item[1]["mean"]):
        spread = [format_number(found[key], ".2f") for key in ("mean", "standard_deviation")]
        rows.append([text(name), *spread, *(format_number(found[key]) for key in ("best", "worst"))])
    return rows


def _win_table(document: Document, titles: Mapping[str, str]) -> Cells:
    rows = [["ranker", *RATED.values()]]
    for name, rates in document["win_rate_percent"].items():
        rows.append([titles[name], *(format_number(rates[measure], ".1f") for measure in RATED)])
    return rows


def remarks(document: Document) -> list[str]:
    """Say what the tables come to, and what they do not have."""
    ranks = document["ranks"]
    lines = []
    if ranks["mean_spearman"] is not None:
        lines.append(
            f"The orders of the sources on two targets agree by {ranks['mean_spearman']:.2f} (mean Spearman; Kendall's "
            f"W {ranks['kendalls_w']:.2f}): 1 is the same order on all targets, for which no metric is needed."
        )
    lines += _against_mean_rank(document)
    stability = document["setup_stability"]
    if any(value is not None for value in stability.values()):
        named = ", ".join(f"{format_number(value, '.2f')} where the {name} varies" for name, value in stability.items())
        lines.append(f"Setup stability of the metrics over all {document['pools']:,} pools: {named}.")
    return [
        *lines,
        *document["not_computed"],
        *(f"Left out: {name} ({why})." for name, why in document["left_out"].items()),
    ]


def _against_mean_rank(document: Document) -> list[str]:
    """Compare the metrics with the mean rank on the other targets, by weighted Kendall."""
    static = document["rankers"][MEAN_RANK]["weighted_kendall"]
    lines = []
    if static["mean"] is not None:
        lines.append(
            "The mean rank on the other targets, which knows nothing of the target, reaches "
            f"{with_interval(static)} by weighted Kendall."
        )
    titles = ranker_titles(document)
    kinds: dict[str, list[str]] = {"above": [], "below": [], "not told apart from": []}
    for name in [name for name in document["metrics"] if name not in STATIC]:
        low, high = document["minus_mean_rank"][name]["weighted_kendall"]["ci95"]
        if low is not None:
            kinds["above" if low > 0 else "below" if high < 0 else "not told apart from"].append(titles[name])
    lines += [
        f"Metrics {what} it by the interval of the difference: {_list(names)}."
        for what, names in kinds.items()
        if names
    ]
    return lines


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)
