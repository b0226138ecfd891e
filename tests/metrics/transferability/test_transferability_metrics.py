"""Accumulated batches and merged processes give what the functions give on all samples."""

from itertools import combinations
from typing import Any

import pytest
import torch
from torch import Tensor
from torchmetrics import Metric, MetricCollection

from headstart.metrics.transferability.gbc import gbc
from headstart.metrics.transferability.h_score import h_score
from headstart.metrics.transferability.leep import leep
from headstart.metrics.transferability.log_me import log_me
from headstart.metrics.transferability.transferability_metrics import GBC, LEEP, HScore, LogME

CASES: list[tuple[Metric, Any]] = [
    (HScore(), h_score),
    (HScore(shrinkage=True), lambda x, y: h_score(x, y, shrinkage=True)),
    (LogME(), log_me),
    (LogME(variant="released"), lambda x, y: log_me(x, y, "released")),
    (GBC(), gbc),
    (GBC(covariance="diagonal", pca=None), lambda x, y: gbc(x, y, covariance="diagonal", pca=None)),
    (GBC(variant="released"), lambda x, y: gbc(x, y, variant="released")),
    (LEEP(), leep),
]


def sample(samples: int = 120, features: int = 9) -> tuple[Tensor, Tensor]:
    """Return probabilities, which are features as well, of the classes 0, 1, 2 and 4."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.tensor([0, 1, 2, 4])[torch.randint(0, 4, (samples,), generator=generator)]
    centres = torch.randn(5, features, generator=generator)
    return (torch.randn(samples, features, generator=generator) + centres[labels]).softmax(1), labels


def test_batches_and_processes_give_what_all_samples_give() -> None:
    for metric, function in CASES:
        for samples in (120, 6):
            x, labels = sample(samples)
            expected = function(x, labels)
            metric.reset()
            for start in range(0, samples, 25):
                metric.update(x[start : start + 25], labels[start : start + 25])
            assert metric.compute().dtype == torch.float64
            assert float(metric.compute()) == expected, metric

            first, second = metric.clone(), metric.clone()
            first.reset()
            second.reset()
            first.update(x[:3], labels[:3])
            second.update(x[3:], labels[3:])
            second.merge_state(first.set_dtype(torch.float16))
            assert float(second.compute()) == pytest.approx(expected, rel=1e-9), metric


@pytest.mark.parametrize("first", ["zero", "one-hot", "constant"])
def test_each_metric_of_a_collection_computes_what_it_computes_alone(first: str) -> None:
    # A collection shares states of metrics whose states are alike after the first batch.
    x, labels = sample(60)
    batches = {"zero": torch.zeros_like(x[:9]), "one-hot": torch.eye(9), "constant": torch.full_like(x[:9], 1 / 9)}
    features, targets = torch.cat([batches[first], x]), torch.cat([labels[:9], labels])
    # Rows of zeros are no probabilities, which LEEP takes.
    cases = CASES[:-1] if first == "zero" else CASES
    expected = [function(features, targets) for _, function in cases]
    for chosen in (*combinations(range(len(cases)), 2), range(len(cases))):
        collection = MetricCollection({str(index): cases[index][0].clone() for index in chosen})
        collection.reset()
        for rows in (slice(0, 9), slice(9, 30), slice(30, None)):
            collection.update(features[rows], targets[rows])
        values = {name: float(value) for name, value in collection.compute().items()}
        assert values == pytest.approx({str(index): expected[index] for index in chosen}, nan_ok=True)


@pytest.mark.filterwarnings("ignore:The ``compute`` method:UserWarning")
def test_batches_and_options_that_do_not_fit_are_refused() -> None:
    metric = LogME()
    metric.update(torch.eye(3), torch.arange(3))
    for features, labels, message in (
        (torch.zeros(9), torch.zeros(9).long(), "features must be \\[samples, 3\\], not \\[9\\]"),
        (torch.zeros(4, 2), torch.zeros(4).long(), "features must be \\[samples, 3\\], not \\[4, 2\\]"),
        (torch.zeros(4, 3), torch.zeros(3).long(), "labels must be \\[4\\]"),
    ):
        with pytest.raises(ValueError, match=message):
            metric.update(features, labels)
    assert len(metric.rows) == 1
    with pytest.raises(ValueError, match="probabilities: none have been added"):
        LEEP().compute()
    with pytest.raises(ValueError, match="Unexpected keyword arguments: `covariances`"):
        GBC(covariances="full")
