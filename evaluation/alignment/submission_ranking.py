"""Scores of one team's submissions by every measure, and how the rankings differ from the contract's."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from headstart.contract.schema import Stimulus
from headstart.contract.submissions import Submission
from headstart.evaluation.alignment.scoring import Embeddings, ScoringSetup, explain_embedding_errors, represent
from headstart.metrics.arrays import Floats, Indices
from headstart.metrics.ranking.ranking_measures import kendall
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES, mean_over_pairs
from headstart.metrics.similarity.cka_null import calibrated_cka
from headstart.output.errors import UserError
from headstart.output.markup import escape_names
from headstart.output.printable import print_lines
from headstart.output.tables import format_number, markdown_report, print_table

# Similarities of all pairs by the names of readings; None where an estimate is undefined.
Matrices: TypeAlias = Mapping[str, Floats | None]
# A score, or the reason why there is none.
Score: TypeAlias = float | str

NO_DEBIASED = "the debiased estimate is undefined for a model"
Document = Mapping[str, Any]
# Scores that differ only in later digits, by rounding, tie.
DIGITS = 9
# The most pairs of swapped submissions that are named by measure.
MOST_SWAPS = 1000
SHOWN_SWAPS = 5
LEGEND = (
    "Scores are the contract's, computed by another measure of similarity; higher is better, in brackets the "
    "rank, 1 being best. tau: Kendall's tau-b with the ranking by the contract's score. swapped: pairs of submissions "
    "that the contract ranks one way and the measure the other, of those that both score."
)


def readings(measures: Collection[str] = tuple(SIMILARITY_MEASURES)) -> dict[str, tuple[str, str]]:
    """Return the readings that submissions are ranked by: name, measure and title.

    The first is the contract's score. A measure with a debiased estimate has two readings, and linear CKA a third,
    calibrated by its null under shuffled stimuli.

    Args:
        measures: Names of the measures, besides linear CKA.

    Returns:
        The name of the measure and the title, by the name of the reading.
    """
    by_name = {}
    for name, measure in SIMILARITY_MEASURES.items():
        if name not in (DEFAULT_MEASURE, *measures):
            continue
        by_name[name] = (name, measure.estimated)
        if measure.has_debiased:
            by_name[f"{name}_debiased"] = (name, f"{measure.title} (debiased)")
        if name == DEFAULT_MEASURE:
            by_name[f"{name}_calibrated"] = (name, f"{measure.title} (calibrated)")
    return by_name


def score_submissions(
    submissions: Mapping[str, Submission], measures: Sequence[str], setup: ScoringSetup
) -> dict[str, dict[str, Score]]:
    """Score submissions of one team as the contract does, by every reading instead of linear CKA alone.

    Args:
        submissions: Checked submissions of one team, by name.
        measures: Names of the measures, besides linear CKA.
        setup: The documents, and how embeddings are computed.

    Returns:
        The score by the name of the submission and of the reading, or the reason why there is none.

    Raises:
        UserError: As `headstart.evaluation.alignment.scoring.represent`.
    """
    chosen = list(dict.fromkeys(measure for measure, _ in readings(measures).values()))
    if next(iter(submissions.values())).team == "blue":
        submitted = {model for each in submissions.values() for model in each.models}
        names = [name for name in setup.registry.entries if name in submitted]
        embeddings = represent(names, setup.catalog.stimuli, setup).embeddings
        return _score_models(submissions, embeddings, chosen)

    # Each stimulus once, in the order of the submissions.
    stimuli = {_key(stimulus): stimulus for each in submissions.values() for stimulus in each.stimuli}
    indices = {key: index for index, key in enumerate(stimuli)}
    embeddings = represent(list(setup.registry.entries), list(stimuli.values()), setup).embeddings
    return _score_stimuli(submissions, embeddings, indices, chosen)


def _score_models(
    submissions: Mapping[str, Submission], embeddings: Embeddings, measures: Sequence[str]
) -> dict[str, dict[str, Score]]:
    """Average over the pairs of each submission's models the similarities on all stimuli, computed once."""
    indices = {model: index for index, model in enumerate(embeddings)}
    scores: dict[str, dict[str, Score]] = {name: {} for name in submissions}
    for measure in measures:
        shared = _matrices(measure, embeddings)
        # One model, or two that do not fit together, would leave all submissions without a score.
        is_partial = isinstance(shared, str) or any(matrix is None for matrix in shared.values())
        for name, submission in submissions.items():
            if is_partial:
                submitted = {model: embeddings[model] for model in submission.models}
                scores[name] |= _mean_scores(measure, _matrices(measure, submitted), np.arange(len(submitted)))
            else:
                members = np.array([indices[model] for model in submission.models])
                scores[name] |= _mean_scores(measure, shared, members)
    return scores


def _score_stimuli(
    submissions: Mapping[str, Submission],
    embeddings: Embeddings,
    indices: Mapping[tuple[str, str], int],
    measures: Sequence[str],
) -> dict[str, dict[str, Score]]:
    """Compute 1 minus the mean similarity of all models on each submission's stimuli, which have indices."""
    scores: dict[str, dict[str, Score]] = {}
    for name, submission in submissions.items():
        chosen = [indices[_key(each)] for each in submission.stimuli]
        on_stimuli, scores[name] = {model: values[chosen] for model, values in embeddings.items()}, {}
        for measure in measures:
            means = _mean_scores(measure, _matrices(measure, on_stimuli), np.arange(len(on_stimuli)))
            scores[name] |= {key: mean if isinstance(mean, str) else 1 - mean for key, mean in means.items()}
    return scores


def _key(stimulus: Stimulus) -> tuple[str, str]:
    return stimulus.dataset_name, stimulus.image_identifier


def _matrices(measure: str, embeddings: Embeddings) -> Matrices | str:
    """Compute all readings of one measure on models, or return the reason why it is undefined."""
    try:
        with explain_embedding_errors(list(embeddings)):
            if measure == DEFAULT_MEASURE:
                cka = calibrated_cka(embeddings.values())
                estimates = {"": cka.biased, "_debiased": cka.debiased, "_calibrated": cka.calibrated}
            else:
                biased, debiased = SIMILARITY_MEASURES[measure].pairwise(embeddings.values())
                estimates = {"": biased, "_debiased": debiased}
    except UserError as error:
        return str(error)
    return {f"{measure}{kind}": matrix for kind, matrix in estimates.items() if f"{measure}{kind}" in readings()}


def _mean_scores(measure: str, matrices: Matrices | str, members: Indices) -> dict[str, Score]:
    """Average each matrix over the pairs of some models, or return the reason why there is no score."""
    if isinstance(matrices, str):
        return {name: matrices for name, (basis, _) in readings().items() if basis == measure}
    square = np.ix_(members, members)
    return {
        name: NO_DEBIASED if matrix is None else mean_over_pairs(matrix[square]) for name, matrix in matrices.items()
    }


def rank_submissions(scores: Mapping[str, Mapping[str, Score]]) -> dict[str, Any]:
    """Rank submissions by every reading and compare the rankings with the contract's.

    Args:
        scores: Scores, higher is better, or reasons, by the name of the submission and of the reading.

    Returns:
        `scores`: by submission and reading `score`, `rank` and `reason`, None where it does not apply; ties share the
        best rank. `measures`, by reading. Each has its `title`. `kendall_tau` is that with the contract's ranking: None
        if either is constant or fewer than 2 submissions have both scores. `compared_pairs` and `swapped_pairs` count
        pairs, the latter those in the opposite order. `swaps` are the first 1,000 of these as [ahead by the contract,
        ahead by the measure]. The largest difference of the contract's scores comes first. `first` are the submissions
        that rank first.
    """
    names = list(scores)
    tables: dict[str, dict[str, Any]] = {name: {} for name in names}
    measures = {}
    contract = _values(scores, DEFAULT_MEASURE)
    for reading in next(iter(scores.values())):
        values = _values(scores, reading)
        for name, value in zip(names, values, strict=True):
            score = scores[name][reading]
            if isinstance(score, str):
                tables[name][reading] = {"score": None, "rank": None, "reason": score}
            else:
                tables[name][reading] = {"score": score, "rank": 1 + int((values > value).sum()), "reason": None}

        first = [name for name in names if tables[name][reading]["rank"] == 1]
        measures[reading] = {"title": readings()[reading][1], **_compare(names, contract, values), "first": first}
    return {"measures": measures, "scores": tables}


def _values(scores: Mapping[str, Mapping[str, Score]], reading: str) -> Floats:
    """Return the scores by a reading, rounded, `[submissions]`; NaN where there is none."""
    by_reading = (each[reading] for each in scores.values())
    return np.array([math.nan if isinstance(score, str) else round(score, DIGITS) for score in by_reading])


def _compare(names: list[str], contract: Floats, values: Floats) -> dict[str, Any]:
    """Compare the ranking by some values with that by the contract's score, over submissions with both."""
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
    print_table(headline(document), _score_table(document))
    print_table("agreement with the contract's ranking", _agreement_table(document))
    print_lines([LEGEND, *_remarks(document)])


def markdown_ranking(document: Document) -> str:
    """Return the ranking in Markdown."""
    tables = {"Scores": _score_table(document), "Agreement": _agreement_table(document)}
    escaped = [(title, "", escape_names(rows)) for title, rows in tables.items()]
    return markdown_report("Submissions", f"{headline(document)}. {LEGEND}", _remarks(document), escaped)


def headline(document: Document) -> str:
    """Return a line with the team and the numbers of submissions and readings."""
    submissions, count = len(document["scores"]), len(document["measures"])
    return f"{document['team'].title()} Team, {submissions} submissions by {count} readings"


def _score_table(document: Document) -> list[list[str]]:
    """Tabulate scores and ranks, the best by the contract first, those without a score last."""
    scores, measures = document["scores"], document["measures"]
    best_first = sorted(scores, key=lambda name: scores[name][DEFAULT_MEASURE]["rank"] or math.inf)
    table = [["submission", *(measure["title"] for measure in measures.values())]]
    for name in best_first:
        cells = []
        for score in (scores[name][reading] for reading in measures):
            rank = "" if score["rank"] is None else f" ({score['rank']})"
            cells.append(f"{format_number(score['score'], '.4f')}{rank}")
        table.append([name, *cells])
    return table


def _agreement_table(document: Document) -> list[list[str]]:
    table = [["measure", "tau", "swapped", "of pairs"]]
    for measure in document["measures"].values():
        counts = [str(measure[key]) for key in ("swapped_pairs", "compared_pairs")]
        table.append([measure["title"], format_number(measure["kendall_tau"], ".3f"), *counts])
    return table


def _remarks(document: Document) -> list[str]:
    """Return sentences on other winners, swapped pairs and missing scores."""
    measures = document["measures"]
    lines = [_describe_swaps(each, measures[DEFAULT_MEASURE]["first"]) for each in measures.values() if each["swaps"]]
    for reading, measure in measures.items():
        reasons = Counter(score[reading]["reason"] for score in document["scores"].values())
        del reasons[None]
        counts = [f"{count} of {len(document['scores'])}, {reason}" for reason, count in reasons.items()]
        if counts:
            lines.append(f"No score by {measure['title']}: {'; '.join(counts[:SHOWN_SWAPS])}.")
    if not any(measure["swapped_pairs"] for measure in measures.values()):
        lines.insert(0, "No measure puts two submissions in the opposite order.")
    return lines


def _describe_swaps(measure: Mapping[str, Any], winners: list[str]) -> str:
    first = "" if measure["first"] == winners else f"{' and '.join(measure['first'])} first; "
    swaps = measure["swaps"][:SHOWN_SWAPS]
    shown = ", ".join(f"{other} before {one}" for one, other in swaps)
    more = measure["swapped_pairs"] - len(swaps)
    return f"By {measure['title']}: {first}{shown}{f', and {more} more pairs' if more else ''}."
