"""A method whose state a checkpoint lacks restarts after a kill instead of continuing with another state."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from headstart.callbacks import ComparisonRun, checkpoints
from headstart.tests.material import hidden_state
from headstart.tests.material.scripted_runs import Killed, ScriptedRun

Script = Callable[..., ScriptedRun]
NOTHING = np.zeros((2, 2, 40), dtype=np.int64)
OPTIONS: dict[str, Any] = {"threshold": 0.6, "consecutive": 4, "validation_size": 40}


@pytest.fixture(autouse=True)
def checkpoint_after_every_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(checkpoints, "SHARE", 1e9)


def run(script: Script, name: str, **options: Any) -> ScriptedRun:
    """Run a method beside one without a secret, as in a process of its own."""
    hidden_state.SEEN["batches"] = 0
    hidden_state.OnClass.seen.clear()
    hidden_state.InClassSet.seen.clear()
    methods = [getattr(hidden_state, name)(), hidden_state.Counting()]
    ledger = f"{folder}/ledger" if (folder := options.get("folder")) else None
    return script(NOTHING, methods=methods, results=ComparisonRun(ledger=ledger), **{**OPTIONS, **options})


# Lazy evaluation raises an error for the others.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "evaluation"),
    [("InAlias", "lazy"), *((name, "every") for name in ("InAlias", "InClassSet", "InModule", "OnClass"))],
)
def test_a_method_whose_state_a_checkpoint_lacks_restarts(
    name: str, evaluation: str, script: Script, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = run(script, name, folder=str(tmp_path / "whole"), evaluation="every")
    run(script, name, evaluation=evaluation, callbacks=(Killed(13),))
    capsys.readouterr()
    resumed = run(script, name, evaluation=evaluation)
    printed = " ".join(capsys.readouterr().out.split())
    assert "Resumed after 12 samples: method_0 in" in printed
    assert "baseline cannot be continued where it is cut off (" in printed
    for method in ("baseline", "method_0"):
        expected = whole.results.document["methods"][method]["onset"]
        assert resumed.results.document["methods"][method]["onset"] == expected
    if evaluation == "every":
        assert resumed.correct.tolist() == whole.correct.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Counting", "InOptimizer", "InTrainer", "Drawing"])
def test_a_method_whose_state_a_checkpoint_has_goes_on(
    name: str, script: Script, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = run(script, name, folder=str(tmp_path / "whole"))
    run(script, name, callbacks=(Killed(13),))
    capsys.readouterr()
    resumed = run(script, name)
    printed = " ".join(capsys.readouterr().out.split())
    assert "Resumed after 12 samples: baseline, method_0 in" in printed
    assert resumed.correct.tolist() == whole.correct.tolist()


class LateAlias(hidden_state.InAlias):
    """Shares the memory only after some batches."""

    shared_from = 6

    def adapt(self, inputs: torch.Tensor, labels: torch.Tensor) -> None:
        super().adapt(inputs, labels)
        self.batches += 1
        if self.batches < self.shared_from:
            self.tensor = torch.tensor(self.array)
        elif self.batches == self.shared_from:
            self.tensor = torch.from_numpy(self.array)


def test_a_checkpoint_goes_where_the_problem_shows_later(script: Script) -> None:
    def stored(samples: int) -> list[str]:
        killed = {"results": ComparisonRun(), "callbacks": (Killed(samples),)}
        cut_off = script(NOTHING, methods=[LateAlias()], **killed, **OPTIONS)
        return [file.name for file in cut_off.results.checkpoints.folder.glob("*")]

    assert len(stored(6)) == 1
    assert stored(13) == []


class LaterAlias(LateAlias):
    """Shares it where no copy is compared before the run is killed."""

    shared_from = 10


def test_an_array_that_shares_memory_with_a_tensor_is_found_between_comparisons(script: Script) -> None:
    killed = {"results": ComparisonRun(), "callbacks": (Killed(13),)}
    cut_off = script(NOTHING, methods=[LaterAlias()], **killed, **OPTIONS)
    assert not [*cut_off.results.checkpoints.folder.glob("*")]
