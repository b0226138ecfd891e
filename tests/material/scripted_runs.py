"""Comparisons whose counts of correct predictions are scripted."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import yaml
from jsonargparse import Namespace
from lightning.pytorch import Callback, LightningDataModule, Trainer
from lightning.pytorch.callbacks import ProgressBar
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader

from headstart.callbacks import ComparisonRun, SampleEfficiency
from headstart.callbacks.measurement import measure
from headstart.datamodules.sample_stream import ValidationSet
from headstart.metrics.sample_efficiency.curves import Curves
from headstart.modules.comparison import Comparison
from headstart.modules.method import Method, MethodStart

CHUNK = 7
FIRST = 3  # ordering
# Around the 16 of 20 that the criterion asks for: two methods, three orderings, twelve evaluations.
COUNTS = np.where(np.random.default_rng(0).random((2, 3, 12)) < 0.8, 16, 15)


class Scripted(Method):
    """Is right on a prescribed number of validation samples at each evaluation.

    Args:
        counts: Correct predictions, `[orderings, evaluations]`; the first validation samples are the right ones.
        evaluate_every: Batches between two evaluations.
        fail_at: Batch at which it fails, from 1.
    """

    independent_of_limit = True

    def __init__(self, counts: NDArray[np.int64], evaluate_every: int, fail_at: int | None) -> None:
        super().__init__()
        # A method's numbers are part of its key; those in an object of another package are not.
        self.script = Namespace(counts=torch.from_numpy(counts), fail_at=fail_at)  # type: ignore[no-untyped-call]
        self.evaluate_every = evaluate_every

    def begin(self, start: MethodStart) -> None:
        super().begin(start)
        self.batches = 0
        self.counts = self.script.counts[[number - FIRST for number in start.ordering_numbers]]

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        self.batches += 1
        if self.batches == self.script.fail_at:
            raise RuntimeError("scripted failure")

    def forward(self, inputs: Tensor) -> Tensor:
        """Use the indices of validation samples as inputs; their classes alternate."""
        right = inputs[:, 0] < self.counts[:, self.batches // self.evaluate_every - 1, None]
        classes = inputs[:, 0].long() % 2
        return torch.nn.functional.one_hot(torch.where(right, classes, 1 - classes), 2).float()


class IndexStream(LightningDataModule):
    """Feeds empty samples, and the indices of validation samples as inputs.

    Args:
        orderings: Number of orderings.
        batch_size: Samples in a batch.
        max_samples: The sample limit.
        validation_size: Number of validation samples.
    """

    # Weights of no file.
    spec = SimpleNamespace(file_digest=None)
    device = torch.device("cpu")

    def __init__(self, orderings: int, batch_size: int, max_samples: int, validation_size: int) -> None:
        super().__init__()
        self.orderings = range(FIRST, FIRST + orderings)
        self.active_orderings: Sequence[int] = self.orderings
        self.orderings_at_once: int | None = None
        self.batch_size = batch_size
        self.max_samples = max_samples
        self.validation_labels = torch.arange(validation_size) % 2

    def feed(self, numbers: Sequence[int]) -> None:
        self.active_orderings = numbers

    def start(self) -> MethodStart:
        return MethodStart(1, 2, self.active_orderings, max_samples=self.max_samples, seed=0)

    def held(self) -> dict[str, Tensor]:
        return {"the validation labels": self.validation_labels}

    def train_dataloader(self) -> DataLoader[Any]:
        labels = torch.zeros(len(self.active_orderings), self.max_samples, dtype=torch.int64)
        batches = [(part[..., None].float(), part, part) for part in labels.split(self.batch_size, 1)]
        return DataLoader(batches, batch_size=None)  # type: ignore[arg-type]

    def val_dataloader(self) -> DataLoader[Any]:
        indices = torch.arange(len(self.validation_labels)).float()[:, None]
        whole: Any = [ValidationSet(indices, self.validation_labels, CHUNK)]
        return DataLoader(whole, batch_size=None)

    def describe(self) -> dict[str, Any]:
        names = {"dataset": "places", "backbone": "none", "weights": "none"}
        return {**names, "orderings": len(self.orderings), "first_ordering": self.orderings.start}

    def environment(self) -> dict[str, Any]:
        return {}

    def decisive(self) -> dict[str, Any]:
        return {"batch_size": self.batch_size, "validation_size": len(self.validation_labels), "seed": 0}


@dataclass
class ScriptedRun:
    """A run that ended, or was cut off by `error`."""

    criterion: SampleEfficiency
    results: ComparisonRun
    folder: Path
    error: BaseException | None = None

    @property
    def samples_seen(self) -> list[int]:
        seen: list[int] = self.criterion.traces.grid.samples_seen[: self.evaluations].tolist()
        return seen

    @property
    def evaluations(self) -> int:
        return int(self.criterion.traces.lengths.max())

    @property
    def correct(self) -> NDArray[np.int64]:
        """Correct predictions, `[methods, orderings, evaluations]`."""
        return np.moveaxis(self.criterion.traces.correct[: self.evaluations], 0, -1)

    @property
    def stopped_because(self) -> str:
        return str(self.results.document["stopped_because"])

    @property
    def curves(self) -> Curves:
        return Curves.load(self.folder / "curves.npz")


def run_script(
    counts: NDArray[np.int64] | list[list[list[int]]],
    folder: Path,
    *,
    validation_size: int = 20,
    batch_size: int = 1,
    max_samples: int | None = None,
    fail_at: int | None = None,
    results: ComparisonRun | None = None,
    config: str = "trainer: {}\ndata: {}",
    callbacks: tuple[Callback, ...] = (),
    logger: Any = False,
    methods: Sequence[Method] = (),
    **criterion: Any,
) -> ScriptedRun:
    """Run a comparison with the counts `[methods, orderings, evaluations]`, or of methods that count themselves."""
    script = np.asarray(counts, dtype=np.int64)
    callback = SampleEfficiency(**criterion)
    every = callback.evaluate_every
    methods = methods or [Scripted(part, every, fail_at) for part in script]
    comparison = Comparison(methods[0], {f"method_{i}": method for i, method in enumerate(methods[1:])})
    limit = script.shape[2] * batch_size * every if max_samples is None else max_samples
    stream = IndexStream(script.shape[1], batch_size, limit, validation_size)
    # The counts are what the methods' code would be: they differ by their indices alone.
    custom = {name: {"init_args": {"place": i}} for i, name in enumerate(comparison.names[1:])}
    model = {"baseline": {"init_args": {}}, "methods": custom}
    results = results or ComparisonRun()
    results.prepare(folder, yaml.safe_dump({"model": model, **yaml.safe_load(config)}, sort_keys=False), callback)
    results.describe_methods(comparison, limit)
    trainer = Trainer(
        accelerator="cpu",
        max_epochs=1,
        num_sanity_val_steps=0,
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=any(isinstance(each, ProgressBar) for each in callbacks),
        logger=logger,
        val_check_interval=every,
        default_root_dir=folder,
        callbacks=[callback, *callbacks],
    )
    run = ScriptedRun(callback, results, folder)
    try:
        measure(trainer, comparison, stream, results)  # type: ignore[arg-type]
    except RuntimeError as error:
        run.error = error
    return run


def read(folder: Path) -> dict[str, Any]:
    """Read the results of a run, without their own digest, which is also of their times."""
    document: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return {key: value for key, value in document.items() if key != "sha256"}
