"""Runs of comparisons whose counts of correct predictions are scripted."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from headstart.tests.material.blank_figures import blank_figures
from headstart.tests.material.scripted_runs import ScriptedRun, run_script


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., ScriptedRun]:
    """Run a scripted comparison in the test's folder, with blank figures unless `drawn` is given."""

    def run(counts: Any, drawn: bool = False, **options: Any) -> ScriptedRun:
        with nullcontext() if drawn else blank_figures():
            return run_script(counts, tmp_path / options.pop("folder", "run"), **options)

    return run
