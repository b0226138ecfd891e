"""Where another measure than the contract's would rank submissions otherwise: as numbers, tables and sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.alignment.submission_scores import Score, readings
from headstart.metrics.ranking.ranking_measures import kendall
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE
from headstart.output.markup import escape_markdown, escape_names
from headstart.output.printable import print_lines
from headstart.output.tables import format_number, markdown_table, print_table

Document = Mapping[str, Any]
# Scores that differ in later digits differ by rounding alone, and tie.
DIGITS = 9
# The most pairs of submissions that change places that are named by measure.
MOST_SWAPS = 1000
SHOWN_SWAPS = 5
LEGEND = (
    "Scores are the contract's, with another measure of similarity in its place; higher is better, in brackets the "
    "rank, 1 being best. tau: Kendall's tau-b with the ranking by the contract's score. swapped: pairs of submissions "
    "that the contract ranks one way and the measure the other, of those that both score."
)


def rank_submissions(scores: Mapping[str, Mapping[str, Score]]) -> dict[str, Any]:
    """Rank submissions by every reading and compare the rankings with the contract's.

    Args:
        scores: Scores, higher is better, or reasons, by the name of the submission and of the reading.

    Returns:
        `scores`: by submission and reading `score`, `rank` and `reason`, None where it does not apply; ties share the
        best rank. `measures`: by reading its `title`; `kendall_tau` with the contract's ranking, None where either is
        constant or fewer than 2 submissions have both scores; `compared_pairs`; `swapped_pairs`, those of them in the
        opposite order; `swaps`, the first 1,000 as [ahead by the contract, ahead by the measure], those furthest apart
        by the contract's score first; and `first`, which submissions rank first.
    """
    names = list(scores)
    tables: dict[str, dict[str, Any]] = {name: {} for name in names}
    measures = {}
    contract = _values(scores, DEFAULT_MEASURE)
    for reading in next(iter(scores.values())):
        values = _values(scores, reading)
        for name, value in zip(names, values, strict=True):
            missing = math.isnan(value)
            reason = scores[name][reading]
            tables[name][reading] = {
                "score": None if missing else reason,
                "rank": None if missing else 1 + int((values > value).sum()),
                "reason": reason if missing else None,
            }
        first = [name for name in names if tables[name][reading]["rank"] == 1]
        measures[reading] = {"title": readings()[reading][1], **_compare(names, contract, values), "first": first}
    return {"measures": measures, "scores": tables}


def _values(scores: Mapping[str, Mapping[str, Score]], reading: str) -> NDArray[np.float64]:
    """Give the scores by a reading, rounded, `[submissions]`; NaN where there is none."""
    found = (each[reading] for each in scores.values())
    return np.array([math.nan if isinstance(score, str) else round(score, DIGITS) for score in found])


def _compare(names: list[str], contract: NDArray[np.float64], values: NDArray[np.float64]) -> dict[str, Any]:
    """Compare the ranking by some values with that by the contract's score, over what has both."""
    both = np.flatnonzero(~np.isnan(contract) & ~np.isnan(values))
    tau = kendall(values[both], contract[both]) if len(both) > 1 else math.nan
    ahead, behind = np.triu_indices(len(both), 1)
    ahead, behind = both[ahead], both[behind]
    gaps = contract[ahead] - contract[behind]
    swapped = np.flatnonzero(gaps * (values[ahead] - values[behind]) < 0)
    swapped = swapped[np.argsort(-abs(gaps[swapped]), kind="stable")]
    pairs = [(ahead[i], behind[i]) if gaps[i] > 0 else (behind[i], ahead[i]) for i in swapped[:MOST_SWAPS]]
    return {
        "kendall_tau": None if math.isnan(tau) else round(tau, DIGITS),
        "compared_pairs": len(gaps),
        "swapped_pairs": len(swapped),
        "swaps": [[names[one], names[other]] for one, other in pairs],
    }


def print_ranking(document: Document) -> None:
    """Print the scores and ranks by every reading, how far the rankings agree, and what would change."""
    print_table(headline(document), _score_rows(document))
    print_table("agreement with the contract's ranking", _agreement_rows(document))
    print_lines([LEGEND, *_remarks(document)])


def markdown_ranking(document: Document) -> str:
    """Write the same in Markdown."""
    lines = ["# Submissions", "", f"{headline(document)}. {LEGEND}", ""]
    lines += [f"- {escape_markdown(line)}" for line in _remarks(document)]
    lines += ["", "## Scores", "", *markdown_table(escape_names(_score_rows(document)))]
    lines += ["", "## Agreement", "", *markdown_table(escape_names(_agreement_rows(document)))]
    return "\n".join(lines) + "\n"


def headline(document: Document) -> str:
    """Say whose submissions were ranked."""
    submissions, count = len(document["scores"]), len(document["measures"])
    return f"{document['team'].title()} Team, {submissions} submissions by {count} readings"


def _score_rows(document: Document) -> list[list[str]]:
    """Tabulate scores and ranks, the best by the contract first, those without a score last."""
    scores, measures = document["scores"], document["measures"]
    best_first = sorted(scores, key=lambda name: scores[name][DEFAULT_MEASURE]["rank"] or math.inf)
    rows = [["submission", *(measure["title"] for measure in measures.values())]]
    for name in best_first:
        found = [scores[name][reading] for reading in measures]
        ranks = ["" if each["rank"] is None else f" ({each['rank']})" for each in found]
        cells = [f"{format_number(each['score'], '.4f')}{rank}" for each, rank in zip(found, ranks, strict=True)]
        rows.append([name, *cells])
    return rows


def _agreement_rows(document: Document) -> list[list[str]]:
    rows = [["measure", "tau", "swapped", "of pairs"]]
    for measure in document["measures"].values():
        counts = [str(measure[key]) for key in ("swapped_pairs", "compared_pairs")]
        rows.append([measure["title"], format_number(measure["kendall_tau"], ".3f"), *counts])
    return rows


def _remarks(document: Document) -> list[str]:
    """Say who else would win, which pairs would change places, and why scores are missing."""
    measures, lines = document["measures"], []
    winners = measures[DEFAULT_MEASURE]["first"]
    for measure in measures.values():
        swaps = measure["swaps"]
        if not swaps:
            continue
        first = "" if measure["first"] == winners else f"{' and '.join(measure['first'])} first; "
        shown = ", ".join(f"{other} before {one}" for one, other in swaps[:SHOWN_SWAPS])
        more = measure["swapped_pairs"] - len(swaps[:SHOWN_SWAPS])
        lines.append(f"By {measure['title']}: {first}{shown}{f', and {more} more pairs' if more else ''}.")
    for reading, measure in measures.items():
        reasons: dict[str, int] = {}
        for found in document["scores"].values():
            if (reason := found[reading]["reason"]) is not None:
                reasons[reason] = reasons.get(reason, 0) + 1
        told = [f"{count} of {len(document['scores'])}, {reason}" for reason, count in reasons.items()]
        if told:
            lines.append(f"No score by {measure['title']}: {'; '.join(told[:SHOWN_SWAPS])}.")
    if not any(measure["swapped_pairs"] for measure in measures.values()):
        lines.insert(0, "No measure would put two submissions in the opposite order.")
    return lines
