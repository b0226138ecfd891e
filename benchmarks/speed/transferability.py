"""Transferability metrics beside their floors: one Gram product and one eigendecomposition, timed in the same run."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import jsonargparse
import numpy as np
from numpy.typing import NDArray
from sklearn.mixture import GaussianMixture

from headstart.benchmarks.speed.frame import overlapping_classes, time_in_turn, timed
from headstart.evaluation.sources.metric_names import DEFAULT_METRICS
from headstart.metrics.transferability.catalogue import METRICS
from headstart.metrics.transferability.feature_statistics import FeatureStatistics
from headstart.metrics.transferability.gaussian_mixture import fit_mixture, k_means
from headstart.metrics.transferability.gbc import VARIANCE_FLOOR, Covariance, gbc
from headstart.metrics.transferability.inputs import Inputs
from headstart.metrics.transferability.left_out import divide
from headstart.metrics.transferability.n_leep import n_leep

REPEATS = 3
LOOP_CLASSES = 50
QUICK_METRICS = [name for name in DEFAULT_METRICS if name != "n_leep"]
SHARED = ("h_score", "h_score_shrunk", "log_me", "trans_rate", "gbc")


def main(samples: int = 10_000, features: int = 2048, classes: int = 100, probe: bool = False) -> None:
    """Print the time of every metric, in seconds and over its floor, and of GBC and N-LEEP over plain loops.

    Args:
        samples: Number of samples.
        features: Number of features.
        classes: Number of target classes.
        probe: Whether the linear probe and PACTran are timed, too, which take minutes.
    """
    x, labels = _features(samples, features, classes)
    probabilities = np.exp(x[:, :1000] - x[:, :1000].max(1)[:, None])
    probabilities /= probabilities.sum(1)[:, None]
    centred = x - x.mean(0)
    gram = centred.T @ centred

    def score(*names: str) -> list[float]:
        inputs = Inputs(x, labels, probabilities)
        return [METRICS[name].compute(inputs) for name in names]

    functions: dict[str, Callable[[], object]] = {
        "Gram product": lambda: centred.T @ centred,
        "eigendecomposition": partial(np.linalg.eigh, gram),
        "product of all pairs of samples": lambda: centred @ centred.T,
        **{METRICS[name].title: partial(score, name) for name in (*QUICK_METRICS, "etran", "ncti")},
        "all five on shared statistics": partial(score, *SHARED),
    }
    best = time_in_turn(functions, REPEATS, min)
    floor = best["Gram product"] + best["eigendecomposition"]
    print(f"{samples} x {features}, {classes} classes, float64, least of {REPEATS}")
    for name, seconds in best.items():
        print(f"{name}: {seconds:.2f} s, {seconds / floor:.2f} of Gram product and eigendecomposition")

    _against_pairs()
    _against_mixture()
    _left_out(x, labels, probabilities)
    for name in ("linear_probe", "pactran") if probe else ():
        print(f"{METRICS[name].title}: {timed(partial(score, name))[0]:.1f} s")


def _left_out(x: NDArray[np.float64], labels: NDArray[np.int64], probabilities: NDArray[np.float64]) -> None:
    """Time all default metrics without a part of the samples, from the statistics of all, and from the rows alone.

    N-LEEP is left out: its mixture takes as long from the remaining rows as from all.
    """
    metrics = [METRICS[name] for name in QUICK_METRICS]
    kept = divide(labels, 10, 0) != 0
    whole = Inputs(x, labels, probabilities)
    scorers = [metric.scorer(whole) for metric in metrics]
    for score in scorers:
        score(kept[whole.order], whole.remaining(kept))
    whole.statistics.gram  # noqa: B018 - computed once for all parts

    def ours() -> list[float]:
        rest, in_order = whole.remaining(kept), kept[whole.order]
        return [timed(partial(score, in_order, rest))[0] for score in scorers]

    def plain() -> list[float]:
        rest = Inputs(x[kept], labels[kept], probabilities[kept])
        return [timed(partial(metric.compute, rest))[0] for metric in metrics]

    mine, theirs = (np.min([way() for _ in range(REPEATS)], axis=0) for way in (ours, plain))
    one, other = mine.sum(), theirs.sum()
    print(f"without a part: {one:.2f} s, from the rows {other:.2f} s, ratio {other / one:.2f}")
    for metric, one, other in zip(metrics, mine, theirs, strict=True):
        print(f"  {metric.title}: {one:.3f} s, from the rows {other:.3f} s")


def _against_pairs() -> None:
    """Time GBC of 1,000 classes in 64 dimensions, and a loop over some of the pairs."""
    x, labels = _features(20_000, 64, 1000)
    forms: tuple[Covariance, ...] = ("spherical", "diagonal")
    for covariance in forms:
        ours = _least(partial(gbc, x, labels, covariance, pca=None))
        loop = _pair_loop(x, labels, covariance)
        print(f"GBC, {covariance}, 1,000 classes: {ours:.2f} s, pair loop {loop:.1f} s, ratio {loop / ours:.0f}")


def _pair_loop(x: NDArray[np.float64], labels: NDArray[np.int64], covariance: str) -> float:
    """Return the seconds of a loop over all ordered pairs, extrapolated from the first classes to all."""
    groups = [x[labels == label] for label in np.unique(labels)]
    means, variances = [g.mean(0) for g in groups], [np.maximum(g.var(0), VARIANCE_FLOOR) for g in groups]
    if covariance == "spherical":
        variances = [np.full_like(v, v.mean()) for v in variances]

    def overlap(i: int, j: int) -> float:
        middle = (variances[i] + variances[j]) / 2
        distance = ((means[i] - means[j]) ** 2 / middle).sum() / 8
        spread = np.log(middle).sum() - (np.log(variances[i]).sum() + np.log(variances[j]).sum()) / 2
        return math.exp(-distance - spread / 2)

    pairs = [(i, j) for i in range(LOOP_CLASSES) for j in range(len(groups)) if i != j]
    return timed(lambda: sum(overlap(i, j) for i, j in pairs))[0] * len(groups) / LOOP_CLASSES


def _against_mixture() -> None:
    """Time the mixture of N-LEEP, and scikit-learn's when it is given the same clusters and needs no k-means."""
    x, labels = _features(5000, 256, 40, decay=0.25)
    shared = FeatureStatistics(x, labels)
    spectrum = shared.spectrum.eigenvalues
    axes = int(np.searchsorted(np.cumsum(spectrum) / spectrum.sum(), 0.8)) + 1
    rows, components = np.ascontiguousarray(shared.principal_components(axes)), 200
    clusters, clustering = k_means(rows, components, 0), _least(lambda: k_means(rows, components, 0))
    parts = [rows[clusters == k] for k in range(components)]
    ridge = 1e-6 * np.eye(axes)
    precisions = np.stack([np.linalg.inv(np.cov(part, rowvar=False, ddof=0) + ridge) for part in parts])
    reference = GaussianMixture(
        components,
        weights_init=np.array([len(part) for part in parts]) / len(rows),
        means_init=np.stack([part.mean(0) for part in parts]),
        # It checks that they are symmetric, which inverses are but for rounding.
        precisions_init=(precisions + precisions.transpose(0, 2, 1)) / 2,
        random_state=0,
    )
    ours, theirs = _least(lambda: fit_mixture(rows, components, 0)), _least(lambda: reference.fit(rows))
    print(
        f"mixture of {components} Gaussians in {axes} dimensions, 5,000 samples: {ours:.2f} s, of which k-means "
        f"{clustering:.2f} s, log likelihood {fit_mixture(rows, components, 0)[1]:.6f}; scikit-learn "
        f"{theirs:.2f} s, {reference.score(rows):.6f}; ratio {theirs / ours:.1f}; "
        f"N-LEEP with everything {_least(lambda: n_leep(x, labels)):.2f} s"
    )


def _features(
    samples: int, features: int, classes: int, decay: float = 0.5
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rows, labels = overlapping_classes(np.random.default_rng(0), samples, features, classes, decay)
    return 10 * rows, labels


def _least(function: Callable[[], object]) -> float:
    """Return the least seconds of some calls."""
    return min(timed(function)[0] for _ in range(REPEATS))


if __name__ == "__main__":
    jsonargparse.auto_cli(main)
