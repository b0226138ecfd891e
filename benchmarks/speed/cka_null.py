"""CKA with nulls and intervals against CKA alone, and against sampled permutations: 200 embeddings of 1,000 stimuli."""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from headstart.benchmarks.speed.cka import MODELS, STIMULI, random_embeddings
from headstart.benchmarks.speed.frame import print_times, time_in_turn, timed
from headstart.metrics import biased_and_debiased_cka, calibrated_cka, cka_intervals
from headstart.metrics.similarity.cka_null import LEVEL

PERMUTATIONS = 200
PACKAGE = "calibrated_similarity"


def main() -> None:
    """Print processor times, in turn, of the matrix alone and with more; and of a pair by sampled permutations."""
    embeddings = random_embeddings(np.random.default_rng(0))
    functions: dict[str, Callable[[], object]] = {
        "matrix": partial(biased_and_debiased_cka, embeddings),
        "matrix with nulls": partial(calibrated_cka, embeddings),
        "intervals": partial(cka_intervals, embeddings),
    }
    seconds = time_in_turn(functions, clock=time.process_time)
    print_times(seconds, "matrix")

    if importlib.util.find_spec(PACKAGE) is None:
        print("sampled permutations are left out: pip install calibrated-similarity")
        return
    _compare_with_permutations(seconds["matrix with nulls"] / (MODELS * (MODELS - 1) / 2))


def _compare_with_permutations(pair_seconds: float) -> None:
    """Print quantile, p and calibrated value of one pair by both, and the time over that of a pair of the matrix."""
    calibrate = importlib.import_module(PACKAGE).calibrate
    generator = np.random.default_rng(1)
    x = generator.standard_normal((STIMULI, 768)) * np.arange(1, 769) ** -0.5
    for share in (0, 0.5):
        y = share * x[:, :512] + generator.standard_normal((STIMULI, 512)) * np.arange(1, 513) ** -0.5
        permute = torch.Generator().manual_seed(0)
        pair = partial(calibrate, torch.from_numpy(x), torch.from_numpy(y), _linear_cka)
        seconds, (score, p, quantile) = timed(partial(pair, K=PERMUTATIONS, generator=permute), clock=time.process_time)
        ours = calibrated_cka([x, y])
        print(
            f"calibrated {ours.calibrated[0, 1]:.4f} here, {float(score):.4f} by {PERMUTATIONS} permutations; "
            f"{LEVEL:.0%} quantile {ours.null_quantile[0, 1]:.4f} and {float(quantile):.4f}; "
            f"p {ours.p[0, 1]:.1e} and {float(p):.1e}; "
            f"{seconds:.1f} s, {seconds / pair_seconds:.0f} times the {1000 * pair_seconds:.2f} ms of a pair here"
        )


def _linear_cka(x: Tensor, y: Tensor) -> Tensor:
    """Compute linear CKA from the features, which is the cheaper form here."""
    x, y = x - x.mean(0), y - y.mean(0)
    cka: Tensor = (x.T @ y).square().sum() / (torch.linalg.norm(x.T @ x) * torch.linalg.norm(y.T @ y))
    return cka


if __name__ == "__main__":
    main()
