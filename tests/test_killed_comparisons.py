"""Comparisons that are killed at random moments end as unbroken ones, bit for bit, and lose at most a pass."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

CHECKOUT = Path(__file__).parent.parent
PHOTOS = ["--data=headstart.datamodules.PhotoStream", "--data.trainable_from=features.17", "--data.dropout=true"]
# Options of each kind of run, and how often it is killed.
KINDS = {
    "frozen": (["--data.orderings=6"], 7),
    "fine-tuning": ([*PHOTOS, "--criterion.evaluation=lazy", "--data.orderings=3"], 7),
    "own": (["--data.orderings=3", "--model.methods.own=headstart.tests.material.lightning_modules.Probe"], 6),
}
# Imports once, and forks a process for each run, so that a run takes the seconds of its passes.
SERVER = """
import json, os, random, shutil, signal, sys, time
from pathlib import Path
import headstart.cli.comparison, headstart.callbacks.plots, headstart.output.figures
from headstart import train
from headstart.callbacks.traces import Traces

def begin(folder, options):
    child = os.fork()
    if child:
        return child
    os.environ["HEADSTART_LEDGER"] = f"{folder}.ledger"
    os.dup2(os.open(f"{folder}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 1)
    os.dup2(1, 2)
    finish = Traces.finish
    def note(self):
        finish(self)
        with open(f"{folder}.passes", "a") as file:
            print("ended", file=file)
    Traces.finish = note
    code = 1
    try:
        train.main([*options, f"--trainer.default_root_dir={folder}"])
        code = 0
    finally:
        os._exit(code)

def end(child, seconds):
    '''Kill a run after some time; return whether it was there to kill.'''
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            assert status == 0, status
            return False
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True

options, kills, folder = json.loads(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
for name in ("whole", "again"):
    began = time.monotonic()
    assert not end(begin(folder / name, options), 600)
    seconds = time.monotonic() - began
moments, killed, rounds = random.Random(0), 0, 1
while killed < kills:
    if end(begin(folder / "broken", options), moments.uniform(0, 0.8 * seconds)):
        killed += 1
    else:
        (folder / f"broken {rounds}").mkdir()
        shutil.move(folder / "broken", folder / f"broken {rounds}" / "run")
        shutil.rmtree(folder / "broken.ledger")
        rounds += 1
assert not end(begin(folder / "broken", options), 600)
print(rounds)
"""


def results(folder: Path) -> dict[str, object]:
    document = json.loads((folder / "results.json").read_text())
    with np.load(folder / "curves.npz") as arrays:
        curves = {name: array.tolist() for name, array in arrays.items()}
    return {**{key: document[key] for key in ("methods", "criterion", "protocol", "warnings", "complete")}, **curves}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_random_moments(kind: str, tmp_path: Path) -> None:
    more, kills = KINDS[kind]
    small = ("batch_size=2", "max_samples=24", "validation_size=40", "orderings_at_once=1")
    options = [f"--config={CHECKOUT / 'configs' / 'demo.yaml'}", *(f"--data.{each}" for each in small), *more]
    options += ["--criterion.consecutive=4", "--trainer.accelerator=cpu", "--trainer.logger=false"]
    environment = {**os.environ, "HEADSTART_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(CHECKOUT)}
    # Traces of own methods are stored of scripts alone.
    server = tmp_path / "server.py"
    server.write_text(SERVER)
    command = [sys.executable, str(server), json.dumps(options), str(kills), str(tmp_path)]
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr

    expected = results(tmp_path / "whole")
    rounds = int(ended.stdout)
    folders = [tmp_path / "broken", *(tmp_path / f"broken {number}" / "run" for number in range(1, rounds))]
    assert all(results(folder) == expected for folder in folders)
    # No pass is measured twice.
    passes, whole = ((tmp_path / f"{name}.passes").read_text().count("ended") for name in ("broken", "whole"))
    assert passes <= rounds * whole
