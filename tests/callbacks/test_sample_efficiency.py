"""The criterion in a trainer, on counts of correct predictions that are scripted."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch import Tensor

from headstart.callbacks import ComparisonProgress, ComparisonRun, SampleEfficiency
from headstart.modules.methods.gradient_descent import GradientDescent
from headstart.output.errors import UserError

Script = Callable[..., Any]
# Runs that continue to the sample limit after every trace has met the criterion.
LONG = np.where(np.random.default_rng(3).random((2, 3, 30)) < 0.9, 17, 12)
TWICE: dict[str, Any] = {"threshold": 0.8, "consecutive": 2}


def first_met(counts: list[int], required: int, consecutive: int) -> int | None:
    """Return the evaluation, from 1, at which the streak is full."""
    streak = 0
    for evaluation, count in enumerate(counts, start=1):
        streak = streak + 1 if count >= required else 0
        if streak == consecutive:
            return evaluation
    return None


@pytest.mark.parametrize(("seed", "batch_size", "evaluate_every"), [(0, 1, 1), (1, 8, 1), (2, 1, 3), (4, 4, 2)])
def test_run_stops_once_the_last_has_met_the_criterion(
    script: Script, seed: int, batch_size: int, evaluate_every: int
) -> None:
    generator = np.random.default_rng(seed)
    counts = np.where(generator.random((2, 3, 40)) < 0.93, 16, 15)
    options = {"batch_size": batch_size, "evaluate_every": evaluate_every}
    run = script(counts, consecutive=5, threshold=0.8, **options)
    met = [first_met(trace.tolist(), 16, 5) for trace in counts.reshape(6, 40)]
    everywhere = None not in met
    evaluations = max(number for number in met if number is not None) if everywhere else 40
    assert run.evaluations == evaluations
    assert run.samples_seen == [batch_size * evaluate_every * i for i in range(1, evaluations + 1)]
    assert np.array_equal(run.correct, counts[..., :evaluations])
    assert run.criterion.met.flatten().tolist() == [number is not None for number in met]
    reason = "every method met the criterion in every ordering" if everywhere else "the sample limit was reached"
    assert run.stopped_because == reason


class Interrupt(Callback):
    """Raises at the third batch.

    Args:
        error: What to raise.
    """

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        if batch_idx == 2:
            raise self.error


def test_reason_where_the_run_is_cut_off(script: Script) -> None:
    reasons: dict[BaseException, str] = {
        KeyboardInterrupt(): "interrupted",
        SIGTERMException(): "terminated",
        RuntimeError("out of luck"): "error: RuntimeError: out of luck",
    }
    for error, reason in reasons.items():
        results = ComparisonRun()
        with suppress(KeyboardInterrupt, SystemExit):
            script([[[0] * 12]], callbacks=(Interrupt(error),), results=results)
        assert results.document["stopped_because"] == reason
        assert results.document["evaluations"] == 2
        assert not results.document["complete"]


class InterruptEvaluation(Callback):
    """Raises in the third evaluation."""

    def on_validation_batch_start(self, trainer: Trainer, *_: Any) -> None:
        if trainer.fit_loop.epoch_loop.batch_idx == 2:
            raise KeyboardInterrupt


@pytest.mark.parametrize("evaluation", ["every", "lazy"])
def test_an_evaluation_that_is_cut_off_does_not_count(script: Script, evaluation: str) -> None:
    results = ComparisonRun()
    with suppress(KeyboardInterrupt, SystemExit):
        options: dict[str, Any] = {"evaluation": evaluation, "consecutive": 2}
        script([[[16] * 12]], callbacks=(InterruptEvaluation(),), results=results, threshold=0.9, **options)
    assert results.document["evaluations"] == 2


def test_stored_traces_are_logged_as_if_they_were_measured(script: Script, tmp_path: Path) -> None:
    counts = np.array([[[4, 16, 16, 0], [20, 20, 20, 20]]])
    tables = []
    for name in ("measured", "stored"):
        logger = CSVLogger(str(tmp_path), name, flush_logs_every_n_steps=1)
        script(counts, consecutive=2, logger=logger, folder=name)
        logger.save()
        tables.append(Path(logger.experiment.metrics_file_path).read_text())
    assert tables[0] == tables[1]
    assert "reached/baseline" in tables[0]


def test_every_evaluation_is_logged(script: Script, tmp_path: Any) -> None:
    counts = np.array([[[4, 16, 16], [20, 20, 20]], [[0, 0, 0], [10, 10, 20]]])
    logger = CSVLogger(str(tmp_path), flush_logs_every_n_steps=1)
    script(counts, consecutive=2, logger=logger)
    logger.save()
    rows = logger.experiment.metrics_file_path
    table = np.genfromtxt(rows, delimiter=",", names=True, deletechars="", dtype=float)
    assert table["samples_seen"].tolist() == [1, 2, 3]
    names = ("baseline", "method_0")
    for name, accuracy in zip(names, counts / 20, strict=True):
        assert table[f"val/accuracy/{name}"] == pytest.approx(accuracy.mean(0))
        assert table[f"band/accuracy/{name}/p10"] == pytest.approx(np.percentile(accuracy, 10, axis=0))
        assert table[f"band/accuracy/{name}/p90"] == pytest.approx(np.percentile(accuracy, 90, axis=0))
    assert table["reached/baseline"].tolist() == [0, 0.5, 1]
    assert table["reached/method_0"].tolist() == [0, 0, 0]


def test_methods_use_what_they_are_promised_of_lightning(script: Script, tmp_path: Path) -> None:
    class Mine(GradientDescent):
        def adapt(self, inputs: Tensor, labels: Tensor) -> None:
            self.optimizer.zero_grad()
            loss = self.loss(self(inputs), labels)
            self.manual_backward(loss)
            self.optimizer.step()
            self.log("loss", loss / len(inputs))
            self.log("epoch", self.trainer.current_epoch)

    plain, mine = GradientDescent(), Mine()
    logger = CSVLogger(str(tmp_path), flush_logs_every_n_steps=1)
    script(np.zeros((2, 2, 5)), methods=[plain, mine], validation_size=4, logger=logger)
    assert torch.equal(plain.weight, mine.weight)
    logger.save()
    table = np.genfromtxt(logger.experiment.metrics_file_path, delimiter=",", names=True, deletechars="", dtype=float)
    assert np.all(np.diff(table["method_0/loss"]) < 0)
    assert table["method_0/epoch"].tolist() == [0] * 5


def test_progress_tells_samples_and_runs_that_met_the_criterion(script: Script) -> None:
    class Watched(ComparisonProgress):
        def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
            self.criterion = next(c for c in trainer.callbacks if isinstance(c, SampleEfficiency))  # type: ignore[attr-defined]

    watched = Watched(SampleEfficiency())
    script([[[20] * 6, [0] * 6]], consecutive=3, batch_size=8, max_samples=43, callbacks=(watched,))
    assert watched.progress is not None
    assert (watched.progress.done, watched.progress.total, watched.progress.note) == (43, 43, "criterion met 1/2")


def test_every_evaluation_up_to_the_limit_is_made(script: Script) -> None:
    short = script(LONG, folder="short", results=ComparisonRun(), **TWICE)
    whole = script(LONG, folder="whole", results=ComparisonRun(), until="limit", **TWICE)
    assert short.evaluations < 30
    assert whole.correct.tolist() == LONG.tolist()
    assert whole.stopped_because == "the sample limit was reached"
    assert whole.results.document["criterion"]["until"] == "limit"
    assert whole.results.document["times"]["computed_traces"] == 6
    for name, scores in short.results.document["methods"].items():
        longer = whole.results.document["methods"][name]
        assert all(longer[key] == scores[key] for key in ("samples_to_criterion", "onset", "median", "restricted_mean"))


def test_traces_up_to_the_limit_serve_runs_that_stop_at_the_criterion(script: Script) -> None:
    script(LONG, folder="whole", results=ComparisonRun(), until="limit", **TWICE)
    for options in ({}, {"until": "limit"}, {"until": "limit", "max_samples": 20}):
        again = script(LONG, folder=f"again {options}", results=ComparisonRun(), **options, **TWICE)
        assert again.results.document["times"]["computed_traces"] == 0
    # A higher limit is measured from the beginning.
    other = str(again.folder / "other")
    script(LONG[..., :20], folder="low", results=ComparisonRun(ledger=other), until="limit", **TWICE)
    high = script(LONG, folder="high", results=ComparisonRun(ledger=other), until="limit", **TWICE)
    assert high.correct.tolist() == LONG.tolist()
    assert high.results.document["times"]["computed_traces"] == 6


def test_a_run_that_stops_at_the_criterion_cannot_continue_to_the_limit() -> None:
    others: list[dict[str, Any]] = [{"stop_when_met": True}, {"evaluation": "lazy"}]
    for other in others:
        with pytest.raises(UserError, match=r"^criterion\.until: limit continues after the criterion, but criterion\."):
            SampleEfficiency(until="limit", **other)
