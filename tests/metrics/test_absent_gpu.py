"""Metrics take batches on a GPU, without one: the states lie there, and the waits do not grow with the batch."""

from collections.abc import Callable

import pytest
import torch
from torchmetrics import Metric

from headstart.metrics.similarity.linear_cka_metric import LinearCKA
from headstart.metrics.transferability.transferability_metrics import GBC, LEEP, ClassStatistics, HScore, LogME
from headstart.tests.material.absent_gpu import GPU, absent_gpu

CLASSES, FEATURES = 5, 9
# Number of waits for a batch: one to check it, none if the check comes in the end.
WAITS: dict[Callable[..., Metric], int] = {ClassStatistics: 1, GBC: 1, HScore: 1, LogME: 1, LEEP: 1, LinearCKA: 0}


def _feed(metric: Metric, samples: int) -> None:
    rows = torch.rand(samples, FEATURES, device=GPU)
    other = rows[:, :4] if isinstance(metric, LinearCKA) else torch.zeros(samples, dtype=torch.long, device=GPU)
    metric.update(rows, other)


def _states(metric: Metric) -> list[torch.Tensor]:
    states = metric.metric_state.values()
    return [tensor for state in states for tensor in (state if isinstance(state, list) else [state])]


@pytest.mark.parametrize("kind", WAITS)
def test_a_batch_is_waited_for_as_often_whatever_its_size(kind: Callable[..., Metric]) -> None:
    metric = kind() if kind in (LEEP, LinearCKA) else kind(CLASSES, FEATURES)
    with absent_gpu() as waits:
        metric.to(GPU)
        for samples in (1, 4, 300, 300):
            waits.noted.clear()
            _feed(metric, samples)
            assert len(waits.noted) == WAITS[kind], f"waits for the GPU: {waits.noted}"
        states = _states(metric)
        assert states
        assert {state.device for state in states} == {GPU}
