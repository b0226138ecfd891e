"""The torchmetrics class against the function on all rows at once."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torchmetrics import MetricCollection

from headstart.metrics import linear_cka
from headstart.metrics.similarity.linear_cka_metric import LinearCKA

BOTH = pytest.mark.parametrize("debiased", [False, True])


def rows(n: int = 60, dx: int = 20, dy: int = 9) -> tuple[Tensor, Tensor]:
    """Draw float32 embeddings that share some structure and lie far from the origin."""
    generator = torch.Generator().manual_seed(0)
    shared = torch.randn(n, 4, generator=generator)
    x, y = (
        shared @ torch.randn(4, d, generator=generator) + torch.randn(n, d, generator=generator) + 1000
        for d in (dx, dy)
    )
    return x, y


def collect(x: Tensor, y: Tensor, batch: int, debiased: bool) -> LinearCKA:
    metric = LinearCKA(debiased)
    for part in zip(x.split(batch), y.split(batch), strict=True):
        metric.update(*part)
    return metric


@BOTH
@pytest.mark.parametrize("change", [Tensor.float, Tensor.half, Tensor.bfloat16, Tensor.int])
def test_any_split_equals_all_rows_at_once(change: Callable[[Tensor], Tensor], debiased: bool) -> None:
    x, y = map(change, rows())
    for batch in (1, 7, 60):
        value = collect(x, y, batch, debiased).compute()
        assert (value.dtype, value.shape) == (torch.float64, ())
        assert value.item() == linear_cka(x, y, debiased)


@BOTH
@pytest.mark.parametrize("batch", [1, 3, 59])
def test_forward_gives_the_value_of_the_batch_if_there_is_one(batch: int, debiased: bool) -> None:
    x, y = rows()
    x[20:30] = x[20]
    metric = LinearCKA(debiased)
    for a, b in zip(x.split(batch), y.split(batch), strict=True):
        value = metric(a, b)
        is_defined = len(a) >= (4 if debiased else 2) and bool((a != a[0]).any())
        assert value.item() == pytest.approx(linear_cka(a, b, debiased) if is_defined else float("nan"), nan_ok=True)
        # Lightning logs this.
        assert value is metric._forward_cache
    assert metric.compute().item() == linear_cka(x, y, debiased)


def test_metrics_of_a_collection_are_each_what_it_is_alone() -> None:
    x, y = rows()
    collection = MetricCollection({"biased": LinearCKA(), "debiased": LinearCKA(debiased=True)})
    batches = [*zip(x.split(15), y.split(15), strict=True)]
    steps: list[Callable[..., Any]] = [collection.update, collection.forward, collection.forward, collection.update]
    for step, batch in zip(steps, batches, strict=True):
        step(*batch)
    expected = {"biased": linear_cka(x, y), "debiased": linear_cka(x, y, debiased=True)}
    assert {name: value.item() for name, value in collection.compute().items()} == expected


@BOTH
@pytest.mark.filterwarnings("ignore:The ``compute`` method:UserWarning")
def test_merged_pickled_moved_and_reset(debiased: bool) -> None:
    x, y = rows()
    expected = linear_cka(x, y, debiased)
    whole = LinearCKA(debiased)
    for part in (slice(0, 1), slice(1, 40), slice(40, 60)):
        whole.merge_state(collect(x[part], y[part], 3, debiased))
    assert whole.compute().item() == pytest.approx(expected, abs=1e-12)
    moved = pickle.loads(pickle.dumps(whole)).to("cpu").half()
    assert moved.compute().item() == pytest.approx(expected, abs=1e-12)
    whole.reset()
    with pytest.raises(ValueError, match=r"^x: no rows so far"):
        whole.compute()


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (torch.randn(6), torch.randn(6, 3), r"^x: must be \[batch, 2\], not \[6\]"),
        (torch.randn(6, 2), torch.randn(5, 3), "^y: 5 rows, but x has 6"),
        (torch.randn(6, 2), torch.randn(6, 4), r"^y: must be \[batch, 3\], not \[6, 4\]"),
    ],
)
def test_refused_batches(x: Any, y: Any, message: str) -> None:
    before = torch.randn(7, 2), torch.randn(7, 3)
    metric = collect(*before, 3, False)
    for take in (metric.update, metric):
        with pytest.raises(ValueError, match=message):
            take(x, y)
        assert metric.compute().item() == linear_cka(*before)
