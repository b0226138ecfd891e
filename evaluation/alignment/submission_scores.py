"""What submissions of one team score by every measure of similarity, embeddings computed once per model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from headstart.contract.documents import Catalog, Registry
from headstart.contract.schema import Stimulus
from headstart.contract.submissions import Submission
from headstart.evaluation.alignment.scoring import Embeddings, explain_embedding_errors, represent
from headstart.evaluation.embeddings import Engines, Extraction
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES, mean_over_pairs
from headstart.metrics.similarity.cka_null import calibrated_cka
from headstart.output.errors import UserError

Matrix: TypeAlias = NDArray[np.float64]
# Similarities of all pairs by the names of readings; None where an estimate is undefined.
Matrices: TypeAlias = Mapping[str, Matrix | None]
# A score, or why there is none.
Score: TypeAlias = float | str

NO_DEBIASED = "the debiased estimate is undefined for a model"


def readings(measures: Collection[str] = tuple(SIMILARITY_MEASURES)) -> dict[str, tuple[str, str]]:
    """Give what submissions are ranked by: the measure that a reading comes from, and its title, by its name.

    The first is the contract's score. A measure with a debiased estimate is read twice, and linear CKA a third time,
    calibrated by its null under shuffled stimuli.

    Args:
        measures: Names of the measures, beside linear CKA.
    """
    found = {}
    for name, measure in SIMILARITY_MEASURES.items():
        if name not in (DEFAULT_MEASURE, *measures):
            continue
        found[name] = (name, measure.estimated)
        if measure.has_debiased:
            found[f"{name}_debiased"] = (name, f"{measure.title} (debiased)")
        if name == DEFAULT_MEASURE:
            found[f"{name}_calibrated"] = (name, f"{measure.title} (calibrated)")
    return found


def score_submissions(
    submissions: Mapping[str, Submission],
    registry: Registry,
    catalog: Catalog,
    options: Extraction,
    engines: Engines,
    measures: Sequence[str],
) -> dict[str, dict[str, Score]]:
    """Score submissions of one team as the contract does, by every reading in place of linear CKA alone.

    Args:
        submissions: Checked submissions of one team, by name.
        registry: The models.
        catalog: The stimuli.
        options: How embeddings are computed.
        engines: Where the models run.
        measures: Names of the measures, beside linear CKA.

    Returns:
        The score by the name of the submission and of the reading, or the reason why there is none.

    Raises:
        UserError: As `headstart.evaluation.alignment.scoring.represent`.
    """
    chosen = list(dict.fromkeys(measure for measure, _ in readings(measures).values()))
    if next(iter(submissions.values())).team == "blue":
        wanted = {model for each in submissions.values() for model in each.models}
        names = [name for name in registry.entries if name in wanted]
        rows = represent(names, catalog.stimuli, registry, options, engines=engines).embeddings
        return _score_models(submissions, rows, chosen)
    places: dict[tuple[str, str], int] = {}
    stimuli: list[Stimulus] = []
    for stimulus in (stimulus for each in submissions.values() for stimulus in each.stimuli):
        if places.setdefault(_key(stimulus), len(stimuli)) == len(stimuli):
            stimuli.append(stimulus)
    rows = represent(list(registry.entries), stimuli, registry, options, engines=engines).embeddings
    return _score_stimuli(submissions, rows, places, chosen)


def _score_models(
    submissions: Mapping[str, Submission], rows: Embeddings, measures: Sequence[str]
) -> dict[str, dict[str, Score]]:
    """Average over the pairs of each submission's models the similarities on all stimuli, computed once."""
    places = {model: place for place, model in enumerate(rows)}
    scores: dict[str, dict[str, Score]] = {name: {} for name in submissions}
    for measure in measures:
        whole = _matrices(measure, rows)
        if isinstance(whole, str) or any(matrix is None for matrix in whole.values()):
            # One model, or two that do not go together, would leave all submissions without a score.
            for name, submission in submissions.items():
                own = {model: rows[model] for model in submission.models}
                scores[name] |= _means(measure, _matrices(measure, own), np.arange(len(own)))
            continue
        for name, submission in submissions.items():
            scores[name] |= _means(measure, whole, np.array([places[model] for model in submission.models]))
    return scores


def _score_stimuli(
    submissions: Mapping[str, Submission],
    rows: Embeddings,
    places: Mapping[tuple[str, str], int],
    measures: Sequence[str],
) -> dict[str, dict[str, Score]]:
    """Take from 1 the mean similarity of all models on each submission's stimuli, whose rows are at some places."""
    scores: dict[str, dict[str, Score]] = {}
    for name, submission in submissions.items():
        chosen = [places[_key(each)] for each in submission.stimuli]
        own, scores[name] = {model: values[chosen] for model, values in rows.items()}, {}
        for measure in measures:
            means = _means(measure, _matrices(measure, own), np.arange(len(own)))
            scores[name] |= {key: mean if isinstance(mean, str) else 1 - mean for key, mean in means.items()}
    return scores


def _key(stimulus: Stimulus) -> tuple[str, str]:
    return stimulus.dataset_name, stimulus.image_identifier


def _matrices(measure: str, rows: Embeddings) -> Matrices | str:
    """Compute all readings of one measure on models, or tell why it is undefined."""
    try:
        with explain_embedding_errors(list(rows)):
            if measure == DEFAULT_MEASURE:
                found = calibrated_cka(rows.values())
                kinds = {"": found.biased, "_debiased": found.debiased, "_calibrated": found.calibrated}
            else:
                biased, debiased = SIMILARITY_MEASURES[measure].pairwise(rows.values())
                kinds = {"": biased, "_debiased": debiased}
    except UserError as error:
        return str(error)
    return {f"{measure}{kind}": matrix for kind, matrix in kinds.items() if f"{measure}{kind}" in readings()}


def _means(measure: str, matrices: Matrices | str, members: NDArray[np.intp]) -> dict[str, Score]:
    """Average each matrix over the pairs of some models, or give the reason why that cannot be."""
    if isinstance(matrices, str):
        return {name: matrices for name, (own, _) in readings().items() if own == measure}
    square = np.ix_(members, members)
    return {
        name: NO_DEBIASED if matrix is None else mean_over_pairs(matrix[square]) for name, matrix in matrices.items()
    }
