"""Fixtures for sweeps."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headstart.tests.material.sweeps import write


@pytest.fixture
def file(tmp_path: Path, small_comparison: Callable[[Path], list[str]]) -> Path:
    """Write a sweep of two runs of a second each."""
    return write(tmp_path, [*small_comparison(tmp_path), "--trainer.logger=false"])
