"""Independent computations of transferability metrics: formulas written out, released programs, other libraries."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, softmax
from scipy.stats import spearmanr
from sklearn.covariance import LedoitWolf
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.metrics import log_loss, mutual_info_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from headstart import metrics
from headstart.metrics.transferability.gaussian_mixture import k_means
from headstart.metrics.transferability.linear_probe import sample_folds
from headstart.tests.material.discriminants import Labels, Rows, probabilities, within

# Every metric of features and labels, with the options that choose another computation.
OF_FEATURES: dict[str, Callable[..., Any]] = {
    "h_score": metrics.h_score,
    "log_me": metrics.log_me,
    "gbc": metrics.gbc,
    "n_leep": metrics.n_leep,
    "trans_rate": metrics.trans_rate,
    "knn": metrics.knn_accuracy,
    "parc": metrics.parc,
    "sfda": metrics.sfda,
    "etran": metrics.etran_terms,
    "ncti": metrics.ncti_terms,
    "pactran": metrics.pactran,
    "linear_probe": metrics.linear_probe_accuracy,
}


def labelled(
    samples: int, features: int, classes: int = 3, apart: float = 1.0, scale: float = 1.0, seed: int = 0
) -> tuple[Rows, Labels]:
    """Return features of normal classes of unequal sizes, unsorted and away from the origin, and their labels."""
    generator = np.random.default_rng(seed)
    labels = generator.permutation(np.arange(samples) ** 2 // (samples + 1) % classes)
    centres = apart * generator.standard_normal((classes, features))
    return scale * (generator.standard_normal((samples, features)) + centres[labels]) + 1, labels


def h_score(x: Rows, labels: Labels, shrinkage: bool = False) -> float:
    means = np.stack([x[labels == label].mean(0) for label in labels])
    if shrinkage:
        estimate = LedoitWolf().fit(x)
        explained = np.linalg.inv(estimate.covariance_) @ np.cov(means, rowvar=False, ddof=0)
        return float(np.trace(explained) * (1 - estimate.shrinkage_))
    return float(np.trace(np.linalg.pinv(np.cov(x, rowvar=False), rcond=1e-10) @ np.cov(means, rowvar=False)))


def log_me(x: Rows, labels: Labels, variant: str = "published") -> float:
    """Find the same fixed point from the same start by Bayesian ridge regression, or follow the released program."""
    if variant == "released":
        return log_me_by_steps(x, labels, tolerance=1e-3, lacks_terms=True)
    evidences = []
    for label in np.unique(labels):
        ridge = BayesianRidge(
            fit_intercept=False, compute_score=True, alpha_init=1, lambda_init=1, max_iter=3000, tol=1e-12,
            alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0,
        )  # fmt: skip
        evidences.append(ridge.fit(x, (labels == label).astype(float)).scores_[-1])
    return float(np.mean(evidences)) / len(x)


def log_me_by_steps(
    x: Rows,
    labels: Labels,
    iterations: int = 11,
    tolerance: float = 1e-2,
    added: float = 1e-5,
    lacks_terms: bool = False,
) -> float:
    """Iterate as released programs do, by the singular vectors of the features themselves.

    Args:
        x: The features.
        labels: The labels.
        iterations: Steps at most.
        tolerance: Relative change of the ratio of the precisions at which a program stops.
        added: What it adds to both denominators.
        lacks_terms: Whether the determinant lacks the terms of singular values of 0.
    """
    samples, dimensions = x.shape
    left, singular, _ = np.linalg.svd(x, full_matrices=False)
    if samples > dimensions:
        left, singular = left[:, singular > 1e-10], singular[singular > 1e-10]
    squares, evidences = singular**2, []
    for label in np.unique(labels):
        target = (labels == label).astype(float)
        projected, alpha, beta = left.T @ target, 1.0, 1.0
        for _ in range(iterations):
            before = alpha / beta
            weights = singular * projected / (before + squares)
            misfit = target - left @ (projected * squares / (before + squares))
            effective = (squares / (squares + before)).sum()
            alpha = effective / (weights @ weights + added)
            beta = (samples - effective) / (misfit @ misfit + added)
            if abs(alpha / beta - before) <= tolerance * before:
                break
        determinant = np.log(alpha + beta * squares).sum()
        determinant += 0 if lacks_terms else (dimensions - len(squares)) * math.log(alpha)
        evidence = dimensions * np.log(alpha) + samples * np.log(beta / (2 * np.pi)) - determinant
        evidences.append((evidence - beta * misfit @ misfit - alpha * weights @ weights) / (2 * samples))
    return float(np.mean(evidences))


def gbc(x: Rows, labels: Labels, covariance: str, pca: int | None, variant: str) -> float:
    """Add up the Bhattacharyya distances of full matrices, pair by pair."""
    x = x if pca is None else PCA(min(pca, *x.shape), svd_solver="full").fit_transform(x)
    total = 0.0
    for first, second in ((one, other) for one in np.unique(labels) for other in np.unique(labels) if one != other):
        means, matrices = [], []
        for label in (first, second):
            rows = x[labels == label]
            variances = np.maximum(rows.var(0), 1e-4)
            means.append(rows.mean(0))
            matrices.append(
                np.diag(np.full_like(variances, variances.mean()) if covariance == "spherical" else variances)
            )
        middle = (matrices[0] + matrices[1]) / 2
        difference = means[0] - means[1]
        logarithms = [np.linalg.slogdet(matrix)[1] for matrix in (middle, *matrices)]
        spread = 0.5 * (logarithms[0] - (logarithms[1] + logarithms[2]) / 2)
        if covariance == "spherical" and variant == "released":
            spread /= x.shape[1]
        total -= math.exp(-difference @ np.linalg.solve(middle, difference) / 8 - spread)
    return total


def knn(x: Rows, labels: Labels, neighbours: int = 20) -> float:
    # Asked about what it was fitted to, it leaves each sample out.
    count = min(neighbours, len(x) - 1)
    neighbourhoods = NearestNeighbors(n_neighbors=count, metric="cosine", algorithm="brute").fit(x).kneighbors()
    right = 0
    for label, distances, indices in zip(labels, *neighbourhoods, strict=True):
        votes = np.bincount(labels[indices], weights=np.exp((1 - distances) / 0.07))
        right += int(votes.argmax() == label)
    return right / len(x)


def to_probabilities(x: Rows) -> Rows:
    """Return probabilities of as many source classes as there are features, and of one that is never predicted."""
    positive = abs(x) ** 3
    return np.hstack([positive / positive.sum(1)[:, None], np.zeros((len(x), 1))])


def leep(x: Rows, labels: Labels) -> float:
    """Follow the paper's steps one sample and one pair of classes at a time."""
    source, classes = to_probabilities(x), set(labels.tolist())
    samples, sources = source.shape
    joint = {(y, z): 0.0 for y in classes for z in range(sources)}
    for i in range(samples):
        for z in range(sources):
            joint[labels[i], z] += float(source[i, z]) / samples
    total = 0.0
    for i in range(samples):
        expected = 0.0
        for z in range(sources):
            if marginal := sum(joint[y, z] for y in classes):
                expected += float(joint[labels[i], z] / marginal * source[i, z])
        total += math.log(expected)
    return float(total / samples)


def entropy(labels: Labels) -> float:
    shares = np.unique(labels, return_counts=True)[1] / len(labels)
    return float(-(shares * np.log(shares)).sum())


def nce(x: Rows, labels: Labels) -> float:
    return float(mutual_info_score(labels, x.argmax(1)) - entropy(labels))


def n_leep(x: Rows, labels: Labels, pca: float, components_per_class: int, fits: int, seed: int) -> float:
    """Fit scikit-learn's mixture from the same clusters; the metric sorts samples by class."""
    order = np.argsort(labels, kind="stable")
    rows = PCA(pca if pca < 1 else None, svd_solver="full").fit_transform(x[order])
    components = components_per_class * len(np.unique(labels))
    scores = []
    for start in np.random.SeedSequence(seed).spawn(fits):
        # Signs of axes do not matter to distances, by which the clusters are sampled.
        source = mixture(rows, components, start).predict_proba(rows)
        scores.append(metrics.leep(source, labels[order]))
    return float(np.mean(scores))


def mixture(rows: Rows, components: int, seed: int | np.random.SeedSequence) -> Any:
    """Fit scikit-learn's mixture from the clusters of `k_means`."""
    clusters = k_means(rows, components, seed)
    parts = [rows[clusters == k] for k in range(components)]
    ridge = 1e-6 * np.eye(rows.shape[1])
    return GaussianMixture(
        components,
        weights_init=np.array([len(part) for part in parts]) / len(rows),
        means_init=np.stack([part.mean(0) for part in parts]),
        precisions_init=np.stack([np.linalg.inv(np.cov(part, rowvar=False, ddof=0) + ridge) for part in parts]),
    ).fit(rows)


def parc(x: Rows, labels: Labels, variant: str = "published", components: int | None = None) -> float:
    """Correlate two matrices of distances; the errors of the released label distances stay as NumPy makes them."""
    rows = x if components is None else PCA(components, svd_solver="full").fit_transform(x)
    lower = np.triu_indices(len(x), 1)
    of_labels = np.asarray(1 - np.corrcoef(np.eye(labels.max() + 1)))[np.ix_(labels, labels)]
    if variant == "released":
        rows = StandardScaler().fit_transform(rows)
    else:
        of_labels = of_labels.round(12)
    return float(spearmanr(np.asarray(1 - np.corrcoef(rows)).round(12)[lower], of_labels[lower]).statistic)


def fisher_shrinkage(x: Rows, labels: Labels) -> float:
    return max(float(np.exp(-5 * np.linalg.eigvalsh(within(x, labels))[-1])), 1e-10)


def of_own(values: Rows, labels: Labels) -> Rows:
    return np.asarray(values[np.arange(len(labels)), labels])


def sfda(x: Rows, labels: Labels) -> float:
    shrinkage = fisher_shrinkage(x, labels)
    own = of_own(softmax(probabilities(x, labels, shrinkage), axis=1), labels)
    means = np.stack([x[labels == label].mean(0) for label in range(labels.max() + 1)])
    others = np.stack([np.delete(means, label, axis=0).mean(0) for label in labels])
    mixed = own[:, None] * x + (1 - own[:, None]) * others
    return float(of_own(probabilities(mixed, labels, shrinkage), labels).mean())


def etran(x: Rows, labels: Labels, variant: str) -> tuple[float, float]:
    """Follow the text, or the released program: it decomposes a matrix that is not symmetric by its lower triangle."""
    shrinkage = fisher_shrinkage(x, labels)
    source = probabilities(x, labels, shrinkage)
    if variant == "released":
        means = np.stack([x[labels == label].mean(0) for label in np.unique(labels)])
        covariances = [np.cov(x, rowvar=False, ddof=0), within(x, labels)]
        total, inside = (
            (1 - shrinkage) * each + shrinkage * np.trace(each) / len(each) * np.eye(len(each)) for each in covariances
        )
        _, vectors = np.linalg.eigh(np.linalg.inv(inside) @ (total - inside))
        weights = means @ vectors @ vectors.T
        scores = x @ weights.T - np.diag(means @ weights.T) / 2 + np.log(np.bincount(labels) / len(labels))
        source = softmax(scores, axis=1)
    lowest = np.sort(logsumexp(x, axis=1))[: max(1, len(x) // 200)]
    return float(lowest.mean()), float(of_own(source, labels).mean())


def ncti(x: Rows, labels: Labels) -> tuple[float, float, float]:
    """Write out the steps over scikit-learn's principal components and discriminants."""
    rows = PCA(min(64, x.shape[1]), svd_solver="full").fit_transform(x)
    model = LinearDiscriminantAnalysis(solver="svd")
    axes = model.fit_transform(rows, labels)
    source = model.predict_proba(rows)
    spread = sum(np.linalg.norm(source[labels == label], ord="nuc") for label in np.unique(labels))
    near = of_own(source, labels).mean()
    return float(np.linalg.norm(axes - axes.mean(0), ord="nuc")), float(near), float(np.log(spread))


def trace_of_hessian(x: Rows, labels: Labels, weights: Rows) -> float:
    """Differentiate the mean cross-entropy twice by the weights but for the intercepts, which stand last."""
    rows, target = torch.from_numpy(np.hstack([x, np.ones((len(x), 1))])), torch.from_numpy(labels)

    def loss(flat: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(rows @ flat.reshape(weights.shape), target)

    hessian = torch.autograd.functional.hessian(loss, torch.from_numpy(weights.ravel()))
    return float(hessian.diagonal().reshape(weights.shape)[:-1].sum())


def pactran(x: Rows, labels: Labels, penalty_share: float = 1.0, prior_variance: float = 10.0) -> float:
    """Minimise the published bound over the variance of the posterior."""
    (samples, features), centred = x.shape, x - x.mean(0)
    model = LogisticRegression(C=penalty_share, tol=1e-10, max_iter=10_000).fit(centred, labels)
    trace = trace_of_hessian(centred, labels, np.vstack([model.coef_.T, model.intercept_]))
    size, variance = features * len(model.classes_), prior_variance / features
    parameter = penalty_share * samples / variance

    def bound(logarithm: float) -> float:
        ratio = math.exp(logarithm)  # of the variances of the posterior and the prior
        divergence = size * (ratio - 1 - logarithm) / 2 + float((model.coef_**2).sum()) / (2 * variance)
        return float(ratio * variance * trace / 2 + divergence / parameter)

    least = minimize_scalar(bound, bounds=(-30, 10), method="bounded", options={"xatol": 1e-9})
    return -float(log_loss(labels, model.predict_proba(centred)) + float(least.fun))


def released_pactran(x: Rows, labels: Labels) -> float:
    """Follow the released program where its optimiser converges."""
    (samples, features), centred = x.shape, x - x.mean(0)
    model = LogisticRegression(tol=1e-10, max_iter=10_000).fit(centred, labels)
    source = model.predict_proba(centred)
    optimum = log_loss(labels, source) + float((model.coef_**2).sum()) / (2 * samples)
    # Of the weights, with the curvature of the penalty, and of the intercepts.
    curvature = source - source**2
    trace = ((centred**2).T @ curvature + 1 / samples).sum() + curvature.sum()
    size, variance = features * len(model.classes_), 10 / features
    return -float(optimum + size / samples * variance * math.log(trace * samples / size) / 2)


def trans_rate(x: Rows, labels: Labels, epsilon: float) -> float:
    def rate(rows: Rows) -> float:
        matrix = np.eye(x.shape[1]) + rows.T @ rows / (len(rows) * epsilon)
        return float(np.linalg.slogdet(matrix)[1]) / 2

    centred = x - x.mean(0)
    return float(rate(centred) - np.mean([rate(centred[labels == label]) for label in np.unique(labels)]))


def linear_probe(x: Rows, labels: Labels, folds: int, seed: int) -> float:
    order = np.argsort(labels, kind="stable")
    x, labels = x[order], labels[order]
    fold_of = sample_folds(np.bincount(labels), folds, seed)
    accuracies = []
    for fold in range(folds):
        probe = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-8, max_iter=10_000))
        probe.fit(x[fold_of != fold], labels[fold_of != fold])
        accuracies.append(probe.score(x[fold_of == fold], labels[fold_of == fold]))
    return float(np.mean(accuracies))
