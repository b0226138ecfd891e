"""LightningModules learn in a comparison what a real `Trainer.fit` teaches them on the same batches."""

import logging
from collections.abc import Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import lightning.pytorch.callbacks as lightning_callbacks
import numpy as np
import pytest
import torch
import yaml
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers.logger import DummyLogger
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from headstart.callbacks import ComparisonRun, SampleEfficiency
from headstart.callbacks.measurement import measure
from headstart.cli.trainer_options import own_trainer
from headstart.datamodules.sample_stream import ValidationSet
from headstart.modules import Comparison, GradientDescent, MethodStart
from headstart.tests.material import lightning_hooks, lightning_modules
from headstart.tests.material.blank_figures import blank_figures
from headstart.tests.material.lightning_hooks import Dropped, Thaws, Validates
from headstart.tests.material.lightning_modules import Probe
from headstart.tests.material.scripted_runs import FIRST, IndexStream

BATCH, SAMPLES, WIDTH, CLASSES, VALIDATION, CHUNK = 2, 16, 6, 3, 20, 10
QUIET = {"accelerator": "cpu", "max_epochs": 1, "num_sanity_val_steps": 0, "enable_checkpointing": False}
MODULES = [
    kind
    for material in (lightning_modules, lightning_hooks)
    for kind in vars(material).values()
    if isinstance(kind, type) and issubclass(kind, Probe) and kind.__module__ == material.__name__
]
# Options of the trainer beside which the plain probe is trained.
TRAINERS: dict[str, dict[str, Any]] = {
    "clipped by norm": {"gradient_clip_val": 0.1},
    "clipped by value": {"gradient_clip_val": 0.05, "gradient_clip_algorithm": "value"},
    "accumulated": {"accumulate_grad_batches": 3},
    "of double precision": {"precision": "64-true"},
    "of mixed precision": {"precision": "bf16-mixed"},
    "accumulated by schedule": {"callbacks": [lightning_callbacks.GradientAccumulationScheduler({0: 2})]},
    "averaged": {"callbacks": [lightning_callbacks.EMAWeightAveraging(decay=0.7)]},
    "partly frozen": {"callbacks": [Thaws()]},
    "stopped early": {"callbacks": [lightning_callbacks.EarlyStopping("loss", patience=0)]},
    "monitored": {"callbacks": [lightning_callbacks.LearningRateMonitor()]},
}


class Clusters(IndexStream):
    """Feeds features of overlapping classes."""

    def __init__(self, orderings: int = 2) -> None:
        super().__init__(orderings, BATCH, SAMPLES, VALIDATION)
        generator = torch.Generator().manual_seed(0)
        centres = torch.randn(CLASSES, WIDTH, generator=generator)
        self.train_labels = torch.randint(CLASSES, (orderings, SAMPLES), generator=generator)
        self.validation_labels = torch.randint(CLASSES, (VALIDATION,), generator=generator)
        self.train_inputs, self.validation_inputs = (
            centres[labels] + torch.randn(*labels.shape, WIDTH, generator=generator)
            for labels in (self.train_labels, self.validation_labels)
        )

    def start(self) -> MethodStart:
        return MethodStart(WIDTH, CLASSES, self.active_orderings, max_samples=SAMPLES, seed=0)

    def train_dataloader(self) -> DataLoader[Any]:
        rows = [number - FIRST for number in self.active_orderings]
        parts = self.train_inputs[rows], self.train_labels[rows], self.train_labels[rows]
        batches: Any = list(zip(*(part.split(BATCH, 1) for part in parts), strict=True))
        return DataLoader(batches, batch_size=None)

    def val_dataloader(self) -> DataLoader[Any]:
        whole: Any = [ValidationSet(self.validation_inputs, self.validation_labels, CHUNK)]
        return DataLoader(whole, batch_size=None)


class Kept(Callback):
    """Keeps the final weights by the module's class, the first ordering first."""

    states: ClassVar[dict[str, list[dict[str, Tensor]]]] = {}

    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        state = {name: value.clone() for name, value in pl_module.state_dict().items()}
        self.states.setdefault(type(pl_module).__name__, []).append(state)


def compare(
    folder: Path, modules: Sequence[Any], options: dict[str, Any], criterion: dict[str, Any] | None = None
) -> tuple[dict[str, Any], ComparisonRun]:
    """Compare modules with the baseline, one ordering at a time; return the counts by method, and the run."""
    callback, stream = SampleEfficiency(**{"until": "limit", **(criterion or {})}), Clusters()
    results = ComparisonRun(ledger=str(folder / "ledger"))
    stream.orderings_at_once = 1
    comparison = Comparison(GradientDescent(), {f"m{index}": each for index, each in enumerate(modules)})
    kinds = {name: f"{own.kind.__module__}.{own.kind.__name__}" for name, own in comparison.lightning_modules.items()}
    described = {name: {"class_path": path, "init_args": {}} for name, path in kinds.items()}
    model = {"baseline": {"init_args": {}}, "methods": described}
    results.prepare(folder, yaml.safe_dump({"model": model, "data": {}, "trainer": {}}), callback)
    results.training = {"options": str(options)}
    results.describe_methods(comparison, SAMPLES)

    common = {**QUIET, "val_check_interval": callback.evaluate_every, "default_root_dir": folder}
    results.own_trainer = partial(own_trainer, {**common, **options})
    silent = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False}
    trainer = Trainer(**common, **silent, callbacks=[callback])  # type: ignore[arg-type]
    with blank_figures():
        measure(trainer, comparison, stream, results)  # type: ignore[arg-type]
    counts = np.moveaxis(results.traces.correct, 0, -1).tolist()
    return dict(zip(comparison.names, counts, strict=True)), results


def fit_plainly(kind: type[LightningModule], ordering: int, options: dict[str, Any]) -> tuple[list[int], Any]:
    """Return counts and final weights of a module that is trained by Lightning, without the suite."""
    counts: list[int] = []

    class Counting(kind):  # type: ignore[valid-type, misc]
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            inputs = batch[0].clone()
            if kind.validation_step is not LightningModule.validation_step:
                super().validation_step(batch, batch_idx)
            with torch.autocast("cpu", enabled=False):
                counts[-1] += int((self(inputs).argmax(1) == batch[1]).sum())

        def on_validation_epoch_start(self) -> None:
            counts.append(0)
            super().on_validation_epoch_start()

    stream = Clusters()
    train = TensorDataset(stream.train_inputs[ordering], stream.train_labels[ordering])
    validation = TensorDataset(stream.validation_inputs, stream.validation_labels)
    torch.manual_seed(int(np.random.SeedSequence((0, FIRST + ordering)).generate_state(1)[0]))
    backbone = nn.Identity()
    backbone.width = WIDTH  # type: ignore[assignment]
    module = Counting(backbone, CLASSES)
    silent = {"enable_progress_bar": False, "enable_model_summary": False, "val_check_interval": 1}
    trainer = Trainer(**{**QUIET, **silent, "logger": DummyLogger(), **options})
    evaluated = DataLoader(validation, batch_size=CHUNK, generator=torch.Generator())
    trainer.fit(module, DataLoader(train, batch_size=BATCH), evaluated)
    return counts, module.state_dict()


def differences(folder: Path, modules: Sequence[Any], options: dict[str, Any], alone: Any) -> list[str]:
    """Return what differs between a comparison and plain training, by names of classes."""
    Kept.states, given = {}, options.get("callbacks", [])
    counts, _ = compare(folder, modules, {**options, "callbacks": [*given, Kept()]})
    found = [] if counts["baseline"] == alone else ["the baseline"]
    for kind, (name, trained) in zip(modules, list(counts.items())[1:], strict=True):
        # The second ordering, to which nothing of the first may come.
        theirs, state = fit_plainly(kind, 1, {**options, "callbacks": deepcopy(given)})
        # A module that stops itself keeps its last accuracy.
        if trained[1] != theirs + theirs[-1:] * (SAMPLES // BATCH - len(theirs)):
            found.append(f"{name}: counts of {kind.__name__}: {trained[1]} for {theirs}")
        kept = Kept.states[kind.__name__][1]
        if kept.keys() != state.keys() or not all(torch.equal(kept[each], state[each]) for each in state):
            found.append(f"{name}: weights of {kind.__name__}")
    return found


@pytest.fixture(autouse=True)
def quiet() -> None:
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


@pytest.mark.filterwarnings("ignore")
def test_modules_learn_as_by_lightning(tmp_path: Path) -> None:
    """Each module, beside all others, and each option that changes training give what plain training gives."""
    alone = compare(tmp_path / "alone", [], {})[0]["baseline"]
    assert len(MODULES) >= 40
    found = differences(tmp_path / "all", MODULES, {}, alone)
    for number, (name, options) in enumerate(TRAINERS.items()):
        found += [f"{name}: {each}" for each in differences(tmp_path / str(number), [Dropped], options, alone)]
    assert not found


@pytest.mark.filterwarnings("ignore")
def test_modules_end_when_all_methods_of_an_ordering_have_met(tmp_path: Path) -> None:
    whole, _ = compare(tmp_path / "whole", [Probe], {})
    criterion = {"until": "criterion", "threshold": 0.5, "consecutive": 2}
    cases: list[dict[str, Any]] = [{}, {"stop_when_met": True}, {"evaluate_every": 3}, {"evaluation": "lazy"}]
    for options in cases:
        ended, run = compare(tmp_path / str(options), [Probe], {}, {**criterion, **options})
        assert run.document["complete"]
        for baseline, mine, every in zip(ended["baseline"], ended["m0"], whole["m0"], strict=True):
            every = every[options.get("evaluate_every", 1) - 1 :: options.get("evaluate_every", 1)]
            passes = [count >= VALIDATION / 2 for count in every]
            met = next((k + 2 for k in range(len(passes) - 1) if passes[k] and passes[k + 1]), len(every))
            least = 0 if "stop_when_met" in options or "evaluation" in options else sum(c != -1 for c in baseline)
            assert mine == every[: max(met, least)] + [-1] * (len(every) - max(met, least))


class Noisy(Probe):
    """Draws random numbers wherever it predicts."""

    def forward(self, inputs: Tensor) -> Tensor:
        return super().forward(inputs + torch.randn_like(inputs))


@pytest.mark.filterwarnings("ignore")
def test_evaluations_do_not_change_what_a_module_learns(tmp_path: Path) -> None:
    Kept.states = {}
    compare(tmp_path, [Noisy], {"callbacks": [Kept()]})
    for ordering, state in enumerate(Kept.states["Noisy"]):
        _, plain = fit_plainly(Noisy, ordering, {"limit_val_batches": 0})
        assert all(torch.equal(state[name], plain[name]) for name in plain)


@pytest.mark.filterwarnings("ignore")
def test_values_are_logged_by_the_name_of_the_method(tmp_path: Path) -> None:
    _, run = compare(tmp_path, [Validates], {})
    evaluations = run.criterion.logged
    assert list(evaluations) == list(range(SAMPLES // BATCH))
    right = [evaluations[k]["m0/right"] for k in evaluations]
    assert right == run.traces.correct[:, 1, 0].tolist()
    assert all(values["m0/loss"] > 0 for values in evaluations.values())
