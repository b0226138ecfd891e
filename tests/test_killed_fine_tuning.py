"""A fine-tuning run that is killed at random moments ends as an unbroken one, bit for bit; a pass is lost at most."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

CHECKOUT = Path(__file__).parent.parent
KILLS = 20
METHODS = {
    "probed": "{class_path: headstart.modules.LinearProbeThenFineTune, init_args: {probe_samples: 8}}",
    "unfrozen": "{class_path: headstart.modules.GradualUnfreezing, init_args: {samples_per_stage: 4}}",
    "replay": "{class_path: headstart.modules.Replay, init_args: {replay_size: 4, steps: 2}}",
    "closed": "headstart.modules.RecursiveLeastSquares",
}


def options(folder: Path, evaluation: str, boundary: str) -> list[str]:
    return [
        f"--config={CHECKOUT / 'configs' / 'demo.yaml'}",
        "--data=headstart.datamodules.PhotoStream",
        f"--data.trainable_from={boundary}",
        "--data.orderings=3",
        "--data.max_samples=36",
        "--data.batch_size=2",
        "--data.validation_size=40",
        "--data.dropout=true",
        "--model.baseline=headstart.modules.GradientDescent",
        *(f"--model.methods.{name}={kind}" for name, kind in METHODS.items()),
        f"--criterion.evaluation={evaluation}",
        "--criterion.threshold=0.7",
        "--criterion.consecutive=4",
        "--trainer.accelerator=cpu",
        "--trainer.logger=false",
        f"--trainer.default_root_dir={folder}",
    ]


# The passes that end are noted.
CHILD = """
import sys
from headstart import train
from headstart.callbacks.traces import Traces

finish = Traces.finish

def note(self):
    finish(self)
    with open(sys.argv[1], "a") as file:
        print("ended", file=file)

Traces.finish = note
train.main(sys.argv[2:])
"""


def begin(folder: Path, cache: Path, *rest: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "HEADSTART_CACHE": str(cache), "HEADSTART_LEDGER": str(folder.with_suffix(".ledger"))}
    environment["PYTHONPATH"] = str(CHECKOUT)
    command = [sys.executable, "-c", CHILD, str(folder.with_suffix(".passes")), *options(folder, *rest)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def results(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    document = json.loads((folder / "results.json").read_text())
    with np.load(folder / "curves.npz") as arrays:
        curves = {name: array.tolist() for name, array in arrays.items()}
    return {key: value for key, value in document.items() if key not in ("times", "environment")}, curves


@pytest.mark.slow
@pytest.mark.parametrize(("evaluation", "boundary"), [("lazy", "features.14"), ("every", "all")])
def test_killed_at_twenty_random_moments(tmp_path: Path, evaluation: str, boundary: str) -> None:
    cache, whole, broken = tmp_path / "cache", tmp_path / "whole", tmp_path / "broken"
    assert begin(whole, cache, evaluation, boundary).wait() == 0
    # The photos exist the second time.
    began = time.monotonic()
    assert begin(tmp_path / "again", cache, evaluation, boundary).wait() == 0
    seconds = time.monotonic() - began
    moments, kills, runs = random.Random(0), 0, 1
    while kills < KILLS:
        is_whole, began = not broken.exists(), time.monotonic()
        process = begin(broken, cache, evaluation, boundary)
        try:
            process.wait(moments.uniform(0.5, 1) * seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
        else:
            # The run has finished: it restarts from the beginning.
            assert process.returncode == 0
            assert results(broken) == results(whole)
            runs += 1
            if is_whole:
                # The run is faster than the first one was.
                seconds = time.monotonic() - began
            for file in (broken, broken.with_suffix(".ledger")):
                shutil.rmtree(file)
    assert begin(broken, cache, evaluation, boundary).wait() == 0
    assert results(broken) == results(whole)
    # Of three passes each, none of which is measured twice.
    passes = broken.with_suffix(".passes").read_text().split()
    assert len(passes) <= 3 * runs
