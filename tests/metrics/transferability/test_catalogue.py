"""Every metric of the catalogue: documented, tested, and what its entry says of it."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.metrics.transferability.baselines import SourceFacts
from headstart.metrics.transferability.catalogue import METRICS
from headstart.metrics.transferability.inputs import Inputs
from headstart.tests.material.root import ROOT, require_checkout

# Metrics that live with the one that they are a variant of.
VARIANTS = {
    "h_score_shrunk": "h_score",
    "nce": "leep",
    "num_classes": "baselines",
    "source_accuracy": "baselines",
    "parameters": "baselines",
}
# Metrics that sample, by the positions of samples.
DRAWN = {"n_leep", "linear_probe"}
FACTS = SourceFacts(parameters=1000, accuracy=0.5)
# There are 3 clusters of 20 samples each; only the first of the two sources separates them.
LABELS = np.repeat(np.arange(3), 20)


def make(spread: float, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return features and a source head's probabilities, both the closer to the labels the smaller the spread."""
    generator = np.random.default_rng(seed)
    features = 3 * np.eye(3, 6)[LABELS] + spread * generator.standard_normal((60, 6))
    logits = 4 * np.eye(3, 5)[LABELS] + 2 * spread * generator.standard_normal((60, 5))
    return features, np.exp(logits) / np.exp(logits).sum(1, keepdims=True)


def evaluate(name: str, inputs: Inputs) -> float:
    """Return a score; of a metric that compares sources, in a pool with two others: a worse one, and a better one."""
    metric = METRICS[name]
    if metric.combine is None:
        return float(metric.compute(inputs))
    others = [metric.compute(Inputs(make(spread, seed=1)[0], LABELS)) for spread in (8.0, 0.1)]
    return float(metric.combine(np.array([metric.compute(inputs), *others]))[0])


def score(name: str, spread: float = 1.0, order: NDArray[np.int64] | None = None, seed: int = 0) -> float:
    features, probabilities = make(spread)
    rows = np.arange(60) if order is None else order
    return evaluate(name, Inputs(features[rows], LABELS[rows], probabilities[rows], seed, facts=FACTS))


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_has_a_module_a_test_and_a_line_in_the_documentation(name: str) -> None:
    module = VARIANTS.get(name, name)
    importlib.import_module(f"headstart.metrics.transferability.{module}")
    assert (Path(__file__).parent / f"test_{module}.py").is_file()
    require_checkout()
    lines = (ROOT / "docs" / "transferability.md").read_text(encoding="utf-8").splitlines()
    [line] = [line for line in lines if line.startswith(f"| `{name}` |")]
    assert f"| {METRICS[name].title} |" in line


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.defaults])
def test_the_documentation_has_the_options_of_a_metric(name: str) -> None:
    require_checkout()
    lines = (ROOT / "docs" / "transferability.md").read_text(encoding="utf-8").splitlines()
    [line] = [line for line in lines if line.startswith(f"- `{name}`: ")]
    assert set(re.findall(r"`(\w+)` \(", line)) == set(METRICS[name].defaults)


def test_names_titles_and_summaries_of_metrics_are_distinct() -> None:
    assert len({metric.title for metric in METRICS.values()}) == len(METRICS)
    for name, metric in METRICS.items():
        assert re.fullmatch(r"[a-z][a-z_]*", name)
        assert 0 < len(metric.summary) < 80
        assert "\n" not in metric.summary


@pytest.mark.parametrize("name", METRICS)
def test_a_better_source_has_the_better_score_unless_it_is_a_baseline(name: str) -> None:
    far, near = score(name, spread=4.0), score(name, spread=0.5)
    if METRICS[name].baseline:
        assert near == far
    else:
        assert METRICS[name].higher_is_better
        assert near > far


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if not metric.baseline])
def test_labels_that_have_nothing_to_do_with_the_features_have_the_lower_score(name: str) -> None:
    features, probabilities = make(1.0)
    shuffled = np.random.default_rng(1).permutation(LABELS)
    assert score(name) > evaluate(name, Inputs(features, shuffled, probabilities))


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.bound])
def test_a_bound_is_reached_by_features_that_are_the_labels_and_not_exceeded(name: str) -> None:
    bound = METRICS[name].bound
    assert bound is not None
    labels = np.repeat([0, 1], 30)
    indicators = np.eye(2)[labels]
    best = METRICS[name].compute(Inputs(100 * indicators, labels, indicators))
    assert best == pytest.approx(bound(2), rel=1e-10, abs=1e-10)
    assert score(name, spread=4.0) < bound(3)
    assert score(name, spread=0.5) <= bound(3)


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_takes_a_head_only_where_it_says_so(name: str) -> None:
    features, _ = make(1.0)
    inputs = Inputs(features, LABELS, facts=FACTS)
    if "probabilities" in METRICS[name].data:
        with pytest.raises(ValueError, match="the model has no source head"):
            evaluate(name, inputs)
    else:
        assert np.isfinite(evaluate(name, inputs))


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_takes_facts_of_the_source_only_where_it_says_so(name: str) -> None:
    features, probabilities = make(1.0)
    inputs = Inputs(features, LABELS, probabilities)
    if "facts" in METRICS[name].data:
        assert METRICS[name].baseline
        with pytest.raises(ValueError, match="is not known"):
            evaluate(name, inputs)
    else:
        assert np.isfinite(evaluate(name, inputs))


@pytest.mark.parametrize("name", METRICS)
def test_a_score_is_repeatable_and_shares_statistics_with_the_others(name: str) -> None:
    features, probabilities = make(1.0)
    shared = Inputs(features, LABELS, probabilities, facts=FACTS)
    for other in METRICS.values():
        other.compute(shared)
    assert evaluate(name, shared) == score(name) == score(name)


@pytest.mark.parametrize("name", [name for name in METRICS if name not in DRAWN])
def test_the_order_of_samples_does_not_matter(name: str) -> None:
    order = np.random.default_rng(1).permutation(60)
    assert score(name, order=order) == pytest.approx(score(name), rel=1e-9, abs=1e-12)


def test_a_subset_has_its_own_rows_and_statistics() -> None:
    features, probabilities = make(1.0)
    rows = Inputs(features, LABELS, probabilities, facts=FACTS).subset(LABELS != 1)
    np.testing.assert_array_equal(rows.features, features[LABELS != 1])
    np.testing.assert_array_equal(rows.probabilities, probabilities[LABELS != 1])
    np.testing.assert_array_equal(rows.labels, LABELS[LABELS != 1])
    assert rows.statistics.classes == 2
