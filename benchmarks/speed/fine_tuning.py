"""Fine-tuning behind a freeze boundary against a plain loop, and a training step against a bare one.

The plain loop does what the same command of `train.py` does, as one would write it down: the whole network, float32,
torch's default memory layout, photos decoded anew at each evaluation, an evaluation after every batch.
"""

from __future__ import annotations

import json
import statistics
import time
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import jsonargparse
import torch
import yaml
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from headstart.benchmarks.speed.frame import run, temporary_folder, timed
from headstart.cli.comparison import ComparisonCLI
from headstart.datamodules.orderings import sample_ordering, sample_validation
from headstart.datamodules.photos.cats_and_dogs import CatsAndDogs
from headstart.datamodules.photos.photo_source import Photos
from headstart.datamodules.sample_stream import SampleStream
from headstart.metrics.sample_efficiency.curves import required_correct
from headstart.modules.method import sample_head
from headstart.modules.networks.backbone import Backbone, BackboneSpec, build_backbone

SEED, BATCH, LIMIT, VALIDATED = 0, 4, 400, 1000
QUIET = ("--results.recompute=true", "--results.overwrite=true", "--trainer.enable_progress_bar=false")
STEPS, LARGE_BATCH, REPEATS = 64, 16, 3
THRESHOLD, CONSECUTIVE, RATE, PROBED = 0.8, 10, 1e-4, 32
METHOD = (
    "{class_path: headstart.modules.LinearProbeThenFineTune, init_args: {probe_samples: 32, "
    "optimizer: {class_path: torch.optim.Adam, init_args: {lr: 1e-4}}}}"
)


class Decoded(Dataset[tuple[Tensor, int]]):
    """Photos that are decoded on every access.

    Args:
        photos: The photos.
        backbone: The network whose preprocessing they get.
    """

    def __init__(self, photos: Photos, backbone: Backbone) -> None:
        self.photos, self.preprocessing = photos, backbone.preprocessing

    def __len__(self) -> int:
        """Return the number of photos."""
        return len(self.photos)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        """Return a photo, normalised, and its label."""
        pixels = self.preprocessing.prepare(self.photos.read(index)).float() / 255
        mean, std = (torch.tensor(each)[:, None, None] for each in (self.preprocessing.mean, self.preprocessing.std))
        return (pixels - mean) / std, int(self.photos.labels[index])


def plain(train: Photos, validation: Photos, backbone: Backbone, boundary: str, probed: int) -> int:
    """Fine-tune in a plain loop; return the samples to criterion."""
    network = deepcopy(backbone.network).to(memory_format=torch.contiguous_format).eval()
    head = nn.Linear(backbone.width, 2)
    weight, bias = sample_head(backbone.width, 2, SEED, ordering=0)
    head.load_state_dict({"weight": weight.T, "bias": bias})
    trained = [each for name, each in network.named_parameters() if _stage(name) >= _stage(boundary)]
    both = torch.optim.Adam([*trained, *head.parameters()], lr=RATE)
    probe = torch.optim.Adam(head.parameters(), lr=1e-3)
    order, samples, streak = sample_ordering(len(train), 0, SEED), Decoded(train, backbone), 0
    for seen in range(0, LIMIT, BATCH):
        images, labels = zip(*(samples[int(index)] for index in order[seen : seen + BATCH]), strict=True)
        optimizer = probe if seen < probed else both
        optimizer.zero_grad()
        functional.cross_entropy(head(network(torch.stack(images))), torch.tensor(labels)).backward()
        optimizer.step()
        streak = streak + 1 if _correct(network, head, Decoded(validation, backbone)) >= _required() else 0
        if streak == CONSECUTIVE:
            return seen + BATCH
    raise SystemExit("the plain loop does not meet the criterion; take a lower threshold")


def _stage(name: str) -> int:
    return int(name.split(".")[1])


def _required() -> int:
    return required_correct(THRESHOLD, VALIDATED)


@torch.no_grad()
def _correct(network: nn.Module, head: nn.Module, photos: Decoded) -> int:
    loader = DataLoader(photos, batch_size=32, num_workers=2)
    return sum(int((head(network(images)).argmax(1) == labels).sum()) for images, labels in loader)


def _options(root: Path, weights: Path, boundary: str, precision: str) -> list[str]:
    adam = f"{{class_path: torch.optim.Adam, init_args: {{lr: {RATE}}}}}"
    return [
        "--data=configs/data/cats_and_dogs_photos.yaml",
        f"--data.photos.root={root}",
        "--data.photos.download=false",
        f"--data.backbone={{name: mobilenet_v2, weights: {weights}}}",
        f"--data.trainable_from={boundary}",
        f"--data.precision={precision}",
        "--data.orderings=1",
        f"--model.baseline={{class_path: headstart.modules.GradientDescent, init_args: {{optimizer: {adam}}}}}",
        "--trainer.logger=false",
    ]


def tail_against_plain_loop(root: Path, weights: Path, boundary: str, precision: str) -> None:
    """Time one ordering of full fine-tuning and linear probing then fine-tuning, both ways."""
    options = [
        *_options(root, weights, boundary, precision),
        f"--data.batch_size={BATCH}",
        f"--data.max_samples={LIMIT}",
        f"--data.validation_size={VALIDATED}",
        f"--model.methods={{probed: {METHOD}}}",
        f"--criterion={{threshold: {THRESHOLD}, consecutive: {CONSECUTIVE}, evaluation: lazy}}",
    ]
    seconds = {}
    with temporary_folder() as folder:
        for again in ("from an empty cache", "activations there"):
            given = [*options, f"--trainer.default_root_dir={folder / again / 'run'}"]
            own = {"HEADSTART_LEDGER": str(folder / again / "ledger")}
            seconds[again] = run("train.py", *given, cache=folder / "cache", **own).seconds
            document = json.loads((folder / again / "run" / "results.json").read_text())
        print({again: f"{each:.1f} s" for again, each in seconds.items()}, flush=True)

    source = CatsAndDogs(str(root))
    train, validation = source.train(), source.validation()
    validation = validation.subset(sample_validation(validation.labels, VALIDATED, SEED))
    backbone = build_backbone(BackboneSpec("mobilenet_v2", str(weights)).network(SEED))

    whole = 0.0
    for name, probed in (("baseline", 0), ("probed", PROBED)):
        taken, samples = timed(partial(plain, train, validation, backbone, boundary, probed))
        whole += taken
        scores = document["methods"][name]
        print(
            f"{name}: plain loop {samples} samples to criterion, {taken:.1f} s, {samples // BATCH} evaluations; "
            f"train.py {scores['samples_to_criterion'][0]} samples, {scores['evaluations'][0]} evaluations",
            flush=True,
        )

    for again, each in seconds.items():
        print(f"train.py, {again}: {each:.1f} s, plain loop {whole:.1f} s, ratio {whole / each:.1f}")


class Stopwatch(Callback):
    """Measures the seconds of training, evaluations included, of all orderings together."""

    seconds = 0.0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin."""
        self.began = time.perf_counter()

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """End."""
        self.seconds += time.perf_counter() - self.began


def step_against_bare_loop(root: Path, weights: Path, boundary: str, folder: Path) -> None:
    """Time training steps alone, through `train.py` and in a bare loop on the same samples."""
    options = [
        *_options(root, weights, boundary, "auto"),
        f"--data.batch_size={LARGE_BATCH}",
        f"--data.max_samples={STEPS * LARGE_BATCH}",
        "--data.validation_size=10",
        "--model.methods={}",
        f"--criterion={{consecutive: 1, threshold: 1.0, evaluate_every: {STEPS}}}",
        f"--trainer.default_root_dir={folder / 'steps'}",
        f"--data.cache_dir={folder / 'cache'}",
    ]
    ratios = []
    for _ in range(REPEATS):
        stream, seconds, _ = _train(options)
        bare, _ = timed(partial(_train_bare, stream))
        ratios.append(bare / seconds)
        print(f"{STEPS} steps of {LARGE_BATCH}: train.py {seconds:.2f} s, bare loop {bare:.2f} s", flush=True)
    print(f"samples a second of the bare loop's: {statistics.median(ratios):.0%}")


def costs_of_methods(folder: Path) -> None:
    """Time each method of the fine-tuning configuration in three orderings of the docs' table, each by itself."""
    chosen = yaml.safe_load(Path("configs/model/fine_tuning.yaml").read_text())
    for name, method in {"baseline": chosen["baseline"], **chosen["methods"]}.items():
        options = [
            "--config=configs/local/fine_tuning/cats_and_dogs.yaml",
            f"--model.baseline={method if isinstance(method, str) else json.dumps(method)}",
            "--data.orderings=3",
            "--trainer.logger=false",
            f"--trainer.default_root_dir={folder / name}",
        ]
        _, seconds, document = _train(options)
        scores = document["methods"]["baseline"]
        samples, made = sum(scores["samples_to_criterion"]), sum(scores["evaluations"])
        figures = f"{seconds / 3:.1f} s an ordering; {samples / 3:.0f} samples, {made / 3:.0f} evaluations"
        print(f"{name}: {figures}", flush=True)


def _train(options: list[str]) -> tuple[SampleStream, float, dict[str, Any]]:
    """Run `train.py` in this process, and return its data, the seconds of training and its results."""
    cli, watch = ComparisonCLI([*options, *QUIET]), Stopwatch()
    cli.trainer.callbacks.append(watch)  # type: ignore[attr-defined]
    document = cli.run()
    return cli.datamodule, watch.seconds, document


def _train_bare(stream: SampleStream) -> None:
    start = stream.start()
    network = deepcopy(start.backbone)
    assert network is not None
    head = nn.Linear(start.features, start.classes)
    optimizer = torch.optim.Adam([*network.parameters(), *head.parameters()], lr=RATE)
    for inputs, labels, _ in stream.train_dataloader():
        optimizer.zero_grad()
        functional.cross_entropy(head(network(inputs[0])), labels[0]).backward()
        optimizer.step()


def main(
    root: Path = Path("../shared/data/cats_and_dogs"),
    weights: Path = Path("../shared/weights/mobilenet_v2_imagenet.safetensors"),
    boundary: str = "features.14",
    precision: str = "auto",
) -> None:
    """Time both ways.

    Args:
        root: Photos of cats and dogs.
        weights: Weights of MobileNetV2.
        boundary: The first stage that is trained.
        precision: Arithmetic of the frozen stages and of evaluations.
    """
    with temporary_folder() as folder:
        step_against_bare_loop(root.resolve(), weights.resolve(), boundary, folder)
        costs_of_methods(folder)
    tail_against_plain_loop(root.resolve(), weights.resolve(), boundary, precision)


if __name__ == "__main__":
    jsonargparse.auto_cli(main)
