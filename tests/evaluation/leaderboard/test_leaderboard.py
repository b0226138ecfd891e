"""The leaderboard of runs and ledgers: its settings, its numbers against independent ones, its refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluate import main
from evaluation.leaderboard.leaderboard import leaderboard
from metrics.sample_efficiency.curves import samples_to_criterion
from store.ledger import Ledger, Trace, TraceKey

FED: dict[str, Any] = {
    "batch_size": 1,
    "evaluate_every": 1,
    "validation_size": 100,
    "classes": ["cats", "dogs"],
    "weights_sha256": "0" * 64,
}
LENGTH = 60


def fill(
    folder: Path, names: list[str], orderings: int = 20, seed: int = 0, told: dict[str, Any] | None = None, **fed: Any
) -> np.ndarray[Any, Any]:
    """Store noisy traces that rise the faster the earlier the method; give them `[methods, orderings, evaluations]`."""
    generator = np.random.default_rng(seed)
    rise = generator.uniform(3, 8, (len(names), orderings, 1)) * (1 + np.arange(len(names)))[:, None, None]
    counts = generator.binomial(100, 0.97 - 0.45 * np.exp(-np.arange(LENGTH) / rise))
    names_of_stream = {"dataset": "pets", "backbone": "resnet18", "weights": "DEFAULT", **(told or {})}
    with Ledger(folder) as ledger:
        stream = ledger.record({**FED, **fed}, told=names_of_stream)
        for name, traces in zip(names, counts, strict=True):
            method = ledger.record({"class": "modules.Mine", "hyperparameters": {"name": name}}, told={"name": name})
            ledger.write({TraceKey(stream, method, k): Trace(trace) for k, trace in enumerate(traces)})
    return counts


def test_files_appear_with_the_keys_that_others_read(tmp_path: Path) -> None:
    fill(tmp_path / "stored", ["baseline", "one", "two"])
    main(["leaderboard", str(tmp_path / "stored"), "--output", str(tmp_path / "out")])
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        f"leaderboard.{kind}" for kind in ("csv", "json", "md", "tex")
    ]
    document = json.loads((tmp_path / "out" / "leaderboard.json").read_text())
    [setting] = document["settings"]
    assert setting["name"] == "pets, resnet18 (DEFAULT)"
    assert (setting["classes"], setting["chance"], setting["threshold"], setting["batch_size"]) == (2, 0.5, 0.8, 1)
    assert document["over_settings"] is None
    assert len(document["sensitivity"]["settings"][0]["grid"]) == 24


def test_scores_are_those_of_the_traces(tmp_path: Path) -> None:
    counts = fill(tmp_path / "stored", ["baseline", "one", "two"])
    [setting] = leaderboard(str(tmp_path / "stored"), output=str(tmp_path / "out"))["settings"]
    samples, onset = samples_to_criterion(counts, np.arange(1, LENGTH + 1), 80, 10)
    for place, name in enumerate(["baseline", "one", "two"]):
        [scores] = [each for each in setting["methods"] if each["name"] == name]
        assert scores["reached"] == np.isfinite(samples[place]).sum()
        assert scores["restricted_mean"] == pytest.approx(np.minimum(samples[place], setting["restricted_at"]).mean())
        assert scores["onset"] == pytest.approx(np.median(onset[place]))
    assert [each["restricted_mean"] for each in setting["methods"]] == sorted(
        each["restricted_mean"] for each in setting["methods"]
    )


def test_streams_of_a_ledger_are_settings(tmp_path: Path) -> None:
    for seed, (dataset, size) in enumerate([("pets", 1), ("flowers", 1), ("pets", 8)]):
        fed: dict[str, Any] = {"batch_size": size, "train_photos_sha256": dataset}
        fill(tmp_path / "stored", ["baseline", "one"], seed=seed, told={"dataset": dataset}, **fed)
    document = leaderboard([str(tmp_path / "stored")], output=str(tmp_path / "out"))
    assert [setting["name"] for setting in document["settings"]] == [
        "pets, resnet18 (DEFAULT), batch size 1",
        "flowers, resnet18 (DEFAULT)",
        "pets, resnet18 (DEFAULT), batch size 8",
    ]
    assert document["over_settings"]["settings"] == [
        "pets, resnet18 (DEFAULT), batch size 1",
        "flowers, resnet18 (DEFAULT)",
    ]
