"""Runs on two data sets."""

from pathlib import Path

import pytest

from headstart.tests.material.report_runs import METHODS, traces
from headstart.tests.material.runs import write_run


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Write runs on two data sets into a folder of their own."""
    (tmp_path / "runs").mkdir()
    for seed, name in enumerate(("pets", "flowers")):
        write_run(tmp_path / "runs" / name, traces(seed), limit=60, methods=METHODS, dataset=name)
    return tmp_path / "runs"
