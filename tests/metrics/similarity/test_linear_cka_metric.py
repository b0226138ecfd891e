"""The torchmetrics class against the function on all rows at once."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

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


def fed(x: Tensor, y: Tensor, batch: int, debiased: bool, **options: Any) -> LinearCKA:
    metric = LinearCKA(debiased, **options)
    for part in zip(x.split(batch), y.split(batch), strict=True):
        metric.update(*part)
    return metric


def far_first(values: Tensor) -> Tensor:
    return torch.cat([10 * values[:1], values[1:]])


@BOTH
@pytest.mark.parametrize(
    ("widths", "batch", "change"),
    [
        *[(widths, batch, Tensor.float) for widths in ((20, 9), (100, 80), (1, 1)) for batch in (1, 7, 60)],
        *[((20, 9), 7, change) for change in (Tensor.half, Tensor.bfloat16, Tensor.int, far_first)],
    ],
)
def test_any_split_equals_all_rows_at_once(
    widths: tuple[int, int], batch: int, change: Callable[[Tensor], Tensor], debiased: bool
) -> None:
    x, y = rows(60, *widths)
    x, y = change(x), y if change is far_first else change(y)
    value = fed(x, y, batch, debiased).compute()
    assert value.dtype == torch.float64
    assert value.shape == ()
    assert value.item() == pytest.approx(linear_cka(x, y, debiased), abs=1e-9)


@BOTH
@pytest.mark.parametrize("batch", [1, 3, 10, 59])
def test_forward_gives_the_value_of_the_batch_if_there_is_one_and_keeps_one_sum(batch: int, debiased: bool) -> None:
    x, y = rows()
    metric = LinearCKA(debiased)
    for a, b in zip(x.split(batch), y.split(batch), strict=True):
        value = metric(a, b)
        assert value.dtype == torch.float64
        expected = linear_cka(a, b, debiased) if len(a) >= (4 if debiased else 2) else float("nan")
        assert value.item() == pytest.approx(expected, abs=1e-9, nan_ok=True)
        assert len(metric.moments) == 1
    assert metric.compute().item() == pytest.approx(linear_cka(x, y, debiased), abs=1e-9)


@BOTH
@pytest.mark.parametrize("dist_sync_on_step", [False, True])
def test_forward_of_a_constant_or_empty_batch(dist_sync_on_step: bool, debiased: bool) -> None:
    x, y = rows()
    x[20:30] = x[20]
    metric = LinearCKA(debiased, dist_sync_on_step=dist_sync_on_step)
    for part, defined in ((slice(0, 20), True), (slice(20, 30), False), (slice(0, 0), False), (slice(30, 60), True)):
        assert metric(x[part], y[part]).isnan() != defined
    assert metric.compute().item() == pytest.approx(linear_cka(x, y, debiased), abs=1e-9)
    metric.reset()
    assert metric(x[:1], y[:1]).isnan()
    with pytest.raises(ValueError, match=r"^x: 1 rows, but"):
        metric.compute()


@BOTH
@pytest.mark.filterwarnings("ignore:The ``compute`` method:UserWarning")
def test_merging_metrics(debiased: bool) -> None:
    x, y = rows()
    whole, empty = LinearCKA(debiased), LinearCKA(debiased)
    parts = [fed(x[part], y[part], 3, debiased) for part in (slice(0, 1), slice(1, 40), slice(40, 60))]
    for part in (parts[0], empty, *parts[1:]):
        whole.merge_state(part)
    # Memory depends on the widths alone.
    assert [moment.numel() for moment in whole.moments] == [moment.numel() for moment in parts[0].moments]
    assert whole.compute().item() == pytest.approx(linear_cka(x, y, debiased), abs=1e-9)
    whole.update(x, y)
    assert parts[2].compute().item() == pytest.approx(linear_cka(x[40:], y[40:], debiased), abs=1e-9)


@BOTH
@pytest.mark.parametrize("rank", [0, 1, 2])
def test_processes_are_merged(rank: int, debiased: bool) -> None:
    x, y = rows()
    slices = [slice(0, 25), slice(25, 60), slice(0, 0)]
    states = [fed(x[part], y[part], 4, debiased).moments for part in slices]

    def gather(state: Tensor, group: object) -> list[Tensor]:
        # Torchmetrics gathers this from a process without a state.
        gathered = [part[0] if part else torch.tensor([], dtype=torch.float64) for part in states]
        assert torch.equal(state, gathered[rank])
        assert state.dtype == torch.float64
        return gathered

    options: dict[str, Any] = {"dist_sync_fn": gather, "distributed_available_fn": lambda: True}
    metric = fed(x[slices[rank]], y[slices[rank]], 4, debiased, **options)
    assert metric.compute().item() == pytest.approx(linear_cka(x, y, debiased), abs=1e-9)
    assert [part.numel() for part in metric.moments] == [part.numel() for part in states[rank]]


@BOTH
@pytest.mark.filterwarnings("ignore:The ``compute`` method:UserWarning")
def test_reset_pickle_and_move(debiased: bool) -> None:
    x, y = rows()
    empty = fed(x[:0], y[:0], 7, debiased)
    with pytest.raises(ValueError, match=r"^x: no rows so far"):
        empty.compute()
    metric = fed(x + 5 * y.mean(), y, 7, debiased)
    metric.reset()
    metric.update(x[:30], y[:30])
    metric = pickle.loads(pickle.dumps(metric)).to("cpu").float()
    metric.update(x[30:], y[30:])
    assert metric.compute().dtype == torch.float64
    assert metric.compute().item() == pytest.approx(linear_cka(x, y, debiased), abs=1e-9)


@BOTH
@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (torch.ones(6, 2), torch.randn(6, 3), "^x: .* undefined where all rows are equal"),
        (torch.randn(6, 2), torch.ones(6, 3), "^y: .* undefined where all rows are equal"),
        (torch.randn(1, 2), torch.randn(1, 3), "^x: 1 rows, but .* needs at least [24]"),
        (torch.randn(6, 2), torch.full((6, 3), torch.nan), "^y: contains NaN or infinity"),
        (torch.tensor([[0.0], [torch.inf], [1], [2]]), torch.randn(4, 3), "^x: contains NaN or infinity"),
    ],
)
def test_undefined(x: Tensor, y: Tensor, message: str, debiased: bool) -> None:
    with pytest.raises(ValueError, match=message):
        fed(x, y, 2, debiased).compute()
    with pytest.raises(ValueError, match=r"^y: debiased CKA is undefined"):
        fed(torch.randn(6, 3), torch.eye(6), 2, True).compute()


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (torch.randn(6), torch.randn(6, 3), r"^x: torch.float32 of shape \[6\]"),
        (torch.randn(6, 2), torch.randn(6, 3, dtype=torch.complex64), "^y: torch.complex64"),
        (torch.randn(6, 2).numpy(), torch.randn(6, 3), "^x: ndarray, but a tensor"),
        (torch.randn(6, 2), [[1.0, 2.0, 3.0]], "^y: list, but a tensor"),
        (torch.randn(6, 2), torch.randn(5, 3), "^y: 5 rows, but x has 6"),
        (torch.randn(6, 2), torch.randn(6, 4), r"^x and y: widths \(2, 4\), but earlier batches had \(2, 3\)"),
    ],
)
def test_refused_batches(x: Any, y: Any, message: str) -> None:
    before = torch.randn(7, 2), torch.randn(7, 3)
    metric = fed(*before, 3, False)
    for take in (metric.update, metric):
        with pytest.raises(ValueError, match=message):
            take(x, y)
        assert metric.compute().item() == pytest.approx(linear_cka(*before), abs=1e-9)


def test_a_state_that_was_loaded_brings_its_widths() -> None:
    x, y = rows(60, 3, 2)
    metric, other = fed(y, x, 7, False), fed(x, y, 7, False)
    other.persistent(True)
    metric.load_state_dict(other.state_dict())
    with pytest.raises(ValueError, match=r"widths \(2, 3\), but earlier batches had \(3, 2\)"):
        metric.update(y, x)
    metric.update(x, y)
    other.update(x, y)
    assert torch.equal(metric.moments[0], other.moments[0])
