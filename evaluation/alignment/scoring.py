"""Similarity of models on stimuli, and the scores of submissions under the evaluation contract."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.contract import documents
from headstart.contract.challenge import Challenge
from headstart.contract.documents import Catalog, Registry
from headstart.contract.schema import CONTRACT_VERSION, Stimulus
from headstart.contract.stimulus_files import locate_stimuli
from headstart.contract.submissions import SCORE_NAMES, Submission
from headstart.datamodules.photos.stimuli import Stimuli
from headstart.engines.options import EngineOptions
from headstart.evaluation.embeddings import Extraction, Job, choose_taps, embed_all, networks_of
from headstart.metrics.arrays import Floats
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES, mean_over_pairs
from headstart.metrics.similarity.cka import read_and_multiply
from headstart.metrics.similarity.cka_jackknife import jackknife
from headstart.metrics.similarity.cka_null import calibrate
from headstart.metrics.similarity.permutation_moments import SEED
from headstart.output.errors import UserError

# Float32 `[stimuli, width]`, by name of the model or layer.
Embeddings = dict[str, Any]


@dataclass(frozen=True)
class ScoringSetup:
    """The documents that scores depend on, and how embeddings are computed.

    Attributes:
        registry: The models.
        catalog: The stimuli.
        extraction: How embeddings are computed.
        engines: Where the models run.
    """

    registry: Registry
    catalog: Catalog
    extraction: Extraction
    engines: EngineOptions = field(default_factory=EngineOptions)


def represent(
    names: Sequence[str], stimuli: Sequence[Stimulus], setup: ScoringSetup, layers: Sequence[str] | None = None
) -> tuple[Embeddings, dict[str, Any]]:
    """Embed stimuli by models.

    Args:
        names: Models of the registry.
        stimuli: The stimuli.
        setup: The registry, and how embeddings are computed.
        layers: Layers of the only model, to be compared with each other.

    Returns:
        `[stimuli, width]` by name of the model or layer; and what results say of them: the numbers of models and
        stimuli, the SHA-256 of weights by model, and the number of rows that were computed, rather than read.

    Raises:
        UserError: A stimulus cannot be found or decoded, or a model cannot be loaded or run.
    """
    pictures = Stimuli([f"{image.dataset_name}/{image.image_identifier}" for image in stimuli], locate_stimuli(stimuli))
    networks = networks_of(names, setup.registry, setup.extraction)
    jobs = {
        name: Job(network, choose_taps(setup.registry.entries[name], layers), pictures, setup.extraction)
        for name, network in networks.items()
    }

    stored = embed_all(jobs, setup.engines)
    embeddings = {name: table.rows for name, table in stored.items()}
    if layers is not None:
        (table,) = stored.values()
        ends = np.cumsum(table.notes["widths"])
        parts = [table.rows[:, end - width : end] for end, width in zip(ends, table.notes["widths"], strict=True)]
        embeddings = dict(zip(layers, parts, strict=True))
    return embeddings, {
        "n_models": len(stored),
        "n_stimuli": len(stimuli),
        "weights": {name: table.notes["weights"] for name, table in stored.items()},
        "rows_computed": sum(table.computed for table in stored.values()),
    }


@contextmanager
def explain_embedding_errors(names: Sequence[str]) -> Iterator[None]:
    """Turn a ValueError of a similarity into a UserError that names the model.

    Args:
        names: Names of the models or layers, which the ValueError calls `embeddings[i]`.
    """
    try:
        yield
    except ValueError as error:
        raise UserError(
            re.sub(r"embeddings\[(\d+)\]", lambda match: f"model {names[int(match[1])]!r}", str(error))
        ) from error


def conditions(names: Sequence[str], setup: ScoringSetup, rules: Challenge | None = None) -> dict[str, Any]:
    """Return what a result of some models depends on besides what is compared, by key path in the result."""
    networks = networks_of(names, setup.registry, setup.extraction)
    return {
        "contract_version": CONTRACT_VERSION,
        "extraction": setup.extraction.score_settings,
        "digests/registry": setup.registry.sha256,
        "digests/catalog": setup.catalog.sha256,
        "digests/networks": {name: network.digest for name, network in networks.items()},
        "challenge": rules and rules.name,
        "digests/challenge": rules and rules.digest,
    }


def compare(models: Sequence[str], layers: Sequence[str] | None, measure: str, setup: ScoringSetup) -> dict[str, Any]:
    """Compare models, or layers of one model, on the whole catalog.

    Args:
        models: Models of the registry.
        layers: Layers of the only model, where these are compared.
        measure: Name of the measure of similarity.
        setup: The documents, and how embeddings are computed.

    Returns:
        The content of `cka.json`; errors as for `represent`, or that the similarity is undefined.
    """
    described = _describe(*represent(models, setup.catalog.stimuli, setup, layers), measure, setup)
    if layers is not None:
        described = {"model": models[0], "n_layers": len(layers), **described}
    named = {} if measure == DEFAULT_MEASURE else {"measure": measure}
    return {"contract_version": CONTRACT_VERSION, **named, **described}


def score(submission: Submission, setup: ScoringSetup) -> dict[str, Any]:
    """Score a submission under the evaluation contract.

    Blue Team: the mean pairwise linear CKA of the submitted models on all stimuli of the catalog. Red Team: 1 minus
    the mean pairwise linear CKA of all models of the registry on the submitted stimuli.

    Args:
        submission: A checked submission.
        setup: The documents, and how embeddings are computed.

    Returns:
        The content of `score.json`.

    Raises:
        UserError: The registry has one model only; or as `represent`.
    """
    registry = setup.registry
    if len(registry.entries) < 2:
        raise UserError(f"registry: {str(registry.path)!r} has one model; CKA compares two or more")
    blue = submission.team == "blue"
    names = submission.models if blue else tuple(registry.entries)
    represented = represent(names, setup.catalog.stimuli if blue else submission.stimuli, setup)
    described = _describe(*represented, DEFAULT_MEASURE, setup)

    described["digests"]["submission"] = submission.sha256
    low, high = described["ci95"]["mean"] or (None, None)
    means = [described[f"mean_cka_{estimate}"] for estimate in ("biased", "debiased", "calibrated")]
    means += [low, high] if blue else [high, low]
    scores = dict(
        zip(SCORE_NAMES, means if blue else [None if mean is None else 1 - mean for mean in means], strict=True)
    )

    described["ci95"]["score"] = None if low is None else [scores["low"], scores["high"]]
    header = {"contract_version": submission.contract_version, "team": submission.team, "score": scores["score"]}
    return {**header, "scores": scores, **described}


def _describe(represented: Embeddings, about: dict[str, Any], measure: str, setup: ScoringSetup) -> dict[str, Any]:
    """Compute both estimates of the similarity, and describe them as JSON values."""
    names, embeddings = list(represented), represented.values()
    certainty: dict[str, Any] = {}
    with explain_embedding_errors(names):
        if measure == DEFAULT_MEASURE:
            biased, debiased, certainty = cka_and_certainty(embeddings)
        else:
            biased, debiased = SIMILARITY_MEASURES[measure].pairwise(embeddings)

    lists = {"biased": biased.tolist(), "debiased": None if debiased is None else debiased.tolist()}
    digests = {"registry": setup.registry.sha256, "catalog": setup.catalog.sha256, "weights": about["weights"]}
    return {
        "n_models": about["n_models"],
        "n_stimuli": about["n_stimuli"],
        mean_key(measure, "biased"): mean_over_pairs(biased),
        mean_key(measure, "debiased"): None if debiased is None else mean_over_pairs(debiased),
        "pairwise": {"names": names, **lists},
        **certainty,
        "extraction": setup.extraction.score_settings,
        "digests": digests,
        "timings": {"rows_computed": about["rows_computed"]},
    }


def mean_key(measure: str, estimate: str) -> str:
    """Return the key of the mean over pairs in a result; the contract calls that of linear CKA `mean_cka_...`."""
    return f"mean_cka_{estimate}" if measure == DEFAULT_MEASURE else f"mean_{estimate}"


class CatalogOptions(EngineOptions):
    """The registry, the catalog, and how embeddings are computed.

    As a base class, it adds its options to those of the next base class.

    Args:
        registry: Model registry. By default the file in HACKATHON_MODEL_REGISTRY, else configs/model_registry.json.
        catalog: Stimuli catalog. By default the file in HACKATHON_STIMULI_CATALOG, else configs/stimuli_catalog.jsonl.
        extraction: How embeddings are computed.
        **options: Options of the next base class.

    Attributes:
        registry_option: The option `registry`.
        catalog_option: The option `catalog`.
    """

    def __init__(
        self,
        registry: str | None = None,
        catalog: str | None = None,
        extraction: Extraction = Extraction(),  # noqa: B008 - frozen
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.registry_option, self.catalog_option = registry, catalog
        self._extraction = extraction

    @cached_property
    def setup(self) -> ScoringSetup:
        """The documents, and how embeddings are computed; a UserError where a file is invalid or too large."""
        registry = documents.read_registry(documents.registry_path(self.registry_option))
        catalog = documents.read_catalog(documents.catalog_path(self.catalog_option))
        return ScoringSetup(registry, catalog, self._extraction, self)


def cka_and_certainty(embeddings: Iterable[NDArray[Any]]) -> tuple[Floats, Floats | None, dict[str, Any]]:
    """Compute linear CKA of all pairs of m embeddings, at least 2, its nulls and its intervals over stimuli.

    Args:
        embeddings: `[stimuli, width]` each.

    Returns:
        Biased and debiased CKA as for `metrics.biased_and_debiased_cka`; and as JSON values, with null for undefined
        ones: `mean_cka_calibrated`, and the matrices `null_mean`, `null_sd`, `z`, `p` and `calibrated`. `calibration`
            has the settings, and the pairs with outliers and permutations drawn for them. `ci95` has the ends for the
            mean over pairs (`mean`), and matrices of `low` and `high` ends.

    Raises:
        ValueError: As `metrics.pairwise_cka` for the biased estimate.
    """
    read, products = read_and_multiply(embeddings)
    cka = calibrate(read, products)
    intervals = jackknife(read, products)

    mean = list(intervals.mean) if np.isfinite(intervals.mean).all() else None
    certainty = {
        "mean_cka_calibrated": mean_over_pairs(cka.calibrated),
        **{name: _to_lists(getattr(cka, name)) for name in ("null_mean", "null_sd", "z", "p", "calibrated")},
        "calibration": {
            "level": cka.level,
            "seed": SEED,
            "outlying": np.argwhere(np.triu(cka.outlying, 1)).tolist(),
            "permutations": cka.permutations,
        },
        "ci95": {"mean": mean, "low": _to_lists(intervals.low), "high": _to_lists(intervals.high)},
    }
    return cka.biased, cka.debiased, certainty


def _to_lists(matrix: Floats) -> list[list[float | None]]:
    """Return a matrix as JSON values, with null for NaN."""
    return [[None if np.isnan(value) else value for value in row] for row in matrix.tolist()]
