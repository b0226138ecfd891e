"""Comparisons and training."""

import shutil
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Trainer
from torch import Tensor, nn
from torch.nn import functional

from headstart.benchmarks.frame import SHARED, compare, processor_time_of_commands, run, temporary_folder
from headstart.cli.training_cli import DEFAULTS
from headstart.datamodules.photo_batches import EpochBatches, load_batches
from headstart.modules.augmentation import MirrorHalf, PermuteChannels, Shift
from headstart.modules.networks.backbone_spec import EMBEDDED_PREPROCESSING, BackboneSpec
from headstart.modules.networks.classifier import build_classifier
from headstart.modules.networks.normalization import Normalization
from headstart.modules.photo_training import PhotoTraining

# No accuracy above 1 exists, so that every one of 250 evaluations on 1,000 photos takes place.
DEMO = (
    "--config=configs/demo.yaml",
    "--trainer.logger=false",
    "--data.photos.validation_size=1000",
    "--data.max_samples=250",
    "--criterion.threshold=1.0",
    "--results.overwrite=true",
)
CLOSED_FORM = "--model.methods={closed_form: headstart.modules.RecursiveLeastSquares}"
FINE_TUNING = (
    "--data=configs/data/cats_and_dogs_photos.yaml",
    f"--data.photos.root={(SHARED / 'data/cats_and_dogs').resolve()}",
    "--data.photos.download=false",
    "--data.backbone.name=mobilenet_v2",
    f"--data.backbone.weights={(SHARED / 'weights/mobilenet_v2_imagenet.safetensors').resolve()}",
    "--data.trainable_from=features.14",
    "--data.orderings=1",
    "--data.batch_size=4",
    "--data.max_samples=200",
    "--data.validation_size=500",
    "--model.methods={}",
    "--model.baseline={class_path: headstart.modules.GradientDescent, init_args: "
    "{optimizer: {class_path: torch.optim.Adam, init_args: {lr: 0.0001}}}}",
    "--trainer.logger=false",
    "--results.overwrite=true",
)
SEED, BATCH, CLASSES, SIDE, RATE, PHOTOS = 0, 64, 60, 64, 0.004, 3000


def train(folder: Path, *options: str, recompute: bool = True) -> None:
    """Run train.py with its options, with its run and cache in a folder."""
    if recompute:
        shutil.rmtree(folder / "ledger", ignore_errors=True)
    where = f"--trainer.default_root_dir={folder / 'run'}", f"--results.ledger={folder / 'ledger'}"
    run("train.py", *options, *where, cache=folder / "cache")


def orderings() -> str:
    """What do 100 orderings cost over one, on stored features, start-up included?"""
    with temporary_folder() as folder:
        runs = {n: partial(train, folder, *DEMO, CLOSED_FORM, f"--data.orderings={n}") for n in (1, 100)}
        runs[1]()
        found = compare({str(n): each for n, each in runs.items()})
    return f"{found['100']:.1f} times the time"


def repeated() -> str:
    """What does a repeated command cost over the first one of 100 orderings, start-up included?"""
    with temporary_folder() as folder:
        options = (*DEMO, CLOSED_FORM, "--data.orderings=100")
        first, again = (partial(train, folder, *options, recompute=each) for each in (True, False))
        first()
        found = compare({"first": first, "again": again})
    return f"{found['again']:.2f} times the time"


def lazy() -> str:
    """What does lazy evaluation save, in fine-tuning from features.14 of MobileNetV2?"""
    criterion = "--criterion={{threshold: 0.8, consecutive: 10, evaluation: {}}}"
    with temporary_folder() as folder:
        ways = {way: partial(train, folder, *FINE_TUNING, criterion.format(way)) for way in ("lazy", "every")}
        ways["lazy"]()
        found = compare(ways, repeats=1)
    return f"every evaluation takes {found['every']:.1f} times as long"


def source_training() -> str:
    """What does an epoch of source training cost over a bare loop of PyTorch?"""
    generator = torch.Generator().manual_seed(SEED)
    pixels = torch.randint(256, (PHOTOS, 3, SIDE, SIDE), generator=generator, dtype=torch.uint8)
    labels = torch.arange(PHOTOS) % CLASSES
    _bare(pixels[: 4 * BATCH], labels[: 4 * BATCH])
    loops = {"bare": partial(_bare, pixels, labels), "train.py": partial(_ours, pixels, labels)}
    return f"{compare(loops, clock=time.process_time)['train.py']:.2f} times the processor time"


def start_up() -> str:
    """How long do `headstart --help` and `headstart list methods` take, over the bare interpreter?"""
    commands = {"python": ("-c", "pass"), "help": ("-m", "headstart", "--help")}
    commands["list"] = ("-m", "headstart", "list", "methods")
    runs = {name: partial(run, *command) for name, command in commands.items()}
    found = compare(runs, repeats=9, clock=processor_time_of_commands)
    return f"{found['help']:.0f} and {found['list']:.0f} times the processor time"


def _build() -> nn.Module:
    """Build the embedded default's network."""
    chosen = BackboneSpec("mobilenet_v2", "random", {"width_mult": 0.35}, EMBEDDED_PREPROCESSING)
    _, network, *_ = build_classifier(chosen.network(SEED), CLASSES)
    return network.train()


def _augmentation() -> nn.Sequential:
    return nn.Sequential(Shift(), MirrorHalf(), PermuteChannels())


def _bare(photos: Tensor, labels: Tensor) -> None:
    """Train one epoch in a loop as one would write it down."""
    network = _build()
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.05)
    batches = EpochBatches(len(labels), BATCH, SEED)
    prepare = nn.Sequential(_augmentation(), Normalization(EMBEDDED_PREPROCESSING))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, len(batches), pct_start=0.2)
    for indices in batches:
        images = prepare(photos[indices]).contiguous(memory_format=torch.channels_last)
        loss = functional.cross_entropy(network(images), labels[indices], label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()


def _ours(photos: Tensor, labels: Tensor) -> None:
    """Train one epoch as `train.py` does."""
    options: dict[str, Any] = {**DEFAULTS, "accelerator": "cpu", "enable_progress_bar": False, "max_epochs": 1}
    model = PhotoTraining(label_smoothing=0.05, augmentation=list(_augmentation()))
    model.begin(_build(), Normalization(EMBEDDED_PREPROCESSING), CLASSES, SEED)
    Trainer(**options).fit(model, load_batches(photos, labels, EpochBatches(len(labels), BATCH, SEED)))


BENCHMARKS = (orderings, repeated, lazy, source_training, start_up)
