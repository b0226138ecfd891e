"""The tables of an audit, printed and in Markdown, all from the content of `audit.json`."""

from collections.abc import Callable, Mapping
from typing import Any

from headstart.contract.tables.table import metric_titles
from headstart.evaluation.audit.rankers import MEAN_RANK
from headstart.evaluation.estimates import INTERVAL, with_interval
from headstart.metrics.ranking.over_targets import LEVEL
from headstart.metrics.ranking.ranking_measures import EVALUATION_MEASURES
from headstart.output.markup import escape_markdown
from headstart.output.printable import print_lines, say
from headstart.output.tables import format_number, markdown_report, print_table

# Rankers that do not depend on the target: the mean rank, and baselines of the catalogue that a table may have.
STATIC = {MEAN_RANK: "mean rank elsewhere", "parameters": "parameters", "source_accuracy": "source accuracy"}
MOST_PRINTED = 30
NO_DIFFERENCE = "not significantly different from"
# Marks of metrics, as in papers; the mean rank is not among those that are compared.
BEST, TIED = " *", " ~"
MARKS = "*: the best metric; ~: not significantly different from it (paired tests of all pairs, Holm-adjusted, 5 %)"
OVER_TARGETS = f"mean over targets, {INTERVAL}; where the mean rank is in it, with a bootstrap's standard error"

Document = Mapping[str, Any]
Cells = list[list[str]]
Escape = Callable[[str], str]


def ranker_titles(document: Document) -> dict[str, str]:
    """Return the titles of the rankers by their names."""
    metrics = document["metrics"]
    return {MEAN_RANK: STATIC[MEAN_RANK], **dict(zip(metrics, metric_titles(metrics), strict=True))}


def print_audit(document: Document) -> None:
    """Print the tables and the remarks."""
    for title, caption, rows in _tables(document, str):
        print_table(title, rows[: MOST_PRINTED + 1], caption)
        if len(rows) > MOST_PRINTED + 1:
            say(f"{len(rows) - MOST_PRINTED - 1} more are in report.md")
    print_lines(remarks(document))


def markdown_text(document: Document) -> str:
    """Return the report in Markdown."""
    sizes = (
        f"{len(document['sources'])} sources, {len(document['targets'])} targets, {len(document['metrics'])} metrics"
    )
    path = document["table"]["path"]
    about = f"{escape_markdown(path if isinstance(path, str) else ', '.join(path.values()))}: {sizes}."
    tables = _tables(document, escape_markdown)
    return markdown_report("Audit of a transferability table", about, remarks(document), tables)


def _tables(document: Document, escape: Escape) -> list[tuple[str, str, Cells]]:
    """Return the title, caption and rows of every table, with escaped names."""
    titles = {name: escape(title) for name, title in ranker_titles(document).items()}
    tables = [("How well each ranker predicts performance", f"{OVER_TARGETS}; {MARKS}", ranker_table(document, titles))]
    if len(titles) > 1:
        caption = f"difference and correlation: {OVER_TARGETS}; better on: targets, by weighted Kendall"
        rows = _beyond_table(document, titles)
        tables.append(("Metrics beyond the mean rank on the other targets", caption, rows))
    if document["holes"]:
        rows = _hole_rows(document["holes"], titles)
        tables.append(("Effect of holes, by weighted Kendall", OVER_TARGETS, rows))

    tables.append(("Ranks of the sources over the targets", "1 is the best", _rank_table(document["ranks"], escape)))
    return tables


def ranker_table(document: Document, titles: Mapping[str, str] | None = None) -> Cells:
    """Return how well each ranker predicts performance, by every measure, with intervals over targets.

    Args:
        document: The content of `audit.json`.
        titles: Titles of the rankers by their names; by default those of `ranker_titles`.

    Returns:
        The header, and a row for every ranker.
    """
    titles = titles or ranker_titles(document)
    rows = [["ranker", *(measure.title for measure in EVALUATION_MEASURES.values())]]
    for name, summaries in document["rankers"].items():
        marks = {key: _mark(best, name) for key, best in document["best"].items()}
        rows.append([titles[name], *(with_interval(summaries[key]) + marks[key] for key in EVALUATION_MEASURES)])
    return rows


def _mark(best: Mapping[str, Any], name: str) -> str:
    return BEST if name in best["metrics"] else TIED if name in best["tied"] else ""


def _beyond_table(document: Document, titles: Mapping[str, str]) -> Cells:
    rows = [
        ["ranker", "weighted Kendall less that of the mean rank", "better on", "Kendall", "Kendall given the mean rank"]
    ]
    for name, differences in document["minus_mean_rank"].items():
        difference = differences["weighted_kendall"]
        values = [value for value in difference["per_target"].values() if value is not None]
        better = f"{sum(value > 0 for value in values)} of {len(values)}"
        kendall, beyond = document["rankers"][name]["kendall"], document["kendall_given_mean_rank"][name]
        rows.append([titles[name], with_interval(difference), better, with_interval(kendall), with_interval(beyond)])
    return rows


def _hole_rows(effects: Document, titles: Mapping[str, str]) -> Cells:
    rows = [["kept", "sources", "targets", *titles.values()]]
    for kept, part in effects.items():
        means = [with_interval(part["rankers"][name]) for name in titles]
        rows.append([kept, f"{part['sources']:,}", f"{part['targets']:,}", *means])
    return rows


def _rank_table(ranks: Document, escape: Escape) -> Cells:
    rows = [["source", "mean rank", "standard deviation", "best", "worst"]]
    for name, source in sorted(ranks["sources"].items(), key=lambda item: item[1]["mean"]):
        spread = [format_number(source[key], ".2f") for key in ("mean", "standard_deviation")]
        rows.append([escape(name), *spread, *(format_number(source[key]) for key in ("best", "worst"))])
    return rows


def remarks(document: Document) -> list[str]:
    """Return sentences: how alike targets are, what metrics add to the mean rank, and what was not computed."""
    ranks, lines = document["ranks"], [*document["notes"]]
    if ranks["mean_spearman"] is not None:
        lines.append(
            f"The rankings of the sources on two targets agree by {ranks['mean_spearman']:.2f} (mean Spearman; "
            f"Kendall's W {ranks['kendalls_w']:.2f}). At 1 all targets have the same ranking, and no metric is needed."
        )
    lines += _against_mean_rank(document)
    for name, best in document["best"].items():
        for metric, targets in best["not_compared"].items():
            title, metric_title = EVALUATION_MEASURES[name].title, ranker_titles(document)[metric]
            lines.append(f"{title}: {metric_title} has no value on {', '.join(targets)}, and is not compared.")
    left_out = [f"Left out: {name} ({reason})." for name, reason in document["left_out"].items()]
    return [*lines, *document["not_computed"], *left_out]


def _against_mean_rank(document: Document) -> list[str]:
    """Return sentences that compare the metrics with the mean rank on the other targets, by weighted Kendall."""
    static = document["rankers"][MEAN_RANK]["weighted_kendall"]
    titles = ranker_titles(document)
    lines = []
    if static["mean"] is not None:
        lines.append(
            "The mean rank on the other targets uses no data of the target. It reaches "
            f"{with_interval(static)} by weighted Kendall."
        )
    groups: dict[str, list[str]] = {name: [] for name in ("significantly above", "significantly below", NO_DIFFERENCE)}
    for name in [name for name in document["metrics"] if name not in STATIC]:
        difference = document["minus_mean_rank"][name]["weighted_kendall"]
        if difference["p_value"] is not None:
            side = "significantly above" if difference["mean"] > 0 else "significantly below"
            groups[side if difference["p_value"] <= LEVEL else NO_DIFFERENCE].append(titles[name])
    return lines + [
        f"Metrics {relation} it, each tested separately at 5 %: {', '.join(names)}."
        for relation, names in groups.items()
        if names
    ]
