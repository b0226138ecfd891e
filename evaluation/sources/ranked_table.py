"""The table of ranked candidates, and remarks on them, for reports on sources and on targets."""

from __future__ import annotations

from collections.abc import Mapping

from headstart.evaluation.sources.results import Scored
from headstart.output.tables import format_number


def ranked_table(
    results: Scored,
    kind: str,
    columns: Mapping[str, Mapping[str, str]] | None = None,
    form: str = ".2f",
    letters: Mapping[str, Mapping[str, str]] | None = None,
) -> list[list[str]]:
    """Tabulate candidates by their mean rank, with the score and the rank by every metric.

    Args:
        results: The scores of the candidates.
        kind: What the candidates are.
        columns: Other columns, by title and candidate.
        form: Format of the mean rank.
        letters: Letters of the groups that a candidate is in, by metric and candidate.

    Returns:
        The header, and a row for every candidate, best first.
    """
    columns, letters = columns or {}, letters or {}
    performances, ranking = results.performances, results.ranking
    titles = [metric.title for metric in results.metrics.values()]
    rows = [[kind, *columns, "mean rank", *titles, *(["performance"] if performances else [])]]

    for name in ranking.names:
        row = [name, *(cells[name] for cells in columns.values()), format_number(ranking.mean_ranks[name], form)]
        for metric, score in results.scores[name].items():
            rank, letter = ranking.ranks.get(metric, {}).get(name), letters.get(metric, {}).get(name, "")
            half = "" if score.half_width is None else f" ± {score.half_width:.2g}"
            in_brackets = "" if rank is None else f" ({rank:g})"
            row.append(f"{format_number(score.value)}{half}{in_brackets} {letter}".rstrip())
        rows.append(row + ([format_number(performances.get(name))] if performances else []))
    return rows


def baseline_remarks(results: Scored, kind: str, data: str) -> list[str]:
    """Return remarks on the baselines that are the same for all candidates.

    Args:
        results: The scores of the candidates.
        kind: What the candidates are, in the plural.
        data: The data that these baselines take, as of `TransferabilityMetric`.
    """
    return [
        f"{metric.title} {metric.baseline}: it is the same for all {kind}, and ranks none."
        for metric in results.metrics.values()
        if metric.baseline and data in metric.data
    ]


def tie_remarks(results: Scored, kind: str) -> list[str]:
    """Return remarks on the metrics that score all candidates, `kind` in the plural, the same."""
    return [
        f"{results.metrics[name].title} gives all {kind} the same score, {format_number(value)}: it tells none of them "
        "apart, and has no part in the mean rank."
        for name, value in results.tied.items()
    ]
