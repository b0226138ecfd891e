"""A fault while a network is trained ends in one line; measured traces are kept, and marked incomplete."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from headstart import modules
from headstart.output.errors import INCOMPLETE

CHECKOUT = Path(__file__).parent.parent
OPTIONS = [
    f"--config={CHECKOUT / 'configs' / 'demo.yaml'}",
    "--data=headstart.datamodules.PhotoStream",
    "--data.trainable_from=features.17",
    "--data.photos.train_size=60",
    "--data.orderings=3",
    "--data.max_samples=12",
    "--data.validation_size=20",
    "--criterion.consecutive=3",
    "--criterion.threshold=1.0",
    "--model.methods={}",
    "--trainer.accelerator=cpu",
    "--trainer.logger=false",
]


class InSecondOrdering(modules.GradientDescent):
    """Goes wrong after five samples of the second ordering."""

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        super().adapt(inputs, labels)
        self.seen = getattr(self, "seen", 0) + 1
        if self.seen == 5 and 1 in self.start.ordering_numbers:
            self.go_wrong()

    def go_wrong(self) -> None:
        """Go wrong."""


class Explodes(InSecondOrdering):
    """Has a loss that is not a number."""

    def go_wrong(self) -> None:
        (self.weight.sum() * float("nan")).backward()
        self.optimizer.step()


class TakesAllMemory(InSecondOrdering):
    """Asks for more memory than there is."""

    def go_wrong(self) -> None:
        torch.empty(2**60)


@pytest.fixture
def fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[str, dict[str, Any]]]:
    """Run a comparison that fails; give its last line, and the results that it leaves."""
    from headstart.train import main

    def run(*options: str) -> tuple[str, dict[str, Any]]:
        with pytest.raises(SystemExit) as caught:
            main([*OPTIONS, f"--trainer.default_root_dir={tmp_path / 'run'}", *options])
        assert caught.value.code not in (0, None, INCOMPLETE)
        output = capsys.readouterr()
        assert "Traceback" not in output.err + output.out
        results = tmp_path / "run" / "results.json"
        return output.err.strip().splitlines()[-1], json.loads(results.read_text()) if results.exists() else {}

    return run


@pytest.mark.parametrize("evaluation", [pytest.param("every", marks=pytest.mark.slow), "lazy"])
@pytest.mark.parametrize(
    ("kind", "line"),
    [
        (Explodes, "error: model.baseline: its loss turned NaN or infinite, and its weights with it, by "),
        (TakesAllMemory, "error: data.batch_size: a batch of (1, 1, "),
    ],
)
def test_measured_traces_are_kept(fail: Any, kind: type, line: str, evaluation: str) -> None:
    result, results = fail(f"--model.baseline={__name__}.{kind.__name__}", f"--criterion.evaluation={evaluation}")
    assert result.startswith(line)
    assert "ordering 1; lower its learning rate" in result or "lower data.batch_size" in result
    assert not results["complete"]
    # The evaluations of the second ordering before the fault remain.
    assert len(results["methods"]["baseline"]["evaluations"]) == 2
    assert results["methods"]["baseline"]["evaluations"][0] == (12 if evaluation == "every" else 4)
