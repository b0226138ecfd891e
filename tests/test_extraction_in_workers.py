"""Commands whose features are computed by workers give the results of those that compute them alone."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.slow

DEMO = ["demo", "--trainer.logger=false", "--data.orderings=3", "--data.max_samples=20"]


# Every Python process that starts leaves a file; a worker's command says so.
TRACE = """
import os, sys
if "spawn_main" in " ".join(sys.orig_argv):
    open(os.path.join(os.environ["STARTED"], str(os.getpid())), "w").close()
"""


def run(folder: Path, *options: str) -> int:
    """Run a command in a folder of its own, with a cache and a ledger there; return how many workers it started."""
    folder.mkdir()
    (folder / "started").mkdir()
    (folder / "sitecustomize.py").write_text(TRACE)
    own = {"HEADSTART_CACHE": "cache", "HEADSTART_LEDGER": "ledger", "OMP_NUM_THREADS": "1"}
    paths = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, **own, "PYTHONPATH": paths, "STARTED": str(folder / "started")}
    command = [sys.executable, "-m", "headstart", *options]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return len(list((folder / "started").iterdir()))


def results_in(folder: Path) -> Any:
    (path,) = folder.glob("runs/**/results.json")
    return json.loads(path.read_text())


def test_a_comparison(tmp_path: Path) -> None:
    assert run(tmp_path / "alone", *DEMO) == 0
    assert run(tmp_path / "workers", *DEMO, "--data.workers=2") >= 2
    alone, workers = (results_in(tmp_path / name) for name in ("alone", "workers"))
    for name, method in alone["methods"].items():
        assert method["samples_to_criterion"] == workers["methods"][name]["samples_to_criterion"]
    curves = [np.load(next((tmp_path / name).glob("runs/**/curves.npz"))) for name in ("alone", "workers")]
    assert set(curves[0].files) == set(curves[1].files)
    assert all(np.array_equal(curves[0][name], curves[1][name]) for name in curves[0].files)
    # The same command again finds the rows, whoever computes them.
    assert len(list((tmp_path / "workers" / "cache" / "features").glob("*/*.safetensors"))) > 1
