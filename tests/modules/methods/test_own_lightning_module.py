"""A LightningModule learns here as Lightning's own trainer lets it learn."""

import logging
from copy import deepcopy
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from lightning.pytorch import LightningModule, Trainer
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader
from torchmetrics.classification import MulticlassAccuracy

from headstart.modules import OwnLightningModule
from headstart.modules.global_generators import GlobalGenerators
from headstart.output.errors import UserError
from headstart.tests.material.lightning_modules import Probe
from headstart.tests.material.streams import (
    adapt,
    batches,
    begin,
    feed,
    make_start,
    random_photos,
    random_samples,
    tail,
)

FORMS = ["optimizer", "list", "lists", "dictionary", "dictionaries", "several schedules"]


def of_ordering(method: OwnLightningModule, ordering: int = 0) -> LightningModule:
    module = method.own[ordering]
    assert isinstance(module, LightningModule)
    return module


def fit_by_lightning(module: LightningModule, inputs: Tensor, labels: Tensor, size: int) -> None:
    parts: Any = list(zip(inputs.split(size), labels.split(size), strict=True))
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    options: dict[str, Any] = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = Trainer(max_epochs=1, accelerator="cpu", enable_model_summary=False, **options)
    trainer.fit(module, DataLoader(parts, batch_size=None))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("photos", [False, True], ids=["features", "photos"])
def test_it_learns_as_by_lightnings_trainer(form: str, photos: bool) -> None:
    inputs, labels = random_photos(10) if photos else random_samples(1, 10, 6)
    start = make_start(inputs)
    method = OwnLightningModule(partial(Probe, form=form, dropout=0.0))
    begin(method, start)
    backbone = start.backbone or nn.Identity()
    backbone.width = 6  # type: ignore[assignment]
    other = Probe(backbone, 2, form=form, dropout=0.0)
    other.load_state_dict(of_ordering(method).state_dict())
    fit_by_lightning(other, inputs[0], labels[0], 3)
    for batch in batches(inputs, labels, 3):
        adapt(method, batch)
    ours, theirs = of_ordering(method).state_dict(), other.state_dict()
    assert all(torch.equal(value, theirs[name]) for name, value in ours.items())
    assert len(ours) > 2 * photos
    assert torch.equal(method(inputs[0])[0], other.eval()(inputs[0]))


def test_schedules_of_epochs_count_batches_too() -> None:
    inputs, labels = random_samples(1, 6, 6)
    method = OwnLightningModule(partial(Probe, form="epochs"))
    feed(method, inputs, labels, 2)
    assert method.stepped[0].param_groups[0]["lr"] == pytest.approx(0.1 * 0.7**3)


def test_every_ordering_draws_from_generators_of_its_own() -> None:
    inputs, labels = random_samples(3, 12, 6)
    together = OwnLightningModule(Probe)
    feed(together, inputs, labels, 2)
    heads = [each["head.weight"] for each in (of_ordering(together, k).state_dict() for k in range(3))]
    assert not torch.equal(heads[0], heads[1])
    for ordering in range(3):
        alone = OwnLightningModule(Probe)
        begin(alone, make_start(inputs[ordering][None], first_ordering=ordering))
        for batch in batches(inputs[ordering][None], labels[ordering][None], 2):
            adapt(alone, batch)
        assert torch.equal(of_ordering(alone).state_dict()["head.weight"], heads[ordering])


def test_dropout_is_on_in_training_alone() -> None:
    inputs, labels = random_samples(1, 12, 6)
    method = OwnLightningModule(Probe)
    feed(method, inputs, labels, 2)
    assert torch.equal(method(inputs[0]), method(inputs[0]))
    without = OwnLightningModule(partial(Probe, dropout=0.0))
    feed(without, inputs, labels, 2)
    assert not torch.equal(method(inputs[0]), without(inputs[0]))


class Measuring(Probe):
    """Logs a metric, and uses what Lightning's module has."""

    def __init__(self, backbone: nn.Module, classes: int) -> None:
        super().__init__(backbone, classes, dropout=0.0)
        self.accuracy = MulticlassAccuracy(classes, average="micro")
        self.seen: list[Any] = []

    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> dict[str, Tensor]:
        inputs, labels = batch
        logits = self(inputs)
        self.accuracy(logits, labels)
        self.log("accuracy", self.accuracy)
        self.seen.append((self.trainer.max_epochs, self.device.type, self.training, batch_idx))
        self.losses = functional.cross_entropy(logits, labels).detach()
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch: object, batch_idx: int) -> None:
        raise AssertionError("not used")

    def on_validation_epoch_end(self) -> None:
        raise AssertionError("not used")


def test_logs_and_counters_are_those_of_lightning() -> None:
    inputs, labels = random_samples(2, 9, 6)
    method = OwnLightningModule(Measuring)
    method.trainer = SimpleNamespace(max_epochs=1)  # type: ignore[assignment]
    right, fed = torch.zeros(2), 0
    begin(method, make_start(inputs))
    for batch in batches(inputs, labels, 4):
        right += (method(batch[0]).argmax(-1) == batch[1]).sum(1)
        fed += batch[1].shape[1]
        adapt(method, batch)
    losses = [float(of_ordering(method, ordering).losses) for ordering in range(2)]  # type: ignore[arg-type]
    assert {name: float(value) for name, value in method.logged.items()} == pytest.approx(
        {"accuracy": float(right.mean()) / fed, "loss": sum(losses) / 2, "batch": 2.0, "samples": 1.0}
    )
    assert of_ordering(method).seen == [(1, "cpu", True, batch) for batch in range(3)]


class Curious(Probe):
    """Asks for the trainer, and logs, where it predicts."""

    def forward(self, inputs: Tensor) -> Tensor:
        self.log_dict({"predicted": 1.0, "steps": self.global_step * (self.trainer.max_epochs or 0)})
        return super().forward(inputs)


def test_its_forward_has_the_trainer_and_logs_in_training_alone() -> None:
    inputs, labels = random_samples(2, 6, 6)
    method = OwnLightningModule(Curious)
    method.trainer = SimpleNamespace(max_epochs=1)  # type: ignore[assignment]
    begin(method, make_start(inputs))
    method(inputs[0])
    assert not method.logged
    for batch in batches(inputs, labels, 2):
        adapt(method, batch)
    logged = dict(method.logged)
    # A lazy evaluation and a checkpoint copy the method.
    method.own = deepcopy(method.own)
    assert torch.equal(method(inputs[0]), method(inputs[0]))
    assert method.logged == logged
    assert float(logged["steps"]) == 2


class Normalized(Probe):
    def __init__(self, backbone: nn.Module, classes: int) -> None:
        super().__init__(backbone, classes)
        self.dropout = nn.BatchNorm1d(6)  # type: ignore[assignment]


@pytest.mark.parametrize(("samples", "size"), [(2, 1), (5, 2)])
def test_batch_norm_on_one_sample_is_reported(samples: int, size: int) -> None:
    inputs, labels = random_samples(1, samples, 6)
    with pytest.raises(UserError, match=r"^data\.batch_size: .* batch norm in Normalized .*; give 2 or more") as raised:
        feed(OwnLightningModule(Normalized), inputs, labels, size)
    assert "\n" not in str(raised.value)


class Manual(Probe):
    def __init__(self, backbone: nn.Module, classes: int) -> None:
        super().__init__(backbone, classes)
        self.automatic_optimization = False


class WithHook(Probe):
    def on_train_epoch_end(self) -> None: ...


class WithSetup(Probe):
    def setup(self, stage: str) -> None: ...


class WithTransfer(Probe):
    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any: ...


class WithClipping(Probe):
    def clip_gradients(self, *_: Any, **__: Any) -> None: ...


class WithStep(Probe):
    def lr_scheduler_step(self, scheduler: Any, metric: Any) -> None: ...


class WithoutStep(LightningModule):
    def __init__(self, backbone: nn.Module, classes: int) -> None:
        super().__init__()


class Narrow(Probe):
    def __init__(self, backbone: nn.Module, classes: int) -> None:
        super().__init__(backbone, classes - 2)


class WithoutLoss(Probe):
    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Any:
        return {"accuracy": 1.0}


class WithoutArguments(Probe):
    def __init__(self) -> None:
        super().__init__(nn.Identity(), 2)


class Wide(Probe):
    def __init__(self, backbone: nn.Module, classes: int, width: int) -> None:
        super().__init__(backbone, classes)
        if width != 6:
            raise ValueError(f"width must be 6,\nnot {width}")


def of_three(backbone: nn.Module, classes: int, lr: float) -> LightningModule:
    return Probe(backbone, classes, lr)


TAKES = "must take the backbone and the number of classes, in this order, and need nothing else"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (WithoutArguments, rf"^module: WithoutArguments {TAKES} \(too many positional arguments\)$"),
        (Wide, rf"^module: Wide {TAKES} \(missing a required argument: 'width'\)$"),
        (of_three, rf"^module: of_three {TAKES} \(missing a required argument: 'lr'\)$"),
        (partial(of_three, rate=3), rf"^module: of_three {TAKES} \("),  # type: ignore[call-arg]
        (lambda: None, rf"^module: <lambda> {TAKES}"),
        (partial(Wide, width=3), "^module: Wide failed with a backbone and 5 classes: ValueError: width must be 6,$"),
        (Manual, "module: Manual sets automatic_optimization to False"),
        (WithHook, "module: WithHook defines on_train_epoch_end, which is never called"),
        (WithSetup, "module: WithSetup defines setup, which is never called"),
        (WithTransfer, "module: WithTransfer defines transfer_batch_to_device, which is never called"),
        (WithClipping, "module: WithClipping defines clip_gradients, which is never called"),
        (WithStep, "module: WithStep defines lr_scheduler_step, which is never called"),
        (WithoutStep, "module: WithoutStep does not define training_step and forward and configure_optimizers"),
        (lambda *_: nn.Linear(2, 2), "module: returns a Linear"),
        (Narrow, r"module: forward of Narrow returns \[1, 3\] for one sample; it must return logits \[1, 5\]"),
        (WithoutLoss, "module: training_step of WithoutLoss returns a dict; it must return the loss"),
        (partial(Probe, form="two"), "configure_optimizers of Probe returns SGD, Adam; it must return one optimiser"),
        (partial(Probe, form="closure"), "configure_optimizers of Probe returns LBFGS; it must return one optimiser"),
        (partial(Probe, form="none"), "configure_optimizers of Probe"),
        (partial(Probe, form="text"), "Lightning rejects the result of configure_optimizers of Probe: Unknown"),
        (partial(Probe, form="plateau"), "returns a ReduceLROnPlateau"),
    ],
)
def test_hooks_without_an_effect_are_refused(make: Any, words: str) -> None:
    inputs, labels = random_samples(2, 4, 6, classes=5)
    method = OwnLightningModule(make)
    with pytest.raises(UserError, match=words) as raised:
        feed(method, inputs, labels, classes=5)
    assert "\n" not in str(raised.value)
    assert not getattr(method, "batches", 0)


def test_a_head_that_lacks_classes_is_found_before_a_step() -> None:
    inputs, labels = random_samples(2, 4, 6, classes=5)
    method = begin(OwnLightningModule(Narrow), make_start(inputs, 5))
    before = {name: value.clone() for name, value in method.state_dict().items()}
    with pytest.raises(UserError, match="Narrow"):
        adapt(method, next(batches(inputs, labels, 2)))
    assert all(torch.equal(value, before[name]) for name, value in method.state_dict().items())


def test_the_statistics_of_batch_norm_are_those_of_training_alone() -> None:
    photos, labels = random_photos(8)
    method = OwnLightningModule(Probe)
    begin(method, replace(make_start(photos), backbone=tail()))
    for batch in batches(photos, labels, 4):
        adapt(method, batch)
    assert of_ordering(method).get_buffer("backbone.network.1.num_batches_tracked") == 2


def test_global_generators_stay_as_they_are() -> None:
    inputs, labels = random_samples(2, 4, 6)
    before = GlobalGenerators(0, "cpu").fingerprint()
    generators = GlobalGenerators(0, "cpu")
    with generators.in_use():
        feed(OwnLightningModule(Probe), inputs, labels)
    assert generators.fingerprint() == before
