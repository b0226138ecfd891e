"""Measures and metrics, on stored features."""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from headstart.benchmarks.frame import compare, timed
from headstart.evaluation.sources.metric_names import DEFAULT_METRICS
from headstart.metrics import biased_and_debiased_cka, calibrated_cka, cka_intervals, linear_cka, pairwise_cka
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES
from headstart.metrics.transferability.catalogue import METRICS
from headstart.metrics.transferability.fisher_discriminant import softmax
from headstart.metrics.transferability.inputs import Inputs

MODELS, STIMULI, WIDTHS = 200, 1000, (384, 2048)
# Samples, features and classes of the transferability metrics.
SAMPLES, FEATURES, CLASSES = 10_000, 2048, 100


def embeddings(models: int) -> list[NDArray[np.float32]]:
    """Return embeddings of different widths that have something in common, `[stimuli, width]` each."""
    generator = np.random.default_rng(0)
    shared = generator.standard_normal((STIMULI, 100)) * np.geomspace(1, 0.05, 100)
    return [
        (shared @ generator.standard_normal((100, width)) + generator.standard_normal((STIMULI, width))).astype("f4")
        for width in generator.permutation(np.linspace(*WIDTHS, models).astype(int))
    ]


def cka() -> str:
    """How long does the mean CKA of 200 models on 1,000 stimuli take?"""
    drawn = embeddings(MODELS)
    seconds = timed(partial(pairwise_cka, drawn))
    # Every embedding is in one pair, so that the widths are those of the whole loop.
    pairs = timed(lambda: [linear_cka(x, y) for x, y in zip(drawn[::2], drawn[1::2], strict=True)])
    return f"{seconds:.1f} s; a loop over all pairs would take {(MODELS - 1) * pairs / seconds:.0f} times as long"


def nulls() -> str:
    """What do nulls and intervals cost over the CKA matrix of 200 models?"""
    drawn = embeddings(MODELS)
    calls: dict[str, Callable[[], object]] = {
        "matrix": partial(biased_and_debiased_cka, drawn),
        "nulls": partial(calibrated_cka, drawn),
        "intervals": partial(cka_intervals, drawn),
    }
    found = compare(calls, clock=time.process_time)
    return f"{found['nulls']:.1f} and {found['intervals']:.1f} times the processor time"


def similarity() -> str:
    """What do other measures of similarity cost over linear CKA, on 8 models?"""
    drawn = embeddings(8)
    # The plain CCAs need more stimuli than the dimensions of two models together.
    names = [name for name in SIMILARITY_MEASURES if name not in {"cca", "pwcca", DEFAULT_MEASURE}]
    calls = {name: partial(SIMILARITY_MEASURES[name].pairwise, drawn) for name in (DEFAULT_MEASURE, *names)}
    found = compare(calls, repeats=1)
    return ", ".join(f"{name} {found[name]:.0f} times" for name in names)


def transferability() -> str:
    """What do transferability metrics cost over one Gram product and one eigendecomposition?"""
    generator = np.random.default_rng(0)
    labels = generator.permutation(np.arange(SAMPLES) % CLASSES)
    x = generator.standard_normal((SAMPLES, FEATURES)) + generator.standard_normal((CLASSES, FEATURES))[labels]
    x *= 10 * np.arange(1, FEATURES + 1) ** -0.5
    probabilities = softmax(x[:, :1000].copy())
    centred = x - x.mean(0)

    names = [name for name in DEFAULT_METRICS if name != "n_leep"]
    calls: dict[str, Callable[[], object]] = {"floor": lambda: np.linalg.eigh(centred.T @ centred)}
    calls |= {
        name: lambda name=name: METRICS[name].compute(Inputs(x, labels, probabilities))  # type: ignore[misc]
        for name in names
    }
    found = compare(calls, clock=time.process_time)
    return ", ".join(f"{METRICS[name].title} {found[name]:.1f} times" for name in names)


BENCHMARKS = (cka, nulls, similarity, transferability)
