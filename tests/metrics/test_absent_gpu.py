"""Metrics take batches on a GPU, without one: the states lie there, and no batch is waited for."""

from collections.abc import Callable

import pytest
import torch
from torchmetrics import Metric

from headstart.metrics.similarity.linear_cka_metric import LinearCKA
from headstart.metrics.transferability.transferability_metrics import GBC, LEEP, HScore, LogME
from headstart.tests.material.absent_gpu import GPU, absent_gpu

FEATURES = 9
KINDS: tuple[Callable[..., Metric], ...] = (GBC, HScore, LogME, LEEP, LinearCKA)


def _feed(metric: Metric, samples: int) -> None:
    rows = torch.rand(samples, FEATURES, device=GPU)
    other = rows[:, :4] if isinstance(metric, LinearCKA) else torch.zeros(samples, dtype=torch.long, device=GPU)
    metric.update(rows, other)


def _states(metric: Metric) -> list[torch.Tensor]:
    states = metric.metric_state.values()
    return [tensor for state in states for tensor in (state if isinstance(state, list) else [state])]


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_not_waited_for(kind: Callable[..., Metric]) -> None:
    metric = kind()
    with absent_gpu() as waits:
        metric.to(GPU)
        for samples in (1, 4, 300, 300):
            waits.noted.clear()
            _feed(metric, samples)
            assert not waits.noted
        states = _states(metric)
        assert states
        assert {state.device for state in states} == {GPU}
