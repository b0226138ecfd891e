"""A sweep of fine-tuning sources on targets measures no accuracy twice, and has one choice of each grid."""

from pathlib import Path
from typing import Any

import pytest

from headstart import sweep
from headstart.evaluation.performances import performances
from headstart.modules.photo_training import PhotoTraining
from headstart.output.errors import UserError
from headstart.tests.material.sweeps import results, run, write
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


def test_a_grid_of_recipes_has_one_choice_for_each_pair(tmp_path: Path, photo_folder: Path) -> None:
    options = [f"--config={CONFIGS / 'target_accuracy.yaml'}", *small_training(photo_folder)]
    few = ["--model.trained=head", "--trainer.max_epochs=2", "--data.selection_share=0.25"]
    grid: dict[str, Any] = {
        "model__optimizer__init_args__lr": {"values": [0.1, 0.001]},
        "model__optimizer__init_args__weight_decay": {"values": [0.05, 0.0]},
    }
    run(write(tmp_path, [*options, *few], **grid), tmp_path / "sweep")
    documents = list(results(tmp_path / "sweep").values())
    assert len(documents) == 4

    pair = ("mobilenet_v2_random", photo_folder.name)
    chosen = performances(f"{tmp_path / 'sweep'}/*", best=True, output=str(tmp_path / "best.csv"))
    highest = max(document["selection_accuracy"] for document in documents)
    assert chosen[pair] in {each["accuracy"] for each in documents if each["selection_accuracy"] == highest}
    with pytest.raises(UserError, match=r"optimizer\.init_args\.(lr|weight_decay) \(.*; give runs of one recipe"):
        performances(f"{tmp_path / 'sweep'}/*", output=str(tmp_path / "table.csv"))
