"""A run that was cut off continues from its checkpoint, and one with a higher limit from where the lower one ended."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import CSVLogger

from headstart.callbacks import ComparisonRun, checkpoints, measurement, traces
from headstart.modules import OwnLightningModule
from headstart.modules.comparison import Comparison
from headstart.modules.resume_check import ResumeCheck
from headstart.store.ledger import Ledger
from headstart.store.ledger_file import Trace
from headstart.tests.material.lightning_modules import Probe
from headstart.tests.material.scripted_runs import Killed, Scripted, ScriptedRun

Script = Callable[..., ScriptedRun]
# The criterion is met by the first method alone.
COUNTS = np.array([[[*range(8, 20), *[19] * 8], [*range(9, 20), *[19] * 9]], [[3] * 20, [*range(20)]]])
CRITERION: dict[str, Any] = {"threshold": 0.9, "consecutive": 4}


@pytest.fixture(autouse=True)
def fed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Checkpoints after every evaluation, no spot check; the samples that every method is fed."""
    monkeypatch.setattr(measurement, "spot_check", lambda *_: None)
    monkeypatch.setattr(checkpoints, "SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(checkpoints, "SHARE", 1e9)
    # No copies are compared, which would be fed, too.
    monkeypatch.setattr(ResumeCheck, "begin_if_due", lambda check: setattr(check, "is_checked", True))
    fed: list[int] = []
    # Values in a method's code are part of its key; those in an object of another package are not.
    log = Mock(fed=fed)
    adapt = Scripted.adapt

    def counted(self: Scripted, *batch: torch.Tensor) -> None:
        adapt(self, *batch)
        log.fed.append(self.batches)

    monkeypatch.setattr(Scripted, "adapt", counted)
    return fed


def stored(run: ScriptedRun) -> list[Path]:
    return sorted(run.results.checkpoints.folder.glob("*"))


def scores(run: ScriptedRun) -> dict[str, Any]:
    return {key: value for key, value in run.results.document.items() if key not in ("times", "environment")}


@pytest.mark.slow
def test_a_run_that_was_cut_off_repeats_nothing_but_the_last_evaluation(
    script: Script, fed: list[int], tmp_path: Path
) -> None:
    whole = script(COUNTS, results=ComparisonRun(ledger=str(tmp_path / "other")), folder="undisturbed", **CRITERION)
    fed.clear()
    for samples in (7, 12, 13):
        cut_off = script(COUNTS, results=ComparisonRun(), callbacks=(Killed(samples),), **CRITERION)
        assert isinstance(cut_off.error, RuntimeError)
        assert len(stored(cut_off)) == 1
    run = script(COUNTS, results=ComparisonRun(), **CRITERION)
    # A checkpoint is written before the next batch: the evaluation at which a run ended is done again.
    assert sorted(fed) == sorted([*range(1, 21), 7, 12, 13] * 2)
    assert scores(run) == scores(whole)
    assert run.correct.tolist() == COUNTS.tolist()


@pytest.mark.slow
def test_a_resumed_run_reports_from_where(script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    (file,) = stored(script(COUNTS, results=ComparisonRun(), callbacks=(Killed(7),), **CRITERION))
    assert "Resumed" not in capsys.readouterr().out
    run = script(COUNTS, results=ComparisonRun(), **CRITERION)
    lines = " ".join(capsys.readouterr().out.split())
    assert f"Resumed after 6 samples: baseline, method_0 in 2 orderings, from the checkpoint {file}." in lines
    resumed = {"checkpoint": str(file), "samples_seen": 6, "methods": ["baseline", "method_0"], "orderings": [3, 4]}
    assert json.loads((run.folder / "results.json").read_text())["times"]["resumed"] == [resumed]


def test_a_higher_limit_feeds_what_lies_beyond_the_lower_one(script: Script, fed: list[int]) -> None:
    low = script(COUNTS, results=ComparisonRun(), folder="low", max_samples=14, **CRITERION)
    assert len(stored(low)) == 1
    fed.clear()
    high = script(COUNTS, results=ComparisonRun(), folder="high", **CRITERION)
    # The first method is done; of the second only the orderings that had not met the criterion count.
    assert fed == list(range(15, 21))
    assert high.criterion.traces.measured.tolist() == [[False, False], [True, True]]
    assert high.correct[1].tolist() == COUNTS[1].tolist()
    assert high.results.document["methods"]["method_0"]["samples_to_criterion"] == [None, None]


def test_orderings_that_are_done_come_along_unrecorded(script: Script, fed: list[int]) -> None:
    counts = COUNTS[:1].copy()
    counts[0, 1, 10:] = 0
    script(counts, results=ComparisonRun(), folder="low", max_samples=14, threshold=0.8, consecutive=4)
    fed.clear()
    high = script(counts, results=ComparisonRun(), folder="high", threshold=0.8, consecutive=4)
    assert fed == list(range(15, 21))
    assert high.criterion.traces.measured.tolist() == [[False, True]]
    assert high.criterion.traces.lengths.tolist() == [[14, 20]]
    assert high.results.document["times"]["computed_traces"] == 1


def test_nothing_is_left_where_everything_met_the_criterion(script: Script) -> None:
    cut_off = script(COUNTS[:1], results=ComparisonRun(), callbacks=(Killed(7),), **CRITERION)
    assert len(stored(cut_off)) == 1
    assert stored(script(COUNTS[:1], results=ComparisonRun(), **CRITERION)) == []


def test_the_same_method_twice_goes_on_apart(script: Script) -> None:
    twice = np.concatenate([COUNTS[:1]] * 2)
    script(twice, results=ComparisonRun(), callbacks=(Killed(7),), **CRITERION)
    run = script(twice, results=ComparisonRun(), **CRITERION)
    assert run.correct[0].tolist() == run.correct[1].tolist() == COUNTS[0, :, : run.evaluations].tolist()


@pytest.mark.parametrize("damage", ["cut", "empty", "another version"])
def test_a_pass_restarts_if_its_checkpoint_cannot_be_read(
    script: Script, fed: list[int], damage: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (file,) = stored(script(COUNTS, results=ComparisonRun(), callbacks=(Killed(7),), **CRITERION))
    if damage == "another version":
        monkeypatch.setitem(checkpoints.MADE_BY, "lightning", "0")
    else:
        file.write_bytes(b"" if damage == "empty" else file.read_bytes()[:-300])
    fed.clear()
    run = script(COUNTS, results=ComparisonRun(), **CRITERION)
    assert sorted(fed) == sorted([*range(1, 21)] * 2)
    assert run.correct.tolist() == COUNTS.tolist()
    assert ("is not used (it is cut short" in capsys.readouterr().out) == (damage != "another version")


def test_a_disk_without_room_for_checkpoints_ends_no_run(
    script: Script, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save = torch.save

    def fill(checkpoint: Any, file: Path, **options: Any) -> None:
        save(checkpoint, file, **options)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", fill)
    run = script(COUNTS, results=ComparisonRun(), **CRITERION)
    assert run.results.document["complete"]
    assert stored(run) == []
    assert "cannot be written (No space left on device)" in capsys.readouterr().out


def test_a_method_that_cannot_be_stored_restarts_by_itself(
    script: Script, fed: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begin = Scripted.begin

    def hold(self: Scripted, start: Any) -> None:
        begin(self, start)
        if self.script.counts[0, 0] == COUNTS[1, 0, 0]:
            vars(self)["held"] = [lambda: 0]

    monkeypatch.setattr(Scripted, "begin", hold)
    script(COUNTS, results=ComparisonRun(), callbacks=(Killed(7),), **CRITERION)
    assert "method_0 cannot be continued where it is cut off" in capsys.readouterr().out
    fed.clear()
    run = script(COUNTS, results=ComparisonRun(), **CRITERION)
    assert sorted(fed[: fed.index(1)]) == list(range(7, 15))
    assert fed[fed.index(1) :] == list(range(1, 21))
    assert run.criterion.traces.met.tolist() == [[True, True], [False, False]]


def test_recomputing_restarts(script: Script, fed: list[int]) -> None:
    script(COUNTS, results=ComparisonRun(), callbacks=(Killed(7),), **CRITERION)
    fed.clear()
    script(COUNTS, results=ComparisonRun(recompute=True), **CRITERION)
    assert sorted(fed) == sorted([*range(1, 21)] * 2)


@pytest.mark.slow
def test_orderings_are_measured_in_as_many_passes_as_their_memory_takes(
    script: Script, fed: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = script(COUNTS, results=ComparisonRun(ledger=str(tmp_path / "other")), folder="together", **CRITERION)
    monkeypatch.setattr(Comparison, "orderings_at_once", staticmethod(lambda start, methods: 1))
    fed.clear()
    one = script(COUNTS, results=ComparisonRun(), callbacks=(Killed(7),), folder="parted", **CRITERION)
    assert one.criterion.traces.measured.tolist() == [[True, False]] * 2
    parted = script(COUNTS, results=ComparisonRun(), folder="parted", **CRITERION)
    assert sorted(fed) == sorted([*range(1, 21), 7] * 2 + [*range(1, 21)] * 2)
    assert scores(parted) == scores(together)


@pytest.mark.slow
def test_a_run_in_passes_logs_the_same_as_a_whole_one(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = str(tmp_path / "own"), str(tmp_path / "other")

    def logged(folder: str, **options: Any) -> list[dict[str, Any]]:
        logger = CSVLogger(tmp_path)
        lines: list[dict[str, Any]] = []
        monkeypatch.setattr(CSVLogger, "log_metrics", lambda self, metrics, step=None: lines.append(dict(metrics)))
        script(COUNTS, folder=folder, logger=logger, **options, **CRITERION)
        return lines

    whole = logged("whole", results=ComparisonRun())
    assert [line["samples_seen"] for line in whole] == list(range(1, 21))
    logged("killed", results=ComparisonRun(ledger=own), callbacks=(Killed(7),))
    assert logged("killed", results=ComparisonRun(ledger=own)) == whole
    monkeypatch.setattr(Comparison, "orderings_at_once", staticmethod(lambda start, methods: 1))
    assert logged("parted", results=ComparisonRun(ledger=other)) == whole


class Asking(Probe):
    """Asks for the numbers of steps where it learns, and notes what it sees."""

    seen: ClassVar[set[tuple[float, ...]]] = set()

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], batch_idx: int) -> Any:
        steps = self.trainer.estimated_stepping_batches
        schedules: Any = self.lr_schedulers()
        optimizer: Any = self.optimizers()
        numbers = self.trainer.num_training_batches, steps, self.global_step, schedules.last_epoch, batch_idx
        self.seen.add((*numbers, optimizer.param_groups[0]["lr"], self.head.weight.sum().item()))
        return {"loss": super().training_step(batch, batch_idx)["loss"] * (1 - batch_idx / steps)}


def test_a_lightning_module_that_goes_on_counts_the_steps_of_the_whole_stream(script: Script, tmp_path: Path) -> None:
    def run(ledger: str, *callbacks: Callback) -> set[tuple[float, ...]]:
        Asking.seen.clear()
        methods = [OwnLightningModule(partial(Asking, form="lists"))]
        options: dict[str, Any] = {"callbacks": callbacks, "batch_size": 3, "max_samples": 40, **CRITERION}
        results = ComparisonRun(ledger=str(tmp_path / ledger))
        script([[[0] * 14]], folder=ledger, results=results, methods=methods, **options)
        return set(Asking.seen)

    whole = run("whole")
    assert sorted(numbers[:5] for numbers in whole) == [(14, 14, batch, batch, batch) for batch in range(14)]
    before = run("broken", Killed(15))
    after = run("broken")
    assert before | after == whole
    assert min(numbers[4] for numbers in after) == 4


@pytest.mark.parametrize("samples", [20, 35])
def test_evaluations_that_do_not_divide_the_batches(script: Script, fed: list[int], samples: int) -> None:
    options: dict[str, Any] = {"max_samples": 40, "evaluate_every": 7, "threshold": 1.0, "consecutive": 3}
    counts = COUNTS[..., :5]
    script(counts, results=ComparisonRun(), callbacks=(Killed(samples + 1), Stopped(samples + 1)), **options)
    fed.clear()
    run = script(counts, results=ComparisonRun(), **options)
    # Behind the last evaluation nothing is left to measure.
    assert sorted(fed) == (sorted([*range(15, 41)] * 2) if samples == 20 else [])
    assert run.correct.tolist() == counts.tolist()
    assert run.results.document["complete"]


class Stopped(Callback):
    """Ends a run between two evaluations."""

    def __init__(self, samples: int) -> None:
        self.samples = samples

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *_: Any) -> None:
        if pl_module.samples_seen == self.samples:
            raise RuntimeError("killed")


def test_a_higher_limit_goes_on_where_fewer_orderings_would_fit(
    script: Script, fed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    script(COUNTS, results=ComparisonRun(), folder="low", max_samples=14, **CRITERION)
    fed.clear()
    monkeypatch.setattr(Comparison, "orderings_at_once", staticmethod(lambda start, methods: 1))
    high = script(COUNTS, results=ComparisonRun(), folder="high", **CRITERION)
    assert fed == list(range(15, 21))
    assert high.correct[1].tolist() == COUNTS[1].tolist()


def test_methods_that_stay_behind_keep_their_states(script: Script, fed: list[int]) -> None:
    counts = np.concatenate([COUNTS[1:], COUNTS[1:, ::-1], np.zeros_like(COUNTS[1:])])
    script(counts, results=ComparisonRun(), folder="low", max_samples=8, **CRITERION)
    script(counts[:2], results=ComparisonRun(), folder="two", max_samples=14, **CRITERION)
    fed.clear()
    three = script(counts, results=ComparisonRun(), folder="three", max_samples=14, **CRITERION)
    assert fed == list(range(9, 15))
    # Checkpoints that all have passed are removed: one of the two and one of the third remain.
    assert len(stored(three)) == 2


def test_a_lower_limit_needs_nothing_of_a_run_that_was_cut_off_beyond_it(script: Script, fed: list[int]) -> None:
    script(COUNTS, results=ComparisonRun(), folder="high", callbacks=(Killed(15),), **CRITERION)
    fed.clear()
    low = script(COUNTS, results=ComparisonRun(), folder="low", max_samples=12, **CRITERION)
    assert fed == []
    assert low.results.document["times"]["computed_traces"] == 0


def test_a_checkpoint_of_other_counts_is_not_gone_on_with(script: Script, fed: list[int]) -> None:
    run = script(COUNTS, results=ComparisonRun(), callbacks=(Killed(7),), **CRITERION)
    key = run.criterion.traces.keys[0][0]
    with Ledger(run.criterion.traces.ledger.folder) as ledger:
        ledger.write({key: Trace(COUNTS[0, 0, :9] - 1, open=True)})
    fed.clear()
    again = script(COUNTS, results=ComparisonRun(), **CRITERION)
    assert again.correct[0, :, :14].tolist() == COUNTS[0, :, :14].tolist()
    assert fed.count(1) == 1


@pytest.mark.slow
def test_a_recomputation_that_is_cut_off_leaves_finished_traces_as_they_were(
    script: Script, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(traces, "SECONDS_BETWEEN_WRITES", 0.0)
    low = script(COUNTS[:1], results=ComparisonRun(), max_samples=14, folder="low", **CRITERION)
    key = low.criterion.traces.keys[0][1]
    with Ledger(low.criterion.traces.ledger.folder) as ledger:
        ledger.write({key: Trace(COUNTS[0, 1, :14] - 1)})
    script(COUNTS[:1], results=ComparisonRun(recompute=True), callbacks=(Killed(13),), **CRITERION)
    same = script(COUNTS[:1], results=ComparisonRun(), folder="same", max_samples=14, **CRITERION)
    assert same.results.document["times"]["computed_traces"] == 0
    assert same.correct[0, 1].tolist() == (COUNTS[0, 1, :14] - 1).tolist()
    capsys.readouterr()
    script(COUNTS[:1], results=ComparisonRun(recompute=True), threshold=0.95, consecutive=6)
    assert "baseline differs from its stored traces in 1 orderings" in capsys.readouterr().out
