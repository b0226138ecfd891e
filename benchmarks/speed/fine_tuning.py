"""Fine-tuning behind a freeze boundary: whole runs, training steps against a bare loop, and the cost of each method."""

import json
import time
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import torch
import yaml
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import nn
from torch.nn import functional

from headstart.benchmarks.speed.frame import PHOTOS, ROOT, WEIGHTS, compare, run, temporary_folder
from headstart.cli.comparison import ComparisonCLI
from headstart.datamodules.sample_stream import SampleStream

STEPS, BATCH, RATE = 64, 16, 1e-4
ADAM = f"{{class_path: torch.optim.Adam, init_args: {{lr: {RATE}}}}}"
PROBE = "headstart.modules.LinearProbeThenFineTune"
QUIET = ("--results.recompute=true", "--results.overwrite=true", "--trainer.enable_progress_bar=false")
LAZY = "{threshold: 0.8, consecutive: 10, evaluation: lazy}"
WHOLE_RUN = ("--data.batch_size=4", "--data.max_samples=400", "--data.validation_size=1000", f"--criterion={LAZY}")
STEPS_ALONE = (
    f"--data.batch_size={BATCH}",
    f"--data.max_samples={STEPS * BATCH}",
    "--data.validation_size=10",
    "--model.methods={}",
    f"--criterion={{consecutive: 1, threshold: 1.0, evaluate_every: {STEPS}}}",
)


class Stopwatch(Callback):
    """Measures the seconds of training, evaluations included, of all orderings together."""

    seconds = 0.0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin."""
        self.began = time.perf_counter()

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """End."""
        self.seconds += time.perf_counter() - self.began


def whole_runs(options: list[str], folder: Path) -> None:
    """Time one ordering of full fine-tuning and of linear probing then fine-tuning, from the command line."""
    methods = f"--model.methods.probed={{class_path: {PROBE}, init_args: {{probe_samples: 32, optimizer: {ADAM}}}}}"
    for state in ("from an empty cache", "activations in place"):
        output = [f"--trainer.default_root_dir={folder / state}", f"--results.ledger={folder / state / 'ledger'}"]
        print(f"{state}: {run('train.py', *options, *WHOLE_RUN, methods, *output, *QUIET, cache=folder / 'cache')}")

    for name, scores in json.loads((folder / state / "results.json").read_text())["methods"].items():
        print(f"{name}: {scores['samples_to_criterion']} samples, {scores['evaluations']} evaluations", flush=True)


def step_against_bare_loop(options: list[str], folder: Path) -> None:
    """Time training steps through `train.py`, and in a bare loop on the same samples."""
    cache = [f"--trainer.default_root_dir={folder / 'steps'}", f"--data.cache_dir={folder / 'cache'}"]
    train = partial(_train, [*options, *STEPS_ALONE, *cache])
    stream, _, _ = train()
    compare({"bare loop": partial(_train_bare, stream), "train.py, start-up included": train}, "bare loop")
    print(f"{STEPS} steps of {BATCH} by train.py alone: {train()[1]:.2f} s")


def costs_of_methods(folder: Path) -> None:
    """Time three orderings of each method of the fine-tuning configuration, each by itself."""
    model = yaml.safe_load((ROOT / "configs/model/fine_tuning.yaml").read_text())
    for name, method in {"baseline": model["baseline"], **model["methods"]}.items():
        options = [
            "--config=benchmarks/local/fine_tuning/cats_and_dogs.yaml",
            f"--model.baseline={method if isinstance(method, str) else json.dumps(method)}",
            "--data.orderings=3",
            "--trainer.logger=false",
            f"--trainer.default_root_dir={folder / name}",
        ]
        _, seconds, document = _train(options)
        scores = document["methods"]["baseline"]
        samples, evaluations = sum(scores["samples_to_criterion"]), sum(scores["evaluations"])
        print(f"{name}, an ordering: {seconds / 3:.1f} s, {samples / 3:.0f} samples, {evaluations / 3:.0f} evaluations")


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


def main(root: Path = Path(PHOTOS), weights: Path = Path(WEIGHTS), boundary: str = "features.14") -> None:
    """Print the times of whole runs, steps and methods.

    Args:
        root: Photos of cats and dogs.
        weights: Weights of MobileNetV2.
        boundary: The first stage that is trained.
    """
    options = [
        "--data=configs/data/cats_and_dogs_photos.yaml",
        f"--data.photos.root={root.resolve()}",
        "--data.photos.download=false",
        f"--data.backbone={{name: mobilenet_v2, weights: {weights.resolve()}}}",
        f"--data.trainable_from={boundary}",
        "--data.orderings=1",
        f"--model.baseline={{class_path: headstart.modules.GradientDescent, init_args: {{optimizer: {ADAM}}}}}",
        "--trainer.logger=false",
    ]
    with temporary_folder() as folder:
        whole_runs(options, folder)
        step_against_bare_loop(options, folder)
        costs_of_methods(folder)
