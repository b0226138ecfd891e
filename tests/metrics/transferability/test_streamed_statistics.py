"""Statistics of features that are read in parts, against those of the same features in memory."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from headstart.metrics.transferability import streamed_statistics
from headstart.metrics.transferability.catalogue import METRICS
from headstart.metrics.transferability.etran import etran_terms
from headstart.metrics.transferability.feature_statistics import FeatureStatistics
from headstart.metrics.transferability.gbc import gbc
from headstart.metrics.transferability.h_score import h_score
from headstart.metrics.transferability.inputs import Inputs
from headstart.metrics.transferability.log_me import log_me
from headstart.metrics.transferability.ncti import ncti_terms
from headstart.metrics.transferability.parc import parc
from headstart.metrics.transferability.remaining_statistics import RemainingStatistics
from headstart.metrics.transferability.streamed_statistics import StreamedStatistics, statistics_of
from headstart.metrics.transferability.trans_rate import trans_rate
from headstart.store.gathered_rows import GatheredRows

CLASSES, SAMPLES, FEATURES = 5, 400, 12
# Metrics for which not all features need to be in memory at once.
STREAMED: dict[str, Callable[[FeatureStatistics], float]] = {
    "etran": lambda statistics: sum(etran_terms(statistics)),
    "gbc": gbc,
    "h_score": h_score,
    "shrunk h_score": lambda statistics: h_score(statistics, shrinkage=True),
    "log_me": log_me,
    "ncti": lambda statistics: sum(ncti_terms(statistics)),
    "trans_rate": trans_rate,
    "parc": lambda statistics: parc(statistics, probes=50),
}


class OnDisk:
    """Features that count how often each row is read, and cannot be read all at once."""

    on_disk = True

    def __init__(self, values: NDArray[Any]) -> None:
        self.values, self.shape, self.ndim, self.dtype = values, values.shape, values.ndim, values.dtype
        self.reads = np.zeros(len(values), dtype=int)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        self.reads[rows] += 1
        chosen: NDArray[Any] = self.values[rows]
        assert len(chosen) < len(self.values)
        return chosen


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed_statistics, "IN_MEMORY", 1000)
    monkeypatch.setattr(streamed_statistics, "PART", 8 * FEATURES * 37)


def make(offset: float = 3.0) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, CLASSES, SAMPLES) * 3
    features = generator.standard_normal((SAMPLES, FEATURES)) + generator.standard_normal((99, FEATURES))[labels]
    return (features * np.arange(1, FEATURES + 1) ** -0.5 + offset).astype(np.float32), labels


@pytest.mark.parametrize("offset", [0.0, 3.0, 1000.0])
@pytest.mark.parametrize(
    "name",
    ["centred", "mean", "class_means", "gram", "order", "labels", "counts"],
)
def test_statistics_are_those_of_features_in_memory(name: str, offset: float) -> None:
    features, labels = make(offset)
    expected, streamed = FeatureStatistics(features, labels), statistics_of(OnDisk(features), labels)
    assert isinstance(streamed, StreamedStatistics)
    np.testing.assert_allclose(getattr(streamed, name), getattr(expected, name), rtol=1e-9, atol=1e-9)

    kept = np.random.default_rng(1).random(SAMPLES) < 0.9
    rest = streamed_statistics.remaining_statistics(streamed, kept)
    assert not isinstance(rest, RemainingStatistics)
    both = RemainingStatistics(expected, kept)
    np.testing.assert_allclose(getattr(rest, name), getattr(both, name), rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("offset", [0.0, 3.0, 1000.0])
def test_spectra_are_those_of_features_in_memory(offset: float) -> None:
    features, labels = make(offset)
    features[:, -1] = 2 * features[:, 0]
    expected, streamed = FeatureStatistics(features, labels), statistics_of(OnDisk(features), labels)
    for name in ("spectrum", "uncentred_spectrum"):
        one, other = getattr(streamed, name), getattr(expected, name)
        assert one.rank == other.rank
        np.testing.assert_allclose(one.eigenvalues, other.eigenvalues, rtol=1e-7, atol=1e-7)
        used = slice(other.rank)
        np.testing.assert_allclose(
            np.abs(one.class_sums[:, used]), np.abs(other.class_sums[:, used]), rtol=1e-5, atol=1e-5
        )


@pytest.mark.parametrize("name", STREAMED)
def test_scores_are_those_of_features_in_memory_which_are_not_read_at_once(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    features, labels = make()
    function = STREAMED[name]
    kept = np.random.default_rng(1).random(SAMPLES) < 0.9
    whole = FeatureStatistics(features, labels)
    expected = [function(each) for each in (whole, RemainingStatistics(whole, kept))]

    inputs = Inputs(OnDisk(features), labels)  # type: ignore[arg-type]  # rows that are read when they are indexed
    monkeypatch.setattr(StreamedStatistics, "centred", property(lambda _: pytest.fail("all features are in memory")))
    remaining = inputs.remaining(kept[np.argsort(inputs.order)])
    scores = [function(each.statistics) for each in (inputs, remaining)]
    np.testing.assert_allclose(scores, expected, rtol=1e-9)


@pytest.mark.parametrize("function", [h_score, log_me, gbc, lambda statistics: h_score(statistics, shrinkage=True)])
def test_fewer_samples_may_remain_than_there_are_features(function: Callable[[FeatureStatistics], float]) -> None:
    features, labels = make()
    kept = np.zeros(SAMPLES, dtype=bool)
    # At least one sample of each class.
    kept[np.unique(np.sort(labels), return_index=True)[1]] = kept[::80] = True
    assert CLASSES < kept.sum() < FEATURES
    expected = function(RemainingStatistics(FeatureStatistics(features, labels), kept))
    remaining = streamed_statistics.remaining_statistics(statistics_of(OnDisk(features), labels), kept)
    assert function(remaining) == pytest.approx(expected, rel=1e-9)


def test_features_in_memory_are_not_read_again() -> None:
    features, labels = make()
    rows = OnDisk(features)
    statistics = statistics_of(rows, labels)
    assert len(statistics.centred) == SAMPLES
    kept = np.random.default_rng(1).random(SAMPLES) < 0.9
    before = rows.reads.copy()
    remaining = streamed_statistics.remaining_statistics(statistics, kept)
    both = RemainingStatistics(FeatureStatistics(features, labels), kept)
    np.testing.assert_allclose(remaining.centred, both.centred, atol=1e-12)
    for function in STREAMED.values():
        assert function(remaining) == pytest.approx(function(both), rel=1e-9)
        function(statistics)
    assert np.array_equal(rows.reads, before)


def test_other_metrics_read_the_features_to_memory() -> None:
    features, labels = make()
    for name in ("knn", "sfda", "linear_probe"):
        function = METRICS[name].function
        expected = function(FeatureStatistics(features, labels))
        assert function(statistics_of(OnDisk(features), labels)) == pytest.approx(expected, rel=1e-6)


def test_each_row_is_read_twice_for_a_gram_matrix_and_a_tenth_again_without_it() -> None:
    features, labels = make()
    rows = OnDisk(features)
    statistics = statistics_of(rows, labels)
    assert statistics.gram.shape == (FEATURES, FEATURES)
    assert rows.reads[1:].tolist() == [2] * (SAMPLES - 1)
    kept = np.arange(SAMPLES) >= 40
    assert streamed_statistics.remaining_statistics(statistics, kept).gram.shape == (FEATURES, FEATURES)
    assert rows.reads[1:].sum() <= 2 * (SAMPLES + 40)


def test_functions_of_metrics_stream_mapped_arrays(tmp_path: Path) -> None:
    features, labels = make()
    np.save(tmp_path / "features.npy", features)
    mapped = np.load(tmp_path / "features.npy", mmap_mode="r")
    assert isinstance(statistics_of(mapped, labels), StreamedStatistics)
    assert log_me(mapped, labels) == pytest.approx(log_me(FeatureStatistics(features, labels)), rel=1e-9)

    half = SAMPLES // 2
    owners, positions = np.repeat([0, 1], half), np.tile(np.arange(half), 2)
    gathered = GatheredRows([mapped[:half], mapped[half:]], owners, positions)
    assert log_me(gathered, labels) == log_me(mapped, labels)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_number_that_is_not_finite_is_named_by_its_row(value: float) -> None:
    features, labels = make()
    features[123, 4] = value
    with pytest.raises(ValueError, match=r"^features must be finite; row 123 is not"):
        statistics_of(features, labels)


@pytest.mark.filterwarnings("error")
def test_a_magnitude_that_does_not_fit_is_refused() -> None:
    features, labels = make()
    with pytest.raises(ValueError, match=r"^features are too large"):
        statistics_of(features.astype(np.float64) * 1e80, labels)
    features[5, 3] = np.finfo(np.float32).max
    with pytest.raises(ValueError, match=r"^features are too large"):
        statistics_of(features.astype(np.float64) * 1e269, labels)
    assert not statistics_of(np.zeros((SAMPLES, FEATURES)), labels).gram.any()


def test_fewer_samples_than_twice_the_features_and_tensors_on_a_device_are_held_in_memory() -> None:
    features, labels = make()
    few = features[: 2 * FEATURES - 1]
    assert not isinstance(statistics_of(few, labels[: len(few)]), StreamedStatistics)
    assert isinstance(statistics_of(torch.from_numpy(features), labels), StreamedStatistics)
