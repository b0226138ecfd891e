"""The torchmetrics class against the function on all rows at once."""

import pickle
from typing import Any

import pytest
import torch
from torch import Tensor

from headstart.metrics import linear_cka
from headstart.metrics.similarity.linear_cka_metric import LinearCKA

BOTH = pytest.mark.parametrize("debiased", [False, True])


def rows(n: int = 60) -> tuple[Tensor, Tensor]:
    """Draw float32 embeddings that share some structure and lie far from the origin."""
    generator = torch.Generator().manual_seed(0)
    shared = torch.randn(n, 4, generator=generator)
    x, y = (
        shared @ torch.randn(4, d, generator=generator) + torch.randn(n, d, generator=generator) + 1000 for d in (20, 9)
    )
    return x, y


def fed(x: Tensor, y: Tensor, batch: int, debiased: bool, **options: Any) -> LinearCKA:
    metric = LinearCKA(debiased, **options)
    for part in zip(x.split(batch), y.split(batch), strict=True):
        metric.update(*part)
    return metric


@BOTH
@pytest.mark.parametrize("batch", [1, 7, 60])
def test_any_split_equals_all_rows_at_once(batch: int, debiased: bool) -> None:
    x, y = rows()
    metric = fed(x, y, batch, debiased)
    metric = pickle.loads(pickle.dumps(metric)).to("cpu").half()
    assert metric.compute().dtype == torch.float64
    assert metric.compute().item() == linear_cka(x, y, debiased)
    metric.reset()
    metric.update(x[:30], y[:30])
    assert metric.compute().item() == linear_cka(x[:30], y[:30], debiased)


@BOTH
def test_forward_gives_the_value_of_the_batch(debiased: bool) -> None:
    x, y = rows()
    metric = LinearCKA(debiased)
    for a, b in zip(x.split(10), y.split(10), strict=True):
        assert metric(a, b).item() == pytest.approx(linear_cka(a, b, debiased), abs=1e-12)
    assert metric.compute().item() == linear_cka(x, y, debiased)


@BOTH
def test_processes_are_joined(debiased: bool) -> None:
    x, y = rows()
    states = {part.shape[1]: [part[:25], part[25:]] for part in (x, y)}

    def gather(state: Tensor, group: object) -> list[Tensor]:
        return states[state.shape[1]]

    options: dict[str, Any] = {"dist_sync_fn": gather, "distributed_available_fn": lambda: True}
    metric = fed(x[:25], y[:25], 4, debiased, **options)
    assert metric.compute().item() == linear_cka(x, y, debiased)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (torch.randn(6), torch.randn(6, 3), r"^x must be \[batch, 2\], not \[6\]"),
        (torch.randn(6, 2), torch.randn(5, 3), "^y: 5 rows, but x has 6"),
        (torch.randn(6, 2), torch.randn(6, 4), r"^y must be \[batch, 3\], not \[6, 4\]"),
    ],
)
def test_refused_batches(x: Tensor, y: Tensor, message: str) -> None:
    before = torch.randn(7, 2), torch.randn(7, 3)
    metric = fed(*before, 3, False)
    with pytest.raises(ValueError, match=message):
        metric.update(x, y)
    assert metric.compute().item() == linear_cka(*before)


@pytest.mark.filterwarnings("ignore:The ``compute`` method:UserWarning")
def test_nothing_so_far() -> None:
    with pytest.raises(ValueError, match=r"^x: no rows so far"):
        LinearCKA().compute()
