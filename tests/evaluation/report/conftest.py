"""Runs on two data sets."""

from pathlib import Path

import pytest

from headstart.tests.material.report_runs import METHODS, traces
from headstart.tests.material.runs import write_runs


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Write runs on two data sets into a folder of their own."""
    named = {name: {"correct": traces(seed), "dataset": name} for seed, name in enumerate(("pets", "flowers"))}
    return write_runs(tmp_path / "runs", named, limit=60, methods=METHODS)
