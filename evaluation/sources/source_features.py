"""Features of a target's photos by a source model, and from the same pass the probabilities of its head."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.contract.schema import ModelEntry
from headstart.evaluation.embeddings import Extraction, Job, choose_taps, embed, prefix_extraction
from headstart.evaluation.sources.scores import Metrics
from headstart.evaluation.sources.targets import Target
from headstart.metrics.transferability.baselines import SourceFacts
from headstart.metrics.transferability.left_out import divide, divide_groups
from headstart.modules.networks.spec import CLASSIFIERS, NetworkSpec, prefix_model_errors
from headstart.modules.networks.taps import SOURCE_HEAD
from headstart.output.errors import UserError
from headstart.store.feature_table import StoredRows


@dataclass(frozen=True)
class SourceFeatures:
    """Features of a target's photos, or of pixels sampled from them, by a source model.

    Attributes:
        features: float32 `[samples, features]`.
        logits: Outputs of the source head, float32 `[samples, source classes]`; None where there is no head.
        weights: SHA-256 of the loaded weights.
        labels: Class of each sample, `[samples]`: of a photo, or of a sampled pixel.
        photos: Index of each pixel's photo, `[samples]`; None where samples are photos.
        seconds: Time in which the features were computed or read.
    """

    features: Any
    logits: Any
    weights: str
    labels: NDArray[np.int64]
    photos: NDArray[np.int64] | None = None
    seconds: float = 0.0

    def divide(self, parts: int, seed: int) -> NDArray[np.int64]:
        """Divide the samples into parts that are left out in turn, `[samples]`; the pixels of a photo stay together."""
        if self.photos is None:
            return divide(self.labels, parts, seed)
        return divide_groups(self.photos, self.labels, parts, seed)


def source_job(entry: ModelEntry, network: NetworkSpec, target: Target, options: Extraction) -> Job:
    """Return the embeddings to compute of a target by a source model.

    Args:
        entry: The source model.
        network: Its network.
        target: The target.
        options: How features are computed.
    """
    if target.photos.maps is not None:
        return Job(replace(network, pixels=True), [], target.photos, options)
    head = [SOURCE_HEAD] if network.library in CLASSIFIERS else []
    return Job(network, [*choose_taps(entry), *head], target.photos, options)


def source_features(job: Job, target: Target, stored: StoredRows | None = None) -> SourceFeatures:
    """Compute the features of a target by a source model, running its network only on photos without a stored row.

    Args:
        job: The embeddings to compute.
        target: The target.
        stored: The rows, where they are already computed.

    Returns:
        Features and logits of the target's photos, in order.

    Raises:
        UserError: The model cannot be loaded or run, or a photo cannot be decoded. The message names the target, or an
            option of the extraction.
    """
    with prefix_target(target.name):
        table = stored or embed(job)
    width, *head = table.notes["widths"]
    logits = table.rows[:, width:] if head else None
    return SourceFeatures(table.rows[:, :width], logits, table.notes["weights"], target.photos.labels)


@contextmanager
def prefix_target(target: str) -> Iterator[None]:
    """Prefix errors with their option of the extraction, or with the target."""
    try:
        with prefix_extraction():
            yield
    except UserError as error:
        if str(error).startswith("extraction."):
            raise
        raise UserError(f"target {target!r}: {error}") from error


def source_facts(networks: Mapping[str, NetworkSpec], metrics: Metrics) -> dict[str, SourceFacts]:
    """Return the facts of source models that the metrics take, by source.

    Args:
        networks: Networks of the source models, by their names.
        metrics: The metrics.

    Raises:
        UserError: The parameters of a network are counted, and it cannot be built.
    """
    if not any("facts" in metric.data for metric in metrics.values()):
        return dict.fromkeys(networks, SourceFacts())
    # This imports torch, which stored features do not need.
    from headstart.modules.networks.build import count_parameters, known_accuracy

    facts = {}
    for name, network in networks.items():
        with prefix_model_errors(name):
            facts[name] = SourceFacts(count_parameters(network), known_accuracy(network))
    return facts
