"""Runs in the dashboard that are interrupted, repeated, lazy or of many methods, and one that fails."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headstart.callbacks import ComparisonRun, DashboardLogger
from headstart.output.dashboard import RunRecord
from headstart.tests.material.offline_runs import OfflineRun


def logger_of(folder: Path, **options: Any) -> DashboardLogger:
    return DashboardLogger(save_dir=str(folder / "run"), mode="offline", **options)


@pytest.mark.slow
def test_interrupted_run_is_continued_as_the_same_run(script: Callable[..., Any], tmp_path: Path) -> None:
    # The first pass ends; the second is cut off.
    counts = [[[0] * 12, [0] * 12]]
    script(counts, results=ComparisonRun(), logger=logger_of(tmp_path), fail_at=6)
    cut_off = OfflineRun(tmp_path / "run")
    assert (cut_off.exit_code, cut_off.summary["complete"]) == (1, False)
    assert cut_off.summary["stopped_because"] == "error: RuntimeError: scripted failure"
    assert not cut_off.of_charts

    script(counts, results=ComparisonRun(overwrite=True), logger=logger_of(tmp_path), fail_at=None)
    whole = OfflineRun(tmp_path / "run", latest=True)
    assert whole.run != cut_off.run
    assert (whole.exit_code, whole.summary["complete"]) == (0, True)
    record = json.loads((tmp_path / "run" / "wandb_run.json").read_text())
    assert record["published"] is True
    assert whole.settings["run_id"] == record["id"]
    assert whole.settings["resume"] is True


@pytest.mark.parametrize("log_again", [False, True])
def test_repeated_run_is_logged_again_on_request_alone(
    script: Callable[..., Any], tmp_path: Path, log_again: bool
) -> None:
    ids = []
    for _ in range(2):
        script([[[20] * 12]], results=ComparisonRun(), logger=logger_of(tmp_path, log_again=log_again))
        ids.append(OfflineRun(tmp_path / "run", latest=True).settings["run_id"])
    assert ids[0] == ids[1]
    assert len(list((tmp_path / "run" / "wandb").glob("offline-run-*"))) == 1 + log_again


def test_an_agent_chooses_its_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    record = RunRecord(tmp_path, "a")
    assert record.options() == {"id": record.id, "resume": "allow"}
    record.store(SimpleNamespace(id=record.id, disabled=False), is_published=True)
    assert RunRecord(tmp_path, "a").is_published
    assert not RunRecord(tmp_path, "b").is_published
    monkeypatch.setenv("WANDB_SWEEP_ID", "x")
    assert (RunRecord(tmp_path, "a").options(), RunRecord(tmp_path, "a").is_published) == ({}, False)


def test_lazily_evaluated_run_has_no_curves(script: Callable[..., Any], tmp_path: Path) -> None:
    counts = [[[0, 20, 20, 20] * 3, [20] * 12, [0] * 12]]
    script(counts, results=ComparisonRun(), logger=logger_of(tmp_path), evaluation="lazy")
    mirror = OfflineRun(tmp_path / "run")
    keys = {key for row in mirror.history for key in row}
    assert not any(key.startswith(("val/", "band/")) for key in keys)
    assert "reached/baseline" in keys
    assert mirror.of_charts == ["charts/criterion_reached"]


def test_failing_dashboard_leaves_the_results_complete(
    script: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        raise RuntimeError("no connection")

    logger = DashboardLogger(save_dir=str(tmp_path / "run"), mode="offline")
    monkeypatch.setattr(DashboardLogger, "log_metrics", lambda *args, **kwargs: None)
    monkeypatch.setattr(DashboardLogger, "publish", fail)
    run = script([[[20] * 12]], results=ComparisonRun(), logger=logger)
    logger.experiment.finish()
    assert str(run.error) == "no connection"
    document = json.loads((run.folder / "results.json").read_text())
    assert document["complete"]
    assert document["stopped_because"] == "every method met the criterion in every ordering"
