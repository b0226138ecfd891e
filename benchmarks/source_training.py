"""One epoch of source training against a bare loop of PyTorch: the same network, photos, augmentation and optimiser."""

from __future__ import annotations

import statistics
import time
from typing import Any

import jsonargparse
import torch
from lightning.pytorch import Trainer
from torch import Tensor, nn
from torch.nn import functional

from headstart.cli.training_cli import DEFAULTS
from headstart.datamodules.photo_batches import EpochBatches, load_batches
from headstart.modules.augmentation import MirrorHalf, PermuteChannels, Shift
from headstart.modules.networks.backbone import EMBEDDED_PREPROCESSING, BackboneSpec
from headstart.modules.networks.classifier import build_classifier
from headstart.modules.networks.normalization import Normalization
from headstart.modules.photo_training import PhotoTraining

SEED, BATCH, CLASSES, SIDE, RATE = 0, 64, 60, 64, 0.004


def build() -> nn.Module:
    """Build the embedded default's network."""
    chosen = BackboneSpec("mobilenet_v2", "random", {"width_mult": 0.35}, EMBEDDED_PREPROCESSING)
    _, network, *_ = build_classifier(chosen.network(SEED), CLASSES)
    return network.train()


def augmentation() -> nn.Sequential:
    """Give what the recipe augments by."""
    return nn.Sequential(Shift(), MirrorHalf(), PermuteChannels())


def bare(network: nn.Module, photos: Tensor, labels: Tensor) -> None:
    """Train one epoch in a loop as one would write it down."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.05)
    batches, normalize, augment = (
        EpochBatches(len(labels), BATCH, SEED),
        Normalization(EMBEDDED_PREPROCESSING),
        augmentation(),
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, len(batches), pct_start=0.2)
    for places in batches:
        images = normalize(augment(photos[places])).contiguous(memory_format=torch.channels_last)
        loss = functional.cross_entropy(network(images), labels[places], label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()


def ours(network: nn.Module, photos: Tensor, labels: Tensor) -> None:
    """Train one epoch as `train.py` does."""
    options: dict[str, Any] = {**DEFAULTS, "accelerator": "cpu", "enable_progress_bar": False, "max_epochs": 1}
    model = PhotoTraining(label_smoothing=0.05, augmentation=list(augmentation()))
    model.begin(network, Normalization(EMBEDDED_PREPROCESSING), CLASSES, SEED)
    Trainer(**options).fit(model, load_batches(photos, labels, EpochBatches(len(labels), BATCH, SEED)))


def benchmark(photos: int = 3000, repeats: int = 3) -> None:
    """Print the processor time of one epoch, in turn, and the ratio of the medians.

    Args:
        photos: Photos of an epoch, of noise: what is in them costs nothing.
        repeats: How often each is measured.
    """
    generator = torch.Generator().manual_seed(SEED)
    pixels = torch.randint(256, (photos, 3, SIDE, SIDE), generator=generator, dtype=torch.uint8)
    labels = torch.arange(photos) % CLASSES
    seconds: dict[str, list[float]] = {"bare loop": [], "train.py": []}
    bare(build(), pixels[: 4 * BATCH], labels[: 4 * BATCH])
    for _ in range(repeats):
        for name, train in (("bare loop", bare), ("train.py", ours)):
            network = build()
            # Of the processor: other work on the machine has no part in it.
            began = time.process_time()
            train(network, pixels, labels)
            seconds[name].append(time.process_time() - began)
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    for name, each in seconds.items():
        listed = ", ".join(f"{one:.2f}" for one in each)
        print(f"{name}: {medians[name]:.2f} s of the processor for {photos} photos ({listed})")
    print(f"ratio {medians['train.py'] / medians['bare loop']:.3f}")


if __name__ == "__main__":
    jsonargparse.auto_cli(benchmark, as_positional=False)
