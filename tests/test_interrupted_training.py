"""What a comparison leaves that is interrupted, stopped early or cut off, and how the next one continues it."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.modules.comparison import Comparison
from headstart.output.errors import INCOMPLETE
from headstart.tests.material.root import ROOT
from headstart.tests.material.training import SMALL_DEMO, run

pytestmark = pytest.mark.usefixtures("shared_cache")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code", "reason"), [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated")])
def test_interrupt_keeps_what_was_measured(name: str, code: int, reason: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    script = (
        "import os, signal, train\n"
        "from headstart.callbacks import SampleEfficiency\n"
        "log = SampleEfficiency.on_validation_end\n"
        "def interrupt(self, trainer, module):\n"
        "    log(self, trainer, module)\n"
        "    if module.samples_seen == 7:\n"
        f"        os.kill(os.getpid(), signal.{name})\n"
        "SampleEfficiency.on_validation_end = interrupt\n"
        f"train.main({[*SMALL_DEMO, f'--trainer.default_root_dir={folder}']!r})\n"
    )
    command = [sys.executable, "-c", script]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == code
    assert process.stderr.splitlines()[-1] == f"error: {reason}"
    assert "Traceback" not in process.stderr
    results = json.loads((folder / "results.json").read_text())
    assert not results["complete"]
    assert results["stopped_because"] == reason
    assert results["evaluations"] == results["samples_seen"] == results["restricted_at"] == 7
    complete = run(folder, *SMALL_DEMO)
    assert complete["complete"]
    command[-1] = script.replace("train.main([", "train.main(['--results.recompute=true', ")
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == code
    assert "are kept" in process.stdout
    assert json.loads((folder / "results.json").read_text()) == complete


@pytest.mark.slow
def test_a_run_that_the_trainer_stops_is_incomplete_and_evaluations_off_the_grid_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapt = Comparison.training_step

    def stop(self: Comparison, *batch: Any) -> None:
        adapt(self, *batch)
        # Lightning evaluates once more where it stops between two evaluations.
        self.trainer.should_stop = self.samples_seen == 8

    monkeypatch.setattr(Comparison, "training_step", stop)
    with pytest.raises(SystemExit) as caught:
        run(tmp_path, *SMALL_DEMO, "--criterion.evaluate_every=3", "--criterion.consecutive=3")
    assert caught.value.code == INCOMPLETE
    results = json.loads((tmp_path / "results.json").read_text())
    assert not results["complete"]
    assert "trainer" in results["stopped_because"]
    assert results["samples_seen"] == results["restricted_at"] == 6
    with np.load(tmp_path / "curves.npz") as curves:
        assert curves["samples_seen"].tolist() == [3, 6]


@pytest.mark.slow
def test_shutdown_while_features_are_computed_keeps_those_that_are_there(tmp_path: Path) -> None:
    environment = {"HEADSTART_CACHE": str(tmp_path / "cache"), "PATH": "", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(ROOT / "train.py"), *SMALL_DEMO, "--data.photos.train_size=100000"]
    command += ["--data.num_workers=2", f"--trainer.default_root_dir={tmp_path / 'run'}"]
    process = subprocess.Popen(command, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    tables = tmp_path / "cache" / "features"
    deadline = time.monotonic() + 120
    while not any(tables.glob("*/*.safetensors")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    # The stream is at its end when no process is left that decodes.
    _, output = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "Traceback" not in output
    assert [text for text in output.splitlines() if "error" in text.lower()] == ["error: terminated"]
    (table,) = tables.iterdir()
    # The part that was being computed leaves nothing.
    assert {path.suffix for path in table.iterdir()} == {".json", ".safetensors"}
    assert not (tmp_path / "run").exists()
