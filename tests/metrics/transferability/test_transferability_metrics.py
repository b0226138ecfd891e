"""Accumulated batches, merged processes and missing classes give what the functions give on all samples."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_sum

from headstart.metrics.transferability.gbc import gbc
from headstart.metrics.transferability.h_score import h_score
from headstart.metrics.transferability.leep import leep
from headstart.metrics.transferability.log_me import log_me
from headstart.metrics.transferability.transferability_metrics import GBC, LEEP, ClassStatistics, HScore, LogME


def sample(samples: int = 120, features: int = 9) -> tuple[Tensor, Tensor]:
    """Return samples of the classes 0, 1, 2 and 4."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.tensor([0, 1, 2, 4])[torch.randint(0, 4, (samples,), generator=generator)]
    centres = torch.randn(5, features, generator=generator)
    return torch.randn(samples, features, generator=generator) + centres[labels] + 2, labels


CASES: list[tuple[Metric, Any]] = [
    (HScore(5, 9), h_score),
    (LogME(5, 9), log_me),
    (GBC(5, 9), lambda x, y: gbc(x, y, pca=None)),
    (GBC(5, 9, "spherical", "released"), lambda x, y: gbc(x, y, pca=None, variant="released")),
    (GBC(5, 9, covariance="diagonal"), lambda x, y: gbc(x, y, covariance="diagonal", pca=None)),
]


@pytest.mark.parametrize(("metric", "function"), CASES)
@pytest.mark.parametrize("samples", [120, 6])
def test_batches_give_what_all_samples_give(metric: Metric, function: Any, samples: int) -> None:
    x, labels = sample(samples)
    metric.reset()
    for start in range(0, samples, 25):
        metric.update(x[start : start + 25], labels[start : start + 25])
    value = metric.compute()
    assert value.dtype == torch.float64
    assert float(value) == pytest.approx(function(x, labels), rel=1e-7)


@pytest.mark.parametrize(("metric", "function"), CASES)
def test_processes_are_merged_by_addition(metric: Metric, function: Any) -> None:
    x, labels = sample()
    first, second = metric.clone(), metric.clone()
    first.reset()
    second.reset()
    first.update(x[:50], labels[:50])
    second.update(x[50:], labels[50:])
    first.merge_state(second)
    assert float(first.compute()) == pytest.approx(function(x, labels), rel=1e-7)
    assert set(first._reductions.values()) == {dim_zero_sum}


def test_more_features_than_samples() -> None:
    x, labels = sample(30, 60)
    for metric, function in ((HScore(5, 60), h_score), (LogME(5, 60), log_me)):
        metric.update(x, labels)
        assert float(metric.compute()) == pytest.approx(function(x, labels), rel=1e-6)


def test_class_statistics_as_of_every_class() -> None:
    x, labels = sample()
    metric = ClassStatistics(5, 9)
    metric.update(x[:70], labels[:70])
    metric.update(x[70:], labels[70:])
    statistics = metric.compute()
    for label in range(5):
        rows = x[labels == label].double()
        assert statistics["counts"][label] == len(rows)
        if len(rows):
            np.testing.assert_allclose(statistics["means"][label], rows.mean(0), rtol=1e-12)
            np.testing.assert_allclose(statistics["variances"][label], rows.var(0, correction=0), rtol=1e-10)
        else:
            assert statistics["means"][label].isnan().all()


def test_leep_of_batches() -> None:
    x, labels = sample()
    probabilities = x.softmax(1)
    metric = LEEP()
    metric.update(probabilities[:50], labels[:50])
    metric.update(probabilities[50:], labels[50:])
    assert float(metric.compute()) == pytest.approx(leep(probabilities, labels), rel=1e-12)


def test_sums_stay_in_float64() -> None:
    metric = HScore(5, 9)
    torch.nn.ModuleList([metric]).half().float()
    metric.update(*sample())
    assert metric.moments.dtype == torch.float64


@pytest.mark.parametrize(
    ("metric", "function"),
    [*CASES, (LEEP(), lambda x, y: leep(x.softmax(1), y))],
)
def test_setting_a_precision_leaves_the_states(metric: Metric, function: Any) -> None:
    x, labels = sample()
    inputs = x.softmax(1) if isinstance(metric, LEEP) else x
    metric.reset()
    assert metric.set_dtype(torch.float16) is metric
    metric.update(inputs[:50], labels[:50])
    metric.set_dtype(torch.float32)
    metric.update(inputs[50:], labels[50:])
    assert float(metric.compute()) == pytest.approx(function(x, labels), rel=1e-7)


@pytest.mark.parametrize(
    ("probabilities", "labels", "message"),
    [
        (torch.full((9,), 1 / 9), torch.zeros(9).long(), "probabilities must be \\[samples, 3\\], not \\[9\\]"),
        (torch.full((4, 2), 0.5), torch.zeros(4).long(), "probabilities must be \\[samples, 3\\], not \\[4, 2\\]"),
        (torch.full((4, 3), 1 / 3), torch.zeros(3).long(), "labels must be \\[4\\]"),
        (torch.full((4, 3), 1 / 3), torch.zeros(4), "labels must be integers"),
        (torch.full((4, 3), 1 / 3), torch.tensor([0, -1, 3, 2]), "labels must be 0 or more, not -1"),
    ],
)
def test_batches_of_probabilities_that_are_refused(probabilities: Tensor, labels: Tensor, message: str) -> None:
    metric = LEEP()
    metric.update(torch.eye(3), torch.arange(3))
    with pytest.raises(ValueError, match=message):
        metric.update(probabilities, labels)
    assert len(metric.probabilities) == len(metric.labels) == 1
    assert float(metric.compute()) == 0


@pytest.mark.parametrize("counts", [(0, 20), (8, 0), (8, 2.5)])
def test_numbers_of_classes_and_features_that_are_refused(counts: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"num_(classes|features) must be an integer of 1 or more"):
        HScore(*counts)


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        (torch.zeros(4, 8), torch.zeros(4).long(), "features must be \\[samples, 9\\]"),
        (torch.zeros(4, 9), torch.zeros(3).long(), "labels must be \\[4\\]"),
        (torch.zeros(4, 9), torch.zeros(4), "labels must be integers"),
        (torch.zeros(4, 9), torch.tensor([0, 1, 5, 2]), "labels must be from 0 to 4, not from 0 to 5"),
        (torch.zeros(4, 9), torch.tensor([0, -1, 3, 2]), "labels must be from 0 to 4, not from -1 to 3"),
        (torch.full((4, 9), torch.nan), torch.zeros(4).long(), "features must be finite"),
        (torch.full((4, 9), torch.nan), torch.tensor([0, 1, 5, 2]), "labels must be from 0 to 4, not from 0 to 5"),
    ],
)
def test_batches_that_are_refused(features: Tensor, labels: Tensor, message: str) -> None:
    metric = HScore(5, 9)
    with pytest.raises(ValueError, match=message):
        metric.update(features, labels)
    assert not metric.counts.any()


@pytest.mark.filterwarnings("ignore:The ``compute`` method:UserWarning")
def test_nothing_added_is_refused() -> None:
    with pytest.raises(ValueError, match="none have been added"):
        GBC(5, 9).compute()
    with pytest.raises(ValueError, match="none have been added"):
        LEEP().compute()
    with pytest.raises(ValueError, match="covariance must be"):
        GBC(5, 9, covariance="full")  # type: ignore[arg-type]
