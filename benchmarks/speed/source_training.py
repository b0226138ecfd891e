"""One epoch of source training against a bare loop of PyTorch: the same network, photos, augmentation and optimiser."""

import time
from typing import Any

import torch
from lightning.pytorch import Trainer
from torch import Tensor, nn
from torch.nn import functional

from headstart.benchmarks.speed.frame import compare, ratios
from headstart.cli.training_cli import DEFAULTS
from headstart.datamodules.photo_batches import EpochBatches, load_batches
from headstart.modules.augmentation import MirrorHalf, PermuteChannels, Shift
from headstart.modules.networks.backbone_spec import EMBEDDED_PREPROCESSING, BackboneSpec
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
    """Return the augmentation of the recipe."""
    return nn.Sequential(Shift(), MirrorHalf(), PermuteChannels())


def bare(network: nn.Module, photos: Tensor, labels: Tensor) -> None:
    """Train one epoch in a loop as one would write it down."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.05)
    batches = EpochBatches(len(labels), BATCH, SEED)
    prepare = nn.Sequential(augmentation(), Normalization(EMBEDDED_PREPROCESSING))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, len(batches), pct_start=0.2)
    for indices in batches:
        images = prepare(photos[indices]).contiguous(memory_format=torch.channels_last)
        loss = functional.cross_entropy(network(images), labels[indices], label_smoothing=0.05)
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


def main(photos: int = 3000, repeats: int = 3) -> dict[str, float]:
    """Print the processor time of one epoch, network included, in turn, and the ratio of the medians.

    Args:
        photos: Photos of an epoch, of noise.
        repeats: How often each is measured.

    Returns:
        The ratios, by loop.
    """
    generator = torch.Generator().manual_seed(SEED)
    pixels = torch.randint(256, (photos, 3, SIDE, SIDE), generator=generator, dtype=torch.uint8)
    labels = torch.arange(photos) % CLASSES
    bare(build(), pixels[: 4 * BATCH], labels[: 4 * BATCH])
    loops = {"a bare loop": lambda: bare(build(), pixels, labels), "train.py": lambda: ours(build(), pixels, labels)}
    return ratios(compare(loops, "a bare loop", repeats, clock=time.process_time), "a bare loop")
