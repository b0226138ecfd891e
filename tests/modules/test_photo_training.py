"""Plain training against a bare loop of PyTorch, and its schedules."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import yaml
from lightning.pytorch import Trainer
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader
from torchvision.transforms import v2

from headstart.datamodules.photo_batches import EpochBatches, load_batches
from headstart.modules.augmentation import MirrorHalf, Shift
from headstart.modules.photo_training import PhotoTraining, epoch_seed
from headstart.output.errors import UserError
from headstart.tests.material.root import ROOT

SAMPLES, BATCH, EPOCHS, SEED, CLASSES = 23, 5, 3, 4, 3


def make_network() -> nn.Module:
    torch.manual_seed(11)
    layers = (nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return nn.Sequential(*layers, nn.Dropout(0.3), nn.Linear(4, CLASSES))


def test_defaults_are_those_of_the_shipped_configuration() -> None:
    shipped = yaml.safe_load((ROOT / "configs/source_training.yaml").read_text(encoding="utf-8"))["model"]
    settings = PhotoTraining().make_optimizer(make_network().parameters()).defaults
    assert settings.items() >= shipped["optimizer"]["init_args"].items()


@pytest.fixture
def samples() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    photos = torch.randint(256, (SAMPLES, 3, 12, 12), generator=generator, dtype=torch.uint8)
    return photos, torch.arange(SAMPLES) % CLASSES


class Scaled(nn.Module):
    def forward(self, photos: Tensor) -> Tensor:
        return photos / 255 - 0.5


def make_trainer(epochs: int = EPOCHS) -> Trainer:
    quiet = dict.fromkeys(("logger", "enable_progress_bar", "enable_model_summary", "enable_checkpointing"), False)
    options: dict[str, Any] = {**quiet, "accelerator": "cpu", "max_epochs": epochs, "num_sanity_val_steps": 0}
    return Trainer(**options)


def loaders(samples: tuple[Tensor, Tensor]) -> tuple[DataLoader[Any], DataLoader[Any]]:
    train = load_batches(*samples, EpochBatches(SAMPLES, BATCH, SEED))
    return train, load_batches(*samples, torch.arange(SAMPLES).split(7))


def test_a_bare_loop_gives_the_same_weights_and_accuracy(samples: tuple[Tensor, Tensor]) -> None:
    model = PhotoTraining(
        optimizer=lambda p: torch.optim.AdamW(p, lr=0.03), label_smoothing=0.1, augmentation=[Shift(2)]
    )
    model.begin(make_network(), Scaled(), CLASSES, SEED)
    trainer = make_trainer()
    trainer.fit(model, *loaders(samples))

    network, (photos, labels) = make_network(), samples
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.03)
    batches = EpochBatches(SAMPLES, BATCH, SEED)
    steps = EPOCHS * len(batches)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.03, steps, pct_start=round(0.2 * steps) / steps)
    for epoch in range(EPOCHS):
        network.train()
        batches.set_epoch(epoch)
        torch.manual_seed(epoch_seed(SEED, epoch))
        for indices in batches:
            loss = functional.cross_entropy(
                network(Shift(2)(photos[indices]) / 255 - 0.5), labels[indices], label_smoothing=0.1
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    for name, value in network.state_dict().items():
        torch.testing.assert_close(model.network.state_dict()[name], value, rtol=1e-4, atol=1e-6, msg=name)
    with torch.inference_mode():
        right = (network.eval()(photos / 255 - 0.5).argmax(1) == labels).float().mean()
    assert float(trainer.callback_metrics["accuracy"]) == pytest.approx(float(right))


def test_no_sample_is_left_alone_in_a_batch() -> None:
    for samples, batch, sizes in ((11, 5, [5, 6]), (12, 5, [5, 5, 2]), (3, 8, [3]), (2, 1, [1, 1])):
        batches = EpochBatches(samples, batch, 0)
        split = list(batches)
        assert [len(each) for each in split] == sizes
        assert len(batches) == len(sizes)
        assert sorted(torch.cat(split).tolist()) == list(range(samples))
        batches.set_epoch(1)
        assert torch.cat(list(batches)).tolist() != torch.cat(split).tolist() or samples < 4


def rates(model: PhotoTraining, samples: tuple[Tensor, Tensor], epochs: int) -> Iterator[float]:
    results: list[float] = []
    step = model.training_step

    def note(batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
        results.append(model.trainer.optimizers[0].param_groups[0]["lr"])
        return step(batch, batch_idx)

    model.training_step = note  # type: ignore[method-assign]
    model.begin(make_network(), Scaled(), CLASSES, SEED)
    make_trainer(epochs).fit(model, *loaders(samples))
    return iter(results)


def test_schedules(samples: tuple[Tensor, Tensor]) -> None:
    cycle = list(rates(PhotoTraining(lambda p: torch.optim.SGD(p, lr=0.1)), samples, EPOCHS))
    assert cycle.index(max(cycle)) == round(0.2 * len(cycle)) - 1
    assert max(cycle) == pytest.approx(0.1)
    assert cycle[-1] < 1e-4 < cycle[0] < 0.01
    falling = list(rates(PhotoTraining(lambda p: torch.optim.SGD(p, lr=0.1), schedule="cosine"), samples, EPOCHS))
    expected = [0.05 * (1 + math.cos(math.pi * step / len(falling))) for step in range(len(falling))]
    assert falling == pytest.approx(expected)
    assert set(rates(PhotoTraining(lambda p: torch.optim.SGD(p, lr=0.1), schedule="constant"), samples, 1)) == {0.1}


def test_a_cycle_fits_into_few_batches(samples: tuple[Tensor, Tensor]) -> None:
    for warm_up in (0.0, 1.0):
        model = PhotoTraining(lambda p: torch.optim.SGD(p, lr=0.1), warm_up=warm_up)
        assert len(list(rates(model, samples, 1))) == 5


class Auxiliary(nn.Module):
    def forward(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        return logits, logits


def test_mistakes_are_named(samples: tuple[Tensor, Tensor]) -> None:
    mistakes = [
        (PhotoTraining(lambda p: torch.optim.SGD(p, lr=1e30)), r"model.optimizer: the loss is (nan|inf) in epoch"),
        (PhotoTraining(torch.optim.Adagrad), r"model\.schedule: one_cycle does not suit Adagrad"),
        (PhotoTraining(), r"data\.backbone\.name: the network returns a tuple"),
    ]
    for model, message in mistakes:
        network = make_network() if "tuple" not in message else nn.Sequential(make_network(), Auxiliary())
        model.begin(network, Scaled(), CLASSES, SEED)
        with pytest.raises(UserError, match=message):
            make_trainer().fit(model, *loaders(samples))


def brute_force_mean_iou(predicted: Tensor, labels: Tensor) -> float:
    """Count intersections and unions pixel by pixel, over all photos."""
    shares = []
    for label in range(CLASSES):
        pairs = [(p == label, t == label) for p, t in zip(predicted.tolist(), labels.tolist(), strict=True) if t != 255]
        if union := sum(p or t for p, t in pairs):
            shares.append(sum(p and t for p, t in pairs) / union)
    return float(sum(shares) / len(shares))


@pytest.fixture
def pixels(samples: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Photos whose label maps can be told from their brightness, some pixels without a class."""
    photos, _ = samples
    labels = (photos[:, 0] > 150).to(torch.uint8)
    labels[::4, :5] = 255
    return photos, labels


def test_mean_iou_is_that_of_all_pixels_of_all_photos(pixels: tuple[Tensor, Tensor]) -> None:
    torch.manual_seed(0)
    # Logits at half the size, channels last.
    network = nn.Sequential(nn.Conv2d(3, CLASSES, 3, stride=2, padding=1), Last())
    model = PhotoTraining(optimizer=lambda p: torch.optim.AdamW(p, lr=0.01), augmentation=[Shift(2)])
    model.begin(network, Scaled(), CLASSES, SEED, of_pixels=True)
    trainer = make_trainer()
    trainer.fit(model, *loaders(pixels))
    photos, labels = pixels
    with torch.inference_mode():
        logits = functional.interpolate(
            model.network.eval()(photos / 255 - 0.5).movedim(-1, 1), (12, 12), mode="bilinear"
        )
    expected = brute_force_mean_iou(logits.argmax(1).flatten(), labels.flatten())
    assert float(trainer.callback_metrics["mean IoU"]) == pytest.approx(expected, abs=1e-6)
    # A class that occurs nowhere and is never predicted has no part in it.
    assert 0.2 < expected < 1


def test_augmentation_moves_label_maps_along(pixels: tuple[Tensor, Tensor]) -> None:
    photos, _ = pixels
    steps = [Shift(3), MirrorHalf(), v2.RandomChannelPermutation(), v2.RandomHorizontalFlip(0.5)]
    model = PhotoTraining(augmentation=steps)
    torch.manual_seed(2)
    # The map is the photo's own brightness, which no order of the channels changes.
    moved, maps = model._augment(photos, photos.sum(1).to(torch.uint8))
    assert type(moved) is type(maps) is Tensor
    assert torch.equal(moved.sum(1).to(torch.uint8), maps)
    assert not torch.equal(moved, photos)


class Last(nn.Module):
    """Puts the channels last, as classifiers of pixels do."""

    def forward(self, maps: Tensor) -> Tensor:
        return maps.movedim(1, -1)


def test_a_batch_in_which_no_pixel_has_a_class_says_nothing(pixels: tuple[Tensor, Tensor]) -> None:
    photos, labels = pixels
    model = PhotoTraining()
    model.begin(nn.Sequential(nn.Conv2d(3, CLASSES, 1), Last()), Scaled(), CLASSES, SEED, of_pixels=True)
    model.log = lambda *_: None  # type: ignore[method-assign]
    loss = model.training_step((photos, torch.full_like(labels, 255)), 0)
    loss.backward()
    assert loss.item() == 0
    gradients = [each.grad for each in model.parameters()]
    assert all(each is not None and not each.any() for each in gradients)
