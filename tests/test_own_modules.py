"""The user's own LightningModules on the command line of `headstart train`."""

import importlib
import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lightning.pytorch import Trainer
from numpy.typing import NDArray

from headstart.datamodules.sample_stream import SampleStream
from headstart.tests.material.blank_figures import blank_figures
from headstart.tests.material.mistakes import error_line
from headstart.train import main

OWN_MODULES = """\
import torch
from lightning.pytorch import Callback, LightningModule
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.cli import OptimizerCallable
from torch import nn

class Probe(LightningModule):
    def __init__(self, backbone, classes, lr: float = 0.001, shared: bool = True):
        super().__init__()
        self.backbone, self.lr = backbone, lr
        self.head = backbone.new_head() if shared else nn.Linear(backbone.width, classes)

    def forward(self, inputs):
        return self.head(self.backbone(inputs))

    def training_step(self, batch, batch_idx):
        loss = nn.functional.cross_entropy(self(batch[0]), batch[1])
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)

class RequiredRate(Probe):
    def __init__(self, backbone, classes, lr: float):
        super().__init__(backbone, classes, lr)

class Fails(Probe):
    def __init__(self, backbone, classes):
        raise ValueError(f"no {classes} classes,\\nbut 3")

class NoArguments(LightningModule):
    def __init__(self):
        super().__init__()

class Empty(LightningModule):
    def __init__(self, backbone, classes):
        super().__init__()

class TooFewClasses(Probe):
    def __init__(self, backbone, classes):
        super().__init__(backbone, classes)
        self.head = nn.Linear(backbone.width, classes - 1)

class DictBatch(Probe):
    def on_after_batch_transfer(self, batch, dataloader_idx):
        return {"inputs": batch[0], "labels": batch[1]}

    def training_step(self, batch, batch_idx):
        return nn.functional.cross_entropy(self(batch["inputs"]), batch["labels"])

class BadOptimizer(Probe):
    def configure_optimizers(self):
        return "SGD"

class Saves(Probe):
    def configure_callbacks(self):
        return [ModelCheckpoint()]

class Interrupted(Probe):
    def training_step(self, batch, batch_idx):
        if batch_idx == 5:
            raise KeyboardInterrupt
        return super().training_step(batch, batch_idx)

class OptimizerOption(Probe):
    def __init__(self, backbone, classes, optimizer: OptimizerCallable = torch.optim.SGD, act=lambda logits: logits):
        super().__init__(backbone, classes)
        self.optimizer, self.act = optimizer, act
        self.save_hyperparameters(ignore="backbone")
        torch.set_default_dtype(torch.float64)

    def forward(self, inputs):
        return self.act(super().forward(inputs))

    def configure_optimizers(self):
        return self.optimizer(self.parameters())

def make(backbone: nn.Module, classes: int) -> Probe:
    return Probe(backbone, classes)

class NegatesInputs(Callback):
    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        batch[0].mul_(-1)

class ZeroesWeights(Callback):
    def on_train_batch_end(self, trainer, pl_module, *_):
        for each in pl_module.parameters():
            each.data.zero_()
"""
METHOD = "--model.methods.mine=own_modules."
PROBE = f"{METHOD}Probe"
# The drawings of the demo on a pre-trained network, with few photos.
DEMO = (
    *("--config=configs/demo.yaml", "--data.photos.train_size=60", "--data.photos.validation_size=40"),
    *("--data.orderings=2", "--data.max_samples=24", "--criterion.consecutive=3", "--trainer.accelerator=cpu"),
    *("--trainer.logger=false", "--model.methods={mean: NearestClassMean}"),
)
PHOTOS = ("--data=PhotoStream", "--data.trainable_from=features.16", "--data.orderings=1", "--data.batch_size=4")


pytestmark = pytest.mark.usefixtures("own_modules", "shared_cache")


def fit(*options: str, folder: str = "run") -> Path:
    """Run the comparison in a folder; blank figures save time."""
    with blank_figures():
        main([*DEMO, f"--trainer.default_root_dir={folder}", *options])
    return Path(folder)


@pytest.fixture
def own_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Write the module `own_modules`, and make it importable."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    importlib.invalidate_caches()
    (tmp_path / "own_modules.py").write_text(OWN_MODULES)
    yield
    sys.modules.pop("own_modules", None)


def read(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return document


def counts(folder: Path) -> dict[str, list[Any]]:
    """Return the counts of correct predictions by method, `[orderings][evaluations]`."""
    stored: dict[str, NDArray[Any]] = dict(np.load(folder / "curves.npz"))
    return dict(zip(stored["methods"].tolist(), stored["correct"].tolist(), strict=True))


def test_the_command_line_takes_a_module_and_its_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_module = counts(fit("--results.ledger=other", folder="without_module"))
    options = [PROBE, "--model.methods.mine.lr=0.01", "--model.baseline.optimizer.lr=0.01"]
    folder = fit(*options, "--criterion.until=limit")
    key = read(folder)["methods"]["mine"]["key"]
    assert key["class"] == "own_modules.Probe"
    assert key["hyperparameters"] == {"lr": 0.01, "shared": True}
    # Probe has the same head and optimiser as the baseline.
    assert counts(folder)["mine"] == counts(folder)["baseline"]
    assert len(set(counts(folder)["mine"][0])) > 2
    folders = {path.name for path in tmp_path.iterdir() if path.is_dir()} - {"__pycache__"}
    assert folders == {"without_module", "other", "run"}

    # A finished trace is reused under another name and from another configuration file: nothing is trained again.
    (tmp_path / "mine.yaml").write_text(
        "model: {baseline: {class_path: own_modules.Probe, init_args: {lr: 0.01}},\n"
        "  methods: {other: {class_path: own_modules.Probe, init_args: {lr: 0.01}}}}\n"
    )
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "fit", None)
        again = fit("--config=mine.yaml", "--model.methods.mean=NearestClassMean", folder="again")
    assert read(again)["times"]["computed_traces"] == 0
    assert counts(again)["baseline"] == counts(folder)["mine"]

    # Callbacks and options that change training affect only the user's module.
    values = ["gradient_clip_val=0.1", "accumulate_grad_batches=2", "precision=bf16-mixed"]
    values.append("callbacks+=own_modules.ZeroesWeights")
    changed = fit(PROBE, *(f"--trainer.{each}" for each in values), "--results.ledger=third", folder="changed")
    after = counts(changed)
    assert {name: after[name] for name in without_module} == without_module
    assert after["mine"] != counts(folder)["mine"]
    assert read(changed)["methods"]["mine"]["key"]["trainer"]["gradient_clip_val"] == 0.1


def test_a_module_gets_the_optimizer_that_its_options_name() -> None:
    options = [f"{METHOD}OptimizerOption", "--model.methods.mine.optimizer=torch.optim.Adam", "--criterion.until=limit"]
    rates = ("--model.methods.mine.optimizer.lr=0.01", "--model.baseline.optimizer.lr=0.01")
    pruning = ("--trainer.callbacks+=ModelPruning", "--trainer.callbacks.pruning_fn=l1_unstructured")
    folder = fit(*options, *rates)
    assert counts(folder)["mine"] == counts(folder)["baseline"]
    assert torch.get_default_dtype() == torch.float32
    pruned = fit(*options, *rates, *pruning, "--trainer.callbacks.amount=0.5", folder="pruned")
    # A value that the parser cannot write is written by its name, or left out of the configuration.
    text = (pruned / "config.yaml").read_text() + (pruned / "results.json").read_text()
    assert "pruning_fn: l1_unstructured\n" in text
    assert "Unable" not in text
    with blank_figures():
        main([f"--config={pruned / 'config.yaml'}"])


def test_a_module_fine_tunes_as_the_shipped_method() -> None:
    for batch_norm in ("frozen", "trained"):
        rates = ("--model.methods.mine.lr=0.001", "--model.baseline.optimizer.lr=0.001")
        options = [*PHOTOS, f"--data.batch_norm={batch_norm}", "--criterion.until=limit", PROBE, *rates]
        made = counts(fit(*options, "--criterion.measure=balanced_accuracy", folder=batch_norm))
        assert made["mine"] == made["baseline"]
        assert len(set(made["mine"][0])) > 1


# Options, and how their error lines begin: first those that are found before a photo is read.
REFUSED_EARLY = {
    f"{METHOD}NoArguments": "model.methods.mine: NoArguments must take the backbone and the number of classes first, "
    "and its other arguments as options (too many positional arguments)",
    f"{METHOD}RequiredRate": "model.methods.mine.lr: it is required, and not given",
    f"{METHOD}Empty": "model.methods.mine: Empty does not define training_step and forward and configure_optimizers",
    f"{METHOD}torch": "model.methods.mine: own_modules.torch is no LightningModule; name one, or a function",
    f"{METHOD}make": "model.methods.mine: make is no method and no LightningModule; name a class of either kind",
    "--model.methods.mine.width=3": "model.methods.mine.width: there is no such option of own_modules.Probe",
    "--model.methods.mine.lr=often": "model.methods.mine.lr: expected a number, not often",
    "--trainer.devices=2": "trainer.devices: 2 processes requested; a run has one device",
    "--trainer.max_epochs=2": "trainer.max_epochs: 2 would change the protocol; leave it at 1",
    "--trainer.accumulate_grad_batches=0": "trainer.accumulate_grad_batches: expected a whole number from 1, not 0",
    "--trainer.gradient_clip_algorithm=most": "trainer.gradient_clip_algorithm: `gradient_clip_algorithm` most is",
    "--trainer.callbacks+=LearningRateFinder": "trainer.callbacks: LearningRateFinder would change the protocol;",
    "--trainer.callbacks+=ModelCheckpoint": "trainer.enable_checkpointing: Trainer was configured with",
}
REFUSED_LATE = {
    f"{METHOD}Fails": "model.methods.mine: Fails failed with a backbone and 2 classes: ValueError: no 2 classes,",
    f"{METHOD}TooFewClasses": "model.methods.mine: forward returns [",
    f"{METHOD}DictBatch": "model.methods.mine: a hook of DictBatch makes the batch a dict; evaluations need "
    "(inputs, labels)",
    f"{METHOD}Saves": "model.methods.mine.configure_callbacks: ModelCheckpoint would change the protocol, or write",
    f"{METHOD}BadOptimizer": "model.methods.mine: Unknown configuration for model optimizers. Output from",
}


def test_mistakes_are_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for option, words in REFUSED_LATE.items():
        assert error_line(capsys, partial(fit, option)).startswith(f"error: {words}")
    assert not (tmp_path / "run" / "results.json").exists()
    # From here on, reading photos would fail.
    monkeypatch.setattr(SampleStream, "setup", None)
    for option, words in REFUSED_EARLY.items():
        assert error_line(capsys, partial(fit, PROBE, option)).startswith(f"error: {words}")


def test_an_interruption_loses_only_the_trace_of_the_interrupted_module(capsys: pytest.CaptureFixture[str]) -> None:
    interrupted = "--model.methods={x: own_modules.Interrupted}"
    assert error_line(capsys, lambda: fit(interrupted), code=130) == "error: interrupted"
    after = read(fit("--model.methods={}", folder="after"))["times"]
    assert (after["computed_traces"], after["reused_traces"]) == (0, 2)


def test_callbacks_affect_shipped_methods_and_their_keys_only_without_own_modules() -> None:
    callback = "--trainer.callbacks=own_modules.NegatesInputs"
    # All three runs share a ledger. The callback changes the baseline of the second run; in the third, it acts only on
    # the user's module.
    runs = [("--model.methods={}",), ("--model.methods={}", callback), (PROBE, callback)]
    plain, changed, with_module = (counts(fit(*each, folder=str(k)))["baseline"] for k, each in enumerate(runs))
    assert plain == with_module
    assert changed != plain
