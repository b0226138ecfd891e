"""Commands whose features are computed by workers give the results of those that compute them alone."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

DEMO = ["demo", "--trainer.logger=false", "--data.orderings=3", "--data.max_samples=20"]


def run(folder: Path, *options: str) -> str:
    """Run a command in a folder of its own, with a cache and a ledger there; return what it prints of errors."""
    folder.mkdir()
    environment = {**os.environ, "HEADSTART_CACHE": "cache", "HEADSTART_LEDGER": "ledger", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "headstart", *options]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def results_in(folder: Path) -> Any:
    (path,) = folder.glob("runs/**/results.json")
    return json.loads(path.read_text())


def test_a_comparison(tmp_path: Path) -> None:
    run(tmp_path / "alone", *DEMO)
    run(tmp_path / "workers", *DEMO, "--data.workers=2")
    alone, workers = (results_in(tmp_path / name) for name in ("alone", "workers"))
    traces = [list(csv_rows(tmp_path / name)) for name in ("alone", "workers")]
    assert traces[0] == traces[1]
    assert len(traces[0]) > 10
    assert alone["methods"].keys() == workers["methods"].keys()
    # The same command again finds the rows, whoever computes them.
    assert len(list((tmp_path / "workers" / "cache" / "rows").glob("*/*.journal"))) > 1


def test_a_classifier(tmp_path: Path) -> None:
    run(tmp_path / "photos", "write-photos", "pets", "--count=40")
    options = ["fit", str(tmp_path / "photos" / "pets"), "--backbones=[{weights: embedded}]", "--orderings=3"]
    run(tmp_path / "alone", *options, "--output=runs/fit")
    run(tmp_path / "workers", *options, "--output=runs/fit", "--features.workers=2")
    alone, workers = (results_in(tmp_path / name) for name in ("alone", "workers"))
    for document in (alone, workers):
        for key in ("seconds", "command", "created", "features"):
            document.pop(key, None)
    assert alone == workers
