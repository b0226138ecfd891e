"""The report: sources ranked, with the metrics side by side, as Markdown and as printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headstart.evaluation.sources.certainty import say_answer
from headstart.evaluation.sources.results import RankedSources, Scored
from headstart.evaluation.sources.targets import SPLITS
from headstart.output.markup import escape_markdown, escape_names
from headstart.output.printable import print_lines
from headstart.output.tables import format_number, markdown_table, print_table


def print_source_ranking(results: Sequence[RankedSources]) -> None:
    """Print the sources of every target, ranked, and why scores are missing."""
    for found in results:
        print_table(f"{found.target.name}: {_photos(found)}", ranked_table(found, "source", letters=_letters(found)))
        print_lines(_remarks(found))
    print_lines([_legend(results)])
    for found in results:
        print_lines(f"{found.target.name}: {line}" for line in _answer(found))


def source_report(results: Sequence[RankedSources], document: Mapping[str, Any]) -> str:
    """Write the report in Markdown; the document is the content of `transferability.json`."""
    lines = ["# Transferability", "", escape_markdown(_legend(results))]
    for found in results:
        lines += ["", f"## {escape_markdown(found.target.name)}", "", f"{escape_markdown(_photos(found))}.", ""]
        lines += [*(f"{escape_markdown(line)}  " for line in _answer(found)), ""]
        lines += markdown_table(escape_names(ranked_table(found, "source", letters=_letters(found))))
        lines += ["", *(f"- {escape_markdown(line)}" for line in _remarks(found))]
        lines += ["", "Seconds:", "", *markdown_table(escape_names(_seconds(found)))]
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    weights = [["source", "SHA-256 of the weights"], *map(list, document["digests"]["weights"].items())]
    lines += [
        "",
        "## Settings",
        "",
        f"Seed {document['seed']}; {versions}.",
        "",
        *markdown_table(escape_names(weights)),
    ]
    return "\n".join(lines) + "\n"


def ranked_table(
    found: Scored,
    what: str,
    others: Mapping[str, Mapping[str, str]] | None = None,
    form: str = ".2f",
    letters: Mapping[str, Mapping[str, str]] | None = None,
) -> list[list[str]]:
    """Tabulate candidates by their mean rank, with the score and the rank by every metric.

    Args:
        found: What the metrics say of them.
        what: What they are.
        others: Other columns, by candidate.
        form: How the mean rank is written.
        letters: Of the groups that a candidate is in, by metric and candidate.

    Returns:
        The header, and a row for every candidate, best first.
    """
    others, known, ranking, letters = others or {}, found.performances, found.ranking, letters or {}
    titles = [metric.title for metric in found.metrics.values()]
    rows = [[what, *others, "mean rank", *titles, *(["performance"] if known else [])]]
    for name in ranking.names:
        row = [name, *(cells[name] for cells in others.values()), format_number(ranking.mean_ranks[name], form)]
        for metric, score in found.scores[name].items():
            place, letter = ranking.ranks.get(metric, {}).get(name), letters.get(metric, {}).get(name, "")
            half = "" if score.half_width is None else f" ± {score.half_width:.2g}"
            rank = "" if place is None else f" ({place:g})"
            row.append(f"{format_number(score.value)}{half}{rank} {letter}".rstrip())
        rows.append(row + ([format_number(known.get(name))] if known else []))
    return rows


def _legend(results: Sequence[RankedSources]) -> str:
    lower = [metric.title for metric in results[0].metrics.values() if not metric.higher_is_better]
    but = f", but for {', '.join(lower)}, where they say that the target is harder" if lower else ""
    ranks = "In brackets: the rank, 1 being the best. The mean rank is over the metrics that rank all sources."
    if not any(found.certainties for found in results):
        return f"Higher scores are better{but}. {ranks}"
    intervals = (
        "After ±: half the 95 % interval over other photos of these classes, as many. Sources that share a letter are "
        "not told apart by these photos (all pairs at 5 %, adjusted by Holm)."
    )
    return f"Higher scores are better{but}. {ranks} {intervals}"


def _letters(found: RankedSources) -> dict[str, dict[str, str]]:
    return {name: its.letters for name, its in found.certainties.items()}


def _answer(found: RankedSources) -> list[str]:
    """Say which source is first, and how sure that is; nothing where no metric ranks them."""
    first, *others = found.ranking.names
    ranks = found.ranking.mean_ranks
    if ranks[first] is None or not others:
        return []
    alike = [name for name in others if ranks[name] == ranks[first]]
    ranking = {name: its for name, its in found.certainties.items() if name in found.ranking.ranks}
    return say_answer(first, others, {found.metrics[name].title: its for name, its in ranking.items()}, alike)


def _photos(found: RankedSources) -> str:
    target, photos = found.target, found.target.photos
    return f"{len(photos):,} {SPLITS[target.split]} photos of {len(photos.classes)} classes ({target.dataset})"


def _seconds(found: RankedSources) -> list[list[str]]:
    rows = [["source", "features", *(metric.title for metric in found.metrics.values()), "intervals"]]
    for source in found.ranking.names:
        scores = found.scores[source].values()
        intervals = sum(score.left_out_seconds for score in scores)
        seconds = [found.features_seconds[source], *(score.seconds for score in scores), intervals]
        rows.append([source, *(f"{value:.2f}" for value in seconds)])
    return rows


def _remarks(found: RankedSources) -> list[str]:
    """Say which photos are there twice, which metrics rank nothing, and why scores are missing."""
    remarks = baseline_remarks(found, "sources", of_source=False)
    remarks += [
        f"{metric.title} {metric.baseline}, whatever the target: a baseline, which has no part in the mean rank."
        for metric in found.metrics.values()
        if "facts" in metric.data
    ]
    remarks += tie_remarks(found, "sources")
    photos = found.target.photos
    if photos.maps is None and np.bincount(photos.labels).max() == 1:
        remarks.append("There are no intervals: every class has a single photo, and none can be left out.")
    for name, metric in found.metrics.items():
        remarks += [f"{metric.title} has no score for {', '.join(s)}: {why}." for why, s in found.missing(name).items()]
        remarks += [
            f"{metric.title} has no interval for {source}: {scores[name].uncertain}."
            for source, scores in found.scores.items()
            if scores[name].uncertain
        ]
    return found.target.remarks() + remarks


def baseline_remarks(found: Scored, what: str, of_source: bool) -> list[str]:
    """Say which baselines are the same for all candidates.

    Args:
        found: What the metrics say of the candidates.
        what: What they are, in the plural.
        of_source: Whether these are the baselines that know the source alone, or those that know the target alone.
    """
    return [
        f"{metric.title} {metric.baseline}: it is the same for all {what}, and ranks none."
        for metric in found.metrics.values()
        if metric.baseline and ("facts" in metric.data) is of_source
    ]


def tie_remarks(found: Scored, what: str) -> list[str]:
    """Say which metrics tell none of the candidates apart.

    Args:
        found: What the metrics say of them.
        what: What they are, in the plural.
    """
    return [
        f"{found.metrics[name].title} gives all {what} the same score, {format_number(value)}: it tells none of them "
        "apart, and has no part in the mean rank."
        for name, value in found.tied.items()
    ]
