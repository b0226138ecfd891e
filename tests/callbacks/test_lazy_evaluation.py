"""A lazy run meets the criterion where every evaluation does, says what it left out, and stops what has met it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from headstart.callbacks import ComparisonRun
from headstart.modules.method import Method, MethodStart
from headstart.tests.material.scripted_runs import Scripted, ScriptedRun

Script = Callable[..., ScriptedRun]
CRITERION: dict[str, Any] = {"threshold": 0.8, "consecutive": 4}
GENERATOR = np.random.default_rng(0)
COUNTS = np.where(GENERATOR.random((3, 4, 40)) < np.linspace(0.3, 1, 40), 18, 9)


def both(script: Script, tmp_path: Path, counts: Any = COUNTS, **options: Any) -> tuple[ScriptedRun, ScriptedRun]:
    ledger = tmp_path / "of every"
    every = script(counts, folder="every", results=ComparisonRun(ledger=str(ledger)), **CRITERION, **options)
    return every, script(counts, folder="lazy", results=ComparisonRun(), evaluation="lazy", **CRITERION, **options)


@pytest.mark.slow
@pytest.mark.parametrize("evaluate_every", [1, 3])
def test_scores_are_those_of_every_evaluation(script: Script, tmp_path: Path, evaluate_every: int) -> None:
    every, lazy = (run.results.document for run in both(script, tmp_path, evaluate_every=evaluate_every))
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
    script(counts, folder="on", results=ComparisonRun(), stop_when_met=True, **CRITERION)
    assert fed == [*[pair for k in range(1, 5) for pair in ((18, k), (9, k))], *[(9, k) for k in range(5, 25)]]
    fed.clear()
    run = script(counts, folder="off", results=ComparisonRun(recompute=True), **CRITERION)
    assert len(fed) == 2 * 24
    assert run.criterion.traces.lengths.tolist() == [[24], [24]]


@pytest.mark.slow
def test_traces_of_every_evaluation_serve_a_lazy_run_and_not_the_other_way(script: Script) -> None:
    lazy = script(COUNTS, folder="lazy", results=ComparisonRun(), evaluation="lazy", **CRITERION)
    every = script(COUNTS, folder="every", results=ComparisonRun(), **CRITERION)
    assert lazy.results.document["times"]["reused_traces"] == every.results.document["times"]["reused_traces"] == 0
    again = script(COUNTS, folder="other", results=ComparisonRun(), evaluation="lazy", threshold=0.9, consecutive=4)
    assert again.results.document["times"]["computed_traces"] == 0
    onsets = [run.results.document["methods"]["baseline"]["onset"] for run in (again, every)]
    assert onsets[0] == onsets[1]


@pytest.mark.slow
def test_shorter_traces_of_every_evaluation_hide_nothing(script: Script) -> None:
    options: dict[str, Any] = {**CRITERION, "threshold": 0.95}
    script(COUNTS, folder="short", results=ComparisonRun(), max_samples=10, **options)
    first = script(COUNTS, folder="lazy", results=ComparisonRun(), evaluation="lazy", **options)
    again = script(COUNTS, folder="again", results=ComparisonRun(), evaluation="lazy", **options)
    assert first.results.document["times"]["computed_traces"] == COUNTS.shape[0] * COUNTS.shape[1]
    assert again.results.document["times"]["computed_traces"] == 0
    assert again.correct.tolist() == first.correct.tolist()


class Counting(Method):
    """Is right on as many validation samples as it has seen batches.

    The input of a validation sample is its index, and its class is 0 where that is even.
    """

    def begin(self, start: MethodStart) -> None:
        super().begin(start)
        self.batches = 0
        # What is drawn before the first batch is the same for all orderings.
        torch.rand(3)

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        self.batches += 1

    def forward(self, inputs: Tensor) -> Tensor:
        return self.predict(inputs, self.batches)

    def predict(self, inputs: Tensor, right: float) -> Tensor:
        classes = inputs[:, 0].long() % 2
        predicted = torch.where(inputs[:, 0] < right, classes, 1 - classes)
        return torch.nn.functional.one_hot(predicted, 2).float().expand(len(self.start.ordering_numbers), -1, -1)


class Drawing(Counting):
    """Is right on more samples the more it draws; what it draws has an axis of orderings, as dropout's mask has."""

    def begin(self, start: MethodStart) -> None:
        super().begin(start)
        self.right = torch.zeros(len(start.ordering_numbers), 1)

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        self.right = self.right + 2 * torch.rand(len(inputs), 1)

    def forward(self, inputs: Tensor) -> Tensor:
        classes = inputs[:, 0].long() % 2
        predicted = torch.where(inputs[:, 0] < self.right, classes, 1 - classes)
        return torch.nn.functional.one_hot(predicted, 2).float()


@pytest.mark.slow
def test_traces_of_draws_for_several_orderings_serve_no_lazy_run(script: Script, tmp_path: Path) -> None:
    def computed(folder: str, evaluation: str, ledger: str | None = None) -> ScriptedRun:
        methods = [Drawing(), Counting()]
        results, options = ComparisonRun(ledger=ledger), {"threshold": 0.6, "consecutive": 4, "validation_size": 40}
        nothing = np.zeros((2, 2, 40), dtype=np.int64)
        return script(nothing, methods=methods, folder=folder, evaluation=evaluation, results=results, **options)

    every = computed("every", "every")
    lazy = computed("lazy", "lazy")
    apart = computed("apart", "lazy", str(tmp_path / "own"))
    assert lazy.criterion.traces.measured.tolist() == [[True, True], [False, False]]
    onsets = [each.results.document["methods"]["baseline"]["onset"] for each in (lazy, apart)]
    assert onsets[0] == onsets[1]
    # Every evaluation, as the second command reads it from the ledger, keeps its warning.
    again = computed("again", "every")
    for one in (every, again):
        (warning,) = one.results.document["methods"]["baseline"]["warnings"]
        assert warning.startswith("drew from a global generator")
        assert "warnings" not in one.results.document["methods"]["method_0"]
    assert "warnings" not in lazy.results.document["methods"]["baseline"]
    assert not again.criterion.traces.measured.any()
