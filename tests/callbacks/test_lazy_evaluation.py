"""A lazy run meets the criterion where every evaluation does, says what it left out, and stops what has met it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from torch import Tensor

from headstart.callbacks import ComparisonRun
from headstart.tests.material.scripted_runs import Scripted, ScriptedRun

Script = Callable[..., ScriptedRun]
CRITERION: dict[str, Any] = {"threshold": 0.8, "consecutive": 4}
GENERATOR = np.random.default_rng(0)
COUNTS = np.where(GENERATOR.random((3, 4, 40)) < np.linspace(0.3, 1, 40), 18, 9)


@pytest.mark.slow
@pytest.mark.parametrize("evaluate_every", [1, 3])
def test_scores_are_those_of_every_evaluation(script: Script, evaluate_every: int) -> None:
    options = {**CRITERION, "evaluate_every": evaluate_every}
    every, lazy = (
        script(COUNTS, results=ComparisonRun(), folder=each, evaluation=each, **options).results.document
        for each in ("every", "lazy")
    )
    for name, scores in every["methods"].items():
        for key in ("samples_to_criterion", "onset", "reached", "restricted_mean"):
            assert lazy["methods"][name][key] == scores[key]
        made = zip(lazy["methods"][name]["evaluations"], scores["evaluations"], strict=True)
        assert all(few < many for few, many in made)
    assert lazy["comparisons"] == every["comparisons"]
    assert lazy["complete"]
    assert lazy["criterion"]["evaluation"] == "lazy"


def test_a_method_that_has_met_the_criterion_is_fed_no_more(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    fed: list[tuple[int, int]] = []
    adapt = Scripted.adapt

    def counted(self: Scripted, *batch: Tensor) -> None:
        adapt(self, *batch)
        fed.append((int(self.script.counts[0, 0]), self.batches))

    monkeypatch.setattr(Scripted, "adapt", counted)
    counts = [[[18] * 30], [[9] * 20 + [18] * 10]]
    script(counts, folder="lazy", results=ComparisonRun(), evaluation="lazy", **CRITERION)
    assert fed == [*[pair for k in range(1, 5) for pair in ((18, k), (9, k))], *[(9, k) for k in range(5, 25)]]
    fed.clear()
    run = script(counts, folder="every", results=ComparisonRun(), **CRITERION)
    assert len(fed) == 2 * 24
    assert run.criterion.traces.lengths.tolist() == [[24], [24]]
