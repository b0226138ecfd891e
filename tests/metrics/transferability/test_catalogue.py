"""Every metric of the catalogue: documented, and what its entry says of it."""

import re

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.metrics import h_score, leep, nce
from headstart.metrics.transferability.baselines import SourceFacts
from headstart.metrics.transferability.catalogue import METRICS
from headstart.metrics.transferability.inputs import Inputs
from headstart.tests.material.metric_formulas import OF_FEATURES
from headstart.tests.material.root import ROOT, require_checkout

# Metrics that sample, by the positions of samples.
DRAWN = {"n_leep", "linear_probe"}
FACTS = SourceFacts(parameters=1000, accuracy=0.5)
# There are 3 clusters of 20 samples each; only the first of the two sources separates them.
LABELS = np.repeat(np.arange(3), 20)


def make(spread: float, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return features and a source head's logits, both the closer to the labels the smaller the spread."""
    generator = np.random.default_rng(seed)
    features = 3 * np.eye(3, 6)[LABELS] + spread * generator.standard_normal((60, 6))
    logits = 4 * np.eye(3, 5)[LABELS] + 2 * spread * generator.standard_normal((60, 5))
    return features, logits


def evaluate(name: str, inputs: Inputs) -> float:
    """Return a score; of a metric that compares sources, in a pool with two others: a worse one, and a better one."""
    metric = METRICS[name]
    if metric.combine is None:
        return float(metric.compute(inputs))
    others = [metric.compute(Inputs(make(spread, seed=1)[0], LABELS)) for spread in (8.0, 0.1)]
    return float(metric.combine(np.array([metric.compute(inputs), *others]))[0])


def score(name: str, spread: float = 1.0, order: NDArray[np.int64] | None = None, seed: int = 0) -> float:
    features, logits = make(spread)
    rows = np.arange(60) if order is None else order
    return evaluate(name, Inputs(features[rows], LABELS[rows], logits[rows], seed, facts=FACTS))


def test_metrics_have_lines_in_the_documentation() -> None:
    require_checkout()
    lines = (ROOT / "docs" / "transferability.md").read_text(encoding="utf-8").splitlines()
    for name, metric in METRICS.items():
        [line] = [line for line in lines if line.startswith(f"| `{name}` |")]
        assert f"| {metric.title} |" in line
        if metric.defaults:
            [line] = [line for line in lines if line.startswith(f"- `{name}`: ")]
            assert set(re.findall(r"`(\w+)` \(", line)) == set(metric.defaults), name


def test_names_are_those_of_the_functions() -> None:
    features, logits = make(1.0)
    inputs = Inputs(features, LABELS, logits)
    expected = {name: function(features, LABELS) for name, function in OF_FEATURES.items()}
    expected["h_score_shrunk"] = h_score(features, LABELS, shrinkage=True)
    expected |= {"leep": leep(inputs.probabilities, LABELS), "nce": nce(inputs.probabilities.argmax(1), LABELS)}
    assert {name: METRICS[name].compute(inputs) for name in expected} == expected


def test_a_better_source_has_the_better_score_and_other_labels_a_lower_one() -> None:
    shuffled = np.random.default_rng(1).permutation(LABELS)
    for name, metric in METRICS.items():
        far, near = score(name, spread=4.0), score(name, spread=0.5)
        if metric.baseline:
            assert near == far, name
        else:
            assert metric.higher_is_better, name
            assert near > far, name
            features, logits = make(1.0)
            assert score(name) > evaluate(name, Inputs(features, shuffled, logits)), name


def test_bounds_are_reached_by_features_that_are_the_labels_and_not_exceeded() -> None:
    labels = np.repeat([0, 1], 30)
    indicators = np.eye(2)[labels]
    for name, metric in METRICS.items():
        of_two, of_three = metric.bound(2), metric.bound(3)
        if of_two is not None and of_three is not None:
            best = metric.compute(Inputs(100 * indicators, labels, 1000 * indicators))
            assert best == pytest.approx(of_two, rel=1e-10, abs=1e-10), name
            assert score(name, spread=4.0) < of_three, name
            assert score(name, spread=0.5) <= of_three, name


def test_metrics_take_a_head_and_facts_only_where_they_say_so() -> None:
    features, logits = make(1.0)
    for name, metric in METRICS.items():
        for kind, inputs, reason in (
            ("probabilities", Inputs(features, LABELS, facts=FACTS), "the model has no source head"),
            ("facts", Inputs(features, LABELS, logits), "is not known"),
        ):
            if kind in metric.data:
                with pytest.raises(ValueError, match=reason):
                    evaluate(name, inputs)
            else:
                assert np.isfinite(evaluate(name, inputs)), name


def test_scores_are_repeatable_share_statistics_and_do_not_depend_on_the_order_of_samples() -> None:
    features, logits = make(1.0)
    shared = Inputs(features, LABELS, logits, facts=FACTS)
    order = np.random.default_rng(1).permutation(60)
    for name in METRICS:
        assert evaluate(name, shared) == score(name) == score(name), name
        if name not in DRAWN:
            assert score(name, order=order) == pytest.approx(score(name), rel=1e-9, abs=1e-12), name
