"""Thresholds of targets that state `reference` follow from reference runs."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

from headstart.callbacks import SampleEfficiency
from headstart.output.errors import UserError
from headstart.sweeps.sweep_file import read_sweep
from headstart.sweeps.thresholds import choose_threshold, reference_runs
from headstart.tests.material.runs import seal
from headstart.tests.material.sweeps import run, write

REFERENCE = [
    "--model.baseline=headstart.modules.NearestClassMean",
    "--model.methods={}",
    "--data.orderings=3",
    "--criterion.until=limit",
    "--trainer.logger=false",
]


@pytest.fixture
def targets(tmp_path: Path, small_comparison: Callable[[Path], list[str]]) -> Path:
    """Write a sweep over two targets, of which one states its threshold, and one asks for it."""
    options = small_comparison(tmp_path)
    (tmp_path / "open.yaml").write_text("criterion:\n  threshold: reference\n")
    (tmp_path / "fixed.yaml").write_text("criterion:\n  threshold: 0.6\n")
    names = [str(tmp_path / name) for name in ("open.yaml", "fixed.yaml")]
    file = write(tmp_path, [*options, "--trainer.logger=false"], config={"values": names})
    content = yaml.safe_load(file.read_text())
    content["reference"] = [*options, *REFERENCE]
    file.write_text(yaml.safe_dump(content, sort_keys=False))
    return file


@pytest.mark.slow
def test_a_target_that_asks_for_a_threshold_gets_one_from_its_reference_run(targets: Path, tmp_path: Path) -> None:
    assert [Path(name.removeprefix("--config=")).stem for (name,) in reference_runs(read_sweep(targets))] == ["open"]
    rows = run(targets, tmp_path / "a")
    assert [row["state"] for row in rows.values()] == ["complete"] * 2

    (before,) = (tmp_path / "a" / ".thresholds").glob("open-*")
    document, curves = json.loads((before / "results.json").read_text()), np.load(before / "curves.npz")
    assert document["protocol"]["orderings"] == 3
    # Computed by hand from the counts: two classes of equal size, so that the largest has half of the photos.
    reached = curves["correct"][0, :, -1].mean() / document["protocol"]["validation_size"]
    expected = round(20 * (0.5 + reached) / 2) / 20
    chosen = {
        name.partition("-")[0]: json.loads((tmp_path / "a" / name / "results.json").read_text())["criterion"]
        for name in rows
    }
    assert chosen["open"]["threshold"] == pytest.approx(expected)
    assert chosen["fixed"]["threshold"] == 0.6
    # Nothing is measured again.
    again = run(targets, tmp_path / "a")
    assert [row["computed_traces"] for row in again.values()] == [0, 0]


def test_a_run_alone_needs_a_number() -> None:
    # As an agent of W&B would run it, which reads no `reference`.
    with pytest.raises(
        UserError, match=r"^criterion\.threshold: reference stands for the threshold that headstart sweep"
    ):
        SampleEfficiency(threshold="reference")


@pytest.mark.slow
def test_a_reference_that_does_not_learn_is_an_error(targets: Path, tmp_path: Path) -> None:
    rows = run(targets, tmp_path / "a")
    folder = tmp_path / "a" / next(name for name in rows if name.startswith("fixed"))
    document = json.loads((folder / "results.json").read_text())
    document["criterion"]["largest_class"] = document["criterion"]["all_correct"]
    seal(folder, document)
    with pytest.raises(UserError, match=r"largest class is 100\.0%"):
        choose_threshold(folder)
