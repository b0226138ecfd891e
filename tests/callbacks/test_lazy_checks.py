"""A lazy run of a method that holds all of its state gives the numbers of every evaluation."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.callbacks import ComparisonRun
from headstart.modules.method import Method
from headstart.tests.material import hidden_state
from headstart.tests.material.scripted_runs import ScriptedRun

Script = Callable[..., ScriptedRun]
NOTHING = np.zeros((2, 2, 40), dtype=np.int64)
OPTIONS: dict[str, Any] = {"threshold": 0.6, "consecutive": 4, "validation_size": 40}


def run(script: Script, method: Method, **options: Any) -> ScriptedRun:
    return script(NOTHING, methods=[method, hidden_state.Counting()], **{**OPTIONS, **options})


@pytest.mark.slow
def test_traces_of_draws_for_several_orderings_serve_no_lazy_run(script: Script, tmp_path: Path) -> None:
    def computed(folder: str, evaluation: str) -> ScriptedRun:
        return run(script, hidden_state.Drawing(), folder=folder, evaluation=evaluation, results=ComparisonRun())

    every = computed("every", "every")
    lazy = computed("lazy", "lazy")
    own = ComparisonRun(ledger=str(tmp_path / "own"))
    apart = run(script, hidden_state.Drawing(), folder="apart", evaluation="lazy", results=own)
    assert lazy.criterion.traces.measured.tolist() == [[True, True], [False, False]]
    assert (
        lazy.results.document["methods"]["baseline"]["onset"] == apart.results.document["methods"]["baseline"]["onset"]
    )
    # Every evaluation, as the second command reads it from the ledger, keeps its warning.
    again = computed("again", "every")
    for one in (every, again):
        (warning,) = one.results.document["methods"]["baseline"]["warnings"]
        assert warning.startswith("drew from a global generator")
    assert not again.criterion.traces.measured.any()
