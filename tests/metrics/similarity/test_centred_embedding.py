"""Linear CKA accepts embeddings of some types and shapes, and names the fault of others."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from headstart.metrics import linear_cka, mean_pairwise_cka, pairwise_cka
from headstart.metrics.similarity.centred_embedding import CentredEmbedding

BOTH = pytest.mark.parametrize("debiased", [False, True])
GOOD = np.random.default_rng(0).standard_normal((6, 3))


@BOTH
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64])
def test_tensors_equal_arrays_of_float64(dtype: torch.dtype, debiased: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = ((10 * torch.randn(12, d, generator=generator)).to(dtype) for d in (30, 4))
    expected = linear_cka(x.double().numpy(), y.double().numpy(), debiased)
    assert linear_cka(x, y, debiased) == pytest.approx(expected, abs=1e-12)
    trained = x.clone().requires_grad_() if dtype.is_floating_point else x
    assert linear_cka(trained, y.double().numpy(), debiased) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.uint8, np.int64, np.bool_, np.longdouble])
def test_arrays_of_any_real_type(dtype: type[np.generic]) -> None:
    generator = np.random.default_rng(0)
    x, y = (generator.integers(0, 2 if dtype is np.bool_ else 100, (20, d)).astype(dtype) for d in (5, 30))
    assert linear_cka(x, y) == pytest.approx(linear_cka(x.astype(np.float64), y.astype(np.float64)), abs=1e-12)


def test_tensors_on_the_cpu_are_not_copied() -> None:
    x = torch.randn(10, 3)
    assert CentredEmbedding.read(x, "x", False).values.ctypes.data == x.data_ptr()


@BOTH
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (GOOD[0], r"shape \[3\], but a matrix \[stimuli, dim\] is needed"),
        (GOOD[:5], r"5 rows, but (x|embeddings\[0\]) has 6"),
        (GOOD[:1], "1 rows, but .* needs at least [24]"),
        (GOOD[:0], "0 rows, but .* needs at least [24]"),
        (GOOD + 1j, "must be real numbers, not complex128"),
        (np.where(GOOD[2, 1] == GOOD, np.nan, GOOD), "contains NaN or infinity"),
        (np.full((6, 3), 1e8 / 3, dtype=np.float32), "undefined where all rows are equal"),
        (np.repeat(GOOD[:1], 6, axis=0), "undefined where all rows are equal"),
        (GOOD[:, :0], r"shape \[6, 0\]"),
        (GOOD * 1e-90, "undefined where all rows are equal"),
        (GOOD * 1e78, "fourth powers exceed float64"),
        (np.full((6, 3), 1.7e308), "whose sum exceeds float64"),
        (np.ma.masked_greater(GOOD, 1), "must not be a masked array"),
        ([[1.0, 2.0], [3.0]], "lists whose lengths agree"),
        (torch.ones(6, 3).to(torch.float8_e4m3fn), "16 bits and more, not torch.float8_e4m3fn"),
        (torch.eye(6).to_sparse(), "dense tensor .* not a torch.sparse_coo one on device cpu"),
        (torch.empty(6, 3, device="meta"), "dense tensor .* on device meta"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_refused(bad: Any, message: str, debiased: bool) -> None:
    with pytest.raises(ValueError, match=rf"^y[: ].*{message}"):
        linear_cka(GOOD, bad, debiased)
    with pytest.raises(ValueError, match=rf"^embeddings\[2\][: ].*{message}"):
        pairwise_cka([GOOD, GOOD, bad], debiased)


@pytest.mark.parametrize("n", [10, 100_000])
def test_constant_rows_are_noticed_whatever_the_rounding_of_the_mean(n: int) -> None:
    constant = np.full((n, 3), 0.1) * [1, 1e6, 1e-6]
    with pytest.raises(ValueError, match=r"^x: .* undefined where all rows are equal"):
        linear_cka(constant, np.random.default_rng(0).standard_normal((n, 2)))


LAST_BITS = [(kind, value) for kind in (np.float16, np.float32, np.float64) for value in (1, 1.001, 1.999, -37.5, 3e-3)]


@pytest.mark.parametrize(("kind", "value"), LAST_BITS)
def test_rows_that_differ_in_the_last_bit_alone_are_refused(kind: type[np.floating], value: float) -> None:
    first = np.array([value, 2 * value, 0, 5], dtype=kind)
    one, two = (np.tile(first, (6, 1)) for _ in range(2))
    for rows, steps in ((one, 1), (two, 2)):
        for _ in range(steps):
            rows[::2, 0] = np.nextafter(rows[::2, 0], kind(2 * value))
    with pytest.raises(ValueError, match=rf"^y: .* all rows are equal, up to rounding to {np.dtype(kind)}$"):
        linear_cka(GOOD, one)
    assert 0 < linear_cka(GOOD, two) <= 1
    # The same numbers in a type that tells them apart.
    if kind is not np.float64:
        assert 0 < linear_cka(GOOD, one.astype(np.float64)) <= 1
    # Other columns that are constant do not hide one that is not.
    assert 0 < linear_cka(GOOD, np.hstack([one, GOOD[:, :1].astype(kind)])) <= 1


@pytest.mark.parametrize("bad", [np.eye(6), np.eye(6)[:, :1], 3 * np.eye(6) + 100])
def test_debiased_is_undefined_where_its_self_term_is_zero(bad: NDArray[np.float64]) -> None:
    assert 0 < linear_cka(GOOD, bad) < 1
    with pytest.raises(ValueError, match=r"^y: debiased CKA is undefined"):
        linear_cka(GOOD, bad, debiased=True)
    with pytest.raises(ValueError, match=r"^embeddings\[1\]: debiased CKA is undefined"):
        pairwise_cka([GOOD, bad], debiased=True)


@pytest.mark.parametrize("far", [1e4, 1e6, 1e7])
def test_debiased_with_one_row_far_from_all_others_is_exact_or_refused(far: float) -> None:
    x = GOOD.copy()
    x[0] += far
    exact = fractions_hsic(x, GOOD) / math.sqrt(fractions_hsic(x, x) * fractions_hsic(GOOD, GOOD))
    assert abs(exact) > 0.01
    if far < 1e5:
        assert linear_cka(x, GOOD, debiased=True) == pytest.approx(exact, abs=1e-6)
    else:
        # The rest of the self term consists of the last digits of numbers 1e11 times as large.
        with pytest.raises(ValueError, match=r"^x: debiased CKA is undefined or lost to rounding: .* is \de-1"):
            linear_cka(x, GOOD, debiased=True)


def fractions_hsic(x: NDArray[np.float64], y: NDArray[np.float64]) -> Fraction:
    """Compute equation 5 of Song et al., JMLR 2012, up to a factor, without rounding."""
    n, k, l = len(x), *(z @ z.T for z in (np.vectorize(Fraction, otypes=[object])(values) for values in (x, y)))  # noqa: E741
    np.fill_diagonal(k, 0)
    np.fill_diagonal(l, 0)
    crossed = Fraction(2, n - 2) * (k @ l).sum()
    return Fraction((k * l).sum() + k.sum() * l.sum() / ((n - 1) * (n - 2)) - crossed)


@pytest.mark.parametrize(("debiased", "fewest"), [(False, 2), (True, 4)])
def test_fewest_rows(debiased: bool, fewest: int) -> None:
    generator = np.random.default_rng(0)
    x, y = generator.standard_normal((fewest, 5)), generator.standard_normal((fewest, 3))
    assert -1 <= linear_cka(x, y, debiased) <= 1
    with pytest.raises(ValueError, match=f"^x: {fewest - 1} rows, but .* needs at least {fewest}"):
        linear_cka(x[1:], y[1:], debiased)
    with pytest.raises(ValueError, match=r"^embeddings: 1 given, at least 2"):
        mean_pairwise_cka([x], debiased)
