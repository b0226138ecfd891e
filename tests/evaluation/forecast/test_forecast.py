"""Forecasts of finished runs: what is written, that nothing later is read, and mistakes of one line each."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.evaluation.forecast.forecast import forecast
from headstart.metrics.forecast.curve_forecast import forecast_curve, read_coverage
from headstart.metrics.sample_efficiency.curves import SKIPPED
from headstart.output.errors import UserError
from headstart.tests.material.runs import seal, write_run

CLASSES = ["ants", "bees", "wasps"]
METHODS = ("baseline", "mine")


def rising(evaluations: int = 60, seed: int = 0) -> NDArray[np.int64]:
    """Draw counts of 100 that rise as power laws do, `[methods, orderings, evaluations]`."""
    errors = np.array([[[0.75]], [[0.6]]]) * np.arange(1, evaluations + 1) ** -np.array([[[0.2]], [[0.3]]])
    return np.random.default_rng(seed).binomial(100, 1 - errors, (2, 6, evaluations))


def run(folder: Path, correct: Any = None, **options: Any) -> Path:
    counts = rising() if correct is None else correct
    return write_run(folder, counts, **{"classes": CLASSES, "limit": counts.shape[-1], **options})


def forecast_run(folder: Path, **options: Any) -> dict[str, Any]:
    output = folder.parent / "out"
    document = forecast(str(folder), output=str(output), overwrite=True, **options)
    assert json.loads((output / "forecast.json").read_text()) == json.loads(json.dumps(document))
    return document


def test_the_document_holds_the_forecast_of_every_curve(tmp_path: Path) -> None:
    document = forecast_run(run(tmp_path / "run"), labels=20)
    assert document["coverage"] == read_coverage()
    [setting] = document["settings"]
    assert setting["classes"] == 3
    # The best by the accuracy known comes first; a method is found by its class, gradient descent as the baseline.
    assert [method["name"] for method in setting["methods"]] == ["mine", "baseline"]
    shipped = {"mine": "nearest_class_mean", "baseline": "baseline"}
    for entry in setting["methods"]:
        traces = rising()[METHODS.index(entry["name"])] / 100
        assert entry["accuracy"] == pytest.approx(traces[:, 19].mean())
        own = forecast_curve(np.arange(1, 21), traces[:, :20], 3, shipped[entry["name"]])
        for row in entry["later"]:
            accuracy, ends = own.at(row["times"])
            assert row["labels"] == 20 * row["times"]
            assert row["accuracy"] == pytest.approx(accuracy)
            assert row["intervals"]["0.95"] == pytest.approx([*ends[0.95]])
            assert row["intervals"]["0.95"][0] <= row["intervals"]["0.8"][0] <= accuracy <= row["intervals"]["0.8"][1]


def test_labels_at_which_nothing_was_measured_are_warned_of(tmp_path: Path) -> None:
    folder = run(tmp_path / "run", rising(120))
    for labels, is_measured in ((9, False), (10, True), (100, True), (101, False)):
        [setting] = forecast_run(folder, labels=labels)["settings"]
        warning = f"Forecasts were measured after 10 to 100 labels of up to 19 classes, and not after {labels} of 3"
        assert [line.partition(":")[0] for line in setting["warnings"]] == [warning] * (not is_measured)
        assert (warning in (tmp_path / "out" / "forecast.md").read_text()) == (not is_measured)


def test_nothing_behind_the_labels_is_read(tmp_path: Path) -> None:
    other = rising()
    other[..., 20:] = 100
    one, another = (
        forecast_run(run(tmp_path / name, counts), labels=20)["settings"][0]["methods"]
        for name, counts in (("one", rising()), ("other", other))
    )
    assert one == another


def test_a_met_criterion_is_named_where_it_was_met(tmp_path: Path) -> None:
    counts = np.full((2, 3, 40), 50)
    counts[1, :, 9:] = 85
    slow, fast = forecast_run(run(tmp_path / "run", counts), labels=20)["settings"][0]["methods"][::-1]
    # Three evaluations in a row from the tenth sample on.
    assert (fast["met_at"], fast["samples_to_criterion"]) == (12, None)
    assert slow["met_at"] is None
    for low, high in slow["samples_to_criterion"].values():
        assert low is None or low >= 21
        assert high is None or low <= high


def test_samples_to_criterion_follow_from_where_the_intervals_reach_the_threshold(tmp_path: Path) -> None:
    counts = rising(60)[..., 3::4]
    document = forecast_run(run(tmp_path / "run", counts, step=4, limit=60), labels=20)
    [setting] = document["settings"]
    for entry in setting["methods"]:
        traces = counts[METHODS.index(entry["name"])] / 100
        name = {"mine": "nearest_class_mean"}.get(entry["name"], "baseline")
        reached = forecast_curve(4 * np.arange(1, 6), traces[:, :5], 3, name).reaches(0.8)
        for level, ends in reached.items():
            for end, found in zip(ends, entry["samples_to_criterion"][str(level)], strict=True):
                # Batches of 4, and two more evaluations of the streak.
                assert found == (None if end is None else max(24, int(np.ceil(end / 4)) * 4 + 8))


def test_a_streak_may_have_begun_within_the_labels_known(tmp_path: Path) -> None:
    counts = np.full((2, 3, 40), 50)
    counts[1, :, 18:] = 90
    [fast, _] = forecast_run(run(tmp_path / "run", counts), labels=20)["settings"][0]["methods"]
    assert fast["met_at"] is None
    for low, high in fast["samples_to_criterion"].values():
        assert low == 21
        assert high is None or high >= 23


def test_tables_and_remarks_name_methods_without_known_curves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run(tmp_path / "run")
    results = (folder / "results.json").read_text()
    seal(folder, json.loads(results.replace("headstart.modules.NearestClassMean", "my_own.Idea")))
    document = forecast_run(folder, labels=20)
    known = {method["name"]: method["is_known_method"] for method in document["settings"][0]["methods"]}
    assert known == {"mine": False, "baseline": True}
    assert "no curves of mine: the intervals are the widest of all methods" in capsys.readouterr().out
    assert "| mine |" in (tmp_path / "out" / "forecast.md").read_text()


def test_mistakes_are_named(tmp_path: Path) -> None:
    lazy = rising()
    lazy[..., 3] = SKIPPED
    late, until = {"correct": rising(20), "step": 8, "limit": 160}, "run headstart train with --criterion.until=limit"
    mistakes: list[tuple[dict[str, Any], int, str]] = [
        ({}, 100, f"labels: 100 given, but traces end at 60 samples; give fewer, or {until}"),
        (late, 5, "labels: 5 given, but the first evaluation is after 8 samples; give more"),
        ({"correct": lazy}, 20, "evaluations before were left out; run headstart train with"),
        ({"classes": []}, 20, "does not say how many classes"),
    ]
    for index, (options, labels, message) in enumerate(mistakes):
        with pytest.raises(UserError) as caught:
            forecast(str(run(tmp_path / f"{index}", **options)), output=str(tmp_path / "out"), labels=labels)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()
