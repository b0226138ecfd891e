"""CKA with nulls and intervals against CKA alone, and against drawn permutations: 200 embeddings of 1,000 stimuli."""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headstart.benchmarks.cka import MODELS, STIMULI, WIDTHS
from headstart.metrics import biased_and_debiased_cka, calibrated_cka, cka_intervals
from headstart.metrics.similarity.cka_null import LEVEL

T = TypeVar("T")
REPEATS = 3
PERMUTATIONS = 200
PACKAGE = "calibrated_similarity"


def main() -> None:
    """Print processor times, in turn, of the matrix alone and with more; and of a pair by drawn permutations."""
    generator = np.random.default_rng(0)
    widths = generator.integers(*WIDTHS, MODELS, endpoint=True)
    embeddings = [generator.standard_normal((STIMULI, d), dtype=np.float32) for d in widths]
    functions: dict[str, Callable[[list[NDArray[np.float32]]], object]] = {
        "matrix": biased_and_debiased_cka,
        "matrix with nulls": calibrated_cka,
        "intervals": cka_intervals,
    }
    spent: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(REPEATS):
        for name, function in functions.items():
            spent[name].append(_processor_time(lambda: function(embeddings))[0])  # noqa: B023
    medians = {name: float(np.median(seconds)) for name, seconds in spent.items()}
    for name, seconds in medians.items():
        print(f"{name}: {seconds:.1f} s, ratio {seconds / medians['matrix']:.2f}", flush=True)
    if importlib.util.find_spec(PACKAGE) is None:
        print("drawn permutations are left out: pip install calibrated-similarity")
        return
    _compare_with_permutations(medians["matrix with nulls"] / (MODELS * (MODELS - 1) / 2))


def _compare_with_permutations(pair_seconds: float) -> None:
    """Print quantile, p and calibrated value of one pair by both, and the time over that of a pair of the matrix."""
    calibrate = importlib.import_module(PACKAGE).calibrate
    generator = np.random.default_rng(1)
    x = generator.standard_normal((STIMULI, 768)) * np.arange(1, 769) ** -0.5
    for share in (0, 0.5):
        y = share * x[:, :512] + generator.standard_normal((STIMULI, 512)) * np.arange(1, 513) ** -0.5
        tensors, drawn = (torch.from_numpy(x), torch.from_numpy(y)), torch.Generator().manual_seed(0)
        seconds, (score, p, quantile) = _processor_time(
            lambda: calibrate(*tensors, _linear_cka, K=PERMUTATIONS, generator=drawn)  # noqa: B023
        )
        found = calibrated_cka([x, y])
        print(
            f"calibrated {found.calibrated[0, 1]:.4f} here, {float(score):.4f} by {PERMUTATIONS} permutations; "
            f"{LEVEL:.0%} quantile {found.null_quantile[0, 1]:.4f} and {float(quantile):.4f}; "
            f"p {found.p[0, 1]:.1e} and {float(p):.1e}; "
            f"{seconds:.1f} s, {seconds / pair_seconds:.0f} times the {1000 * pair_seconds:.2f} ms of a pair here"
        )


def _linear_cka(x: Tensor, y: Tensor) -> Tensor:
    """Compute linear CKA from the features, which is the cheaper form here."""
    x, y = x - x.mean(0), y - y.mean(0)
    cka: Tensor = (x.T @ y).square().sum() / (torch.linalg.norm(x.T @ x) * torch.linalg.norm(y.T @ y))
    return cka


def _processor_time(function: Callable[[], T]) -> tuple[float, T]:
    """Give the processor's seconds of a call, which other work on the machine changes little, and what it returns."""
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


if __name__ == "__main__":
    main()
