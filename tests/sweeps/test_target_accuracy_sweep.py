"""A sweep of fine-tuning sources on targets measures no accuracy twice."""

from pathlib import Path

import pytest

from headstart import sweep
from headstart.evaluation.performances import performances
from headstart.modules.photo_training import PhotoTraining
from headstart.tests.material.sweeps import run, write
from headstart.tests.material.training import CONFIGS, refuse, small_training

pytestmark = pytest.mark.slow


def test_accuracies_are_told_and_not_measured_again(
    photo_folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = [f"--config={CONFIGS / 'target_accuracy.yaml'}", *small_training(photo_folder), "--trainer.max_epochs=1"]
    widths = {"data__backbone__model_args__width_mult": {"values": [0.25, 0.35]}}
    file = write(tmp_path, [*options, "--data.orderings=2"], **widths)
    sweep.main([str(file), f"--output={tmp_path / 'a'}", f"--ledger={tmp_path / 'a-ledger'}", "--dry_run"])
    assert capfd.readouterr().out.count("2 of 2 accuracies to measure") == 2
    rows = run(file, tmp_path / "a")
    assert [(row["state"], row["computed_traces"]) for row in rows.values()] == [("complete", 2)] * 2
    assert "To compare: headstart performances" in capfd.readouterr().out

    monkeypatch.setattr(PhotoTraining, "training_step", refuse)
    again = run(file, tmp_path / "a")
    assert [(row["state"], row["computed_traces"]) for row in again.values()] == [("complete", 0)] * 2
    message = r"in network\.arguments\.width_mult \(0.\d+, 0.\d+\), .*; both are of the source"
    with pytest.raises(ValueError, match=message):
        performances(f"{tmp_path / 'a'}/*", trained="all", output=str(tmp_path / "table.csv"))
