"""Scores of submissions of one team by every measure of similarity, with embeddings computed once per model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from headstart.contract.schema import Stimulus
from headstart.contract.submissions import Submission
from headstart.evaluation.alignment.scoring import Embeddings, ScoringSetup, explain_embedding_errors, represent
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES, mean_over_pairs
from headstart.metrics.similarity.cka_null import calibrated_cka
from headstart.output.errors import UserError

Matrix: TypeAlias = NDArray[np.float64]
# Similarities of all pairs by the names of readings; None where an estimate is undefined.
Matrices: TypeAlias = Mapping[str, Matrix | None]
# A score, or the reason why there is none.
Score: TypeAlias = float | str

NO_DEBIASED = "the debiased estimate is undefined for a model"


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
                own = {model: embeddings[model] for model in submission.models}
                scores[name] |= _mean_scores(measure, _matrices(measure, own), np.arange(len(own)))
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
        own, scores[name] = {model: values[chosen] for model, values in embeddings.items()}, {}
        for measure in measures:
            means = _mean_scores(measure, _matrices(measure, own), np.arange(len(own)))
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


def _mean_scores(measure: str, matrices: Matrices | str, members: NDArray[np.intp]) -> dict[str, Score]:
    """Average each matrix over the pairs of some models, or return the reason why there is no score."""
    if isinstance(matrices, str):
        return {name: matrices for name, (own, _) in readings().items() if own == measure}
    square = np.ix_(members, members)
    return {
        name: NO_DEBIASED if matrix is None else mean_over_pairs(matrix[square]) for name, matrix in matrices.items()
    }
