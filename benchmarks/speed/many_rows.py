"""Own memory, bytes read and seconds of a comparison on stored features of very many training photos.

Rows are drawn and written to tables; `headstart train` then finds them there.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import wraps
from multiprocessing import get_context
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from PIL import Image

from headstart.benchmarks.speed.frame import ROOT, temporary_folder, timed
from headstart.cli.task import begin
from headstart.datamodules import photo_data, sample_stream
from headstart.datamodules.chosen_backbone import build_chosen
from headstart.datamodules.feature_stream import FeatureStream
from headstart.datamodules.photos.photo_source import Photos, PhotoSource
from headstart.modules.comparison import Comparison
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.store.feature_table import FeatureTable, pack

CLASSES, FEATURES, PART = 1_000, 2_048, 4096
# Seconds between two looks at the memory.
LOOK_EVERY = 0.02
# Functions whose seconds are summed, by where they are called from.
STAGES = [
    (FeatureTable, "find"),
    (photo_data, "find_duplicates"),
    (sample_stream, "digest_splits"),
    (sample_stream, "sample_fed"),
    (Comparison, "training_step"),
    (Comparison, "validation_step"),
]


class NumberedPhotos(Photos):
    """Photos that have a name and a digest, and that cannot be decoded.

    Args:
        split: Name of the split.
        count: Number of photos.
    """

    def __init__(self, split: str, count: int) -> None:
        self.split, self.names = split, [f"{split}/{i:07}.jpg" for i in range(count)]
        self.labels = np.arange(count) % CLASSES
        self.classes = tuple(f"class_{i:03}" for i in range(CLASSES))

    def read(self, index: int) -> Image.Image:
        """Raise an error: all rows are stored."""
        raise OSError(f"{self.names[index]} is a name only")

    def digest(self, index: int) -> str:
        """Return a number in hexadecimal digits."""
        return f"{index + (self.split == 'train') * 2**40:064x}"

    def digest_some(self, indices: Any, cache: Path | None) -> list[str]:  # noqa: ANN401
        """Return the digests of some photos."""
        return [self.digest(index) for index in indices]


class ManyPhotos(PhotoSource):
    """A data set of numbered photos.

    Args:
        rows: Number of training photos.
        held_out: Number of validation photos.
    """

    def __init__(self, rows: int, held_out: int) -> None:
        self.rows, self.held_out = rows, held_out

    def train(self) -> Photos:
        """Return the training photos."""
        return NumberedPhotos("train", self.rows)

    def validation(self) -> Photos:
        """Return the validation photos."""
        return NumberedPhotos("validation", self.held_out)


def main(rows: Sequence[int] = (100_000, 1_300_000), held_out: int = 50_000, orderings: int = 20) -> None:
    """Print what a comparison of three methods takes for each number of training rows.

    Args:
        rows: Numbers of training rows, of 8.2 KB each.
        held_out: Number of validation rows.
        orderings: Number of orderings.
    """
    for count in rows:
        with temporary_folder() as folder:
            print(f"{count} training rows, {count * 4 * FEATURES / 1e9:.1f} GB:", flush=True)
            for work in (_write, _measure):
                process = get_context("spawn").Process(target=work, args=(folder, count, held_out, orderings))
                process.start()
                process.join()
                if process.exitcode:
                    raise SystemExit(process.exitcode)


def _write(folder: Path, rows: int, held_out: int, orderings: int) -> None:
    """Write the rows that a stream looks for."""
    photos = ManyPhotos(rows, held_out)
    stream = FeatureStream(photos=photos, backbone=BackboneSpec("resnet50", "random"), cache_dir=str(folder))
    strategy = SimpleNamespace(root_device=torch.device("cpu"))
    stream.trainer = SimpleNamespace(strategy=strategy, precision="32-true")  # type: ignore[assignment]
    stream.spec, stream.backbone = build_chosen(stream.chosen, stream.seed, stream.device)
    began = time.perf_counter()
    for split in stream.read_splits():
        _write_rows(stream, split, folder)
    seconds = time.perf_counter() - began
    print(f"  rows drawn and written in {seconds:.0f} s", flush=True)

    for path in folder.rglob("*.safetensors"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            # The comparison has to read them from the disk.
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _write_rows(stream: FeatureStream, photos: Photos, folder: Path) -> None:
    """Write features of uniform noise in parts."""
    table, digests, generator = stream.request(photos).table(folder), pack(photos.digests()), np.random.default_rng(0)
    for first in range(0, len(digests), PART):
        part = digests[first : first + PART]
        with table.taken(part, wait=True):
            rows = generator.random((len(part), FEATURES), dtype=np.float32)
            table.write(part, rows, {"widths": [FEATURES], "weights": "0" * 64}, {})


def _measure(folder: Path, rows: int, held_out: int, orderings: int) -> None:
    """Run `headstart train`, and print what it took."""
    os.chdir(ROOT)
    seconds: Counter[str] = Counter()
    for owner, name in STAGES:
        patch.object(owner, name, _timing(getattr(owner, name), name, seconds)).start()

    options = {
        "config": "configs/demo.yaml",
        "data.photos": f"{__name__}.ManyPhotos",
        "data.photos.rows": rows,
        "data.photos.held_out": held_out,
        "data.backbone.name": "resnet50",
        "data.backbone.weights": "random",
        "data.orderings": orderings,
        "data.max_samples": 500,
        "data.batch_size": 50,
        "data.cache_dir": folder,
        "model.methods": "{mean: headstart.modules.NearestClassMean, replay: headstart.modules.Replay}",
        "criterion.evaluate_every": 10,
        "criterion.consecutive": 1,
        "trainer.accelerator": "cpu",
        "trainer.logger": "false",
        "trainer.default_root_dir": folder / "run",
    }

    peak, ended = [_own_megabytes()], Event()
    watcher = Thread(target=_watch, args=(peak, ended), daemon=True)
    watcher.start()
    whole, _ = timed(lambda: begin([f"--{name}={value}" for name, value in options.items()]).run())
    ended.set()
    watcher.join()

    read = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    stages = ", ".join(f"{name} {value:.1f}" for name, value in seconds.items())
    print(f"  own memory: {max(peak):.0f} MB at the peak, read from the disk: {int(read['read_bytes']) / 1e9:.2f} GB")
    print(f"  {whole:.0f} s: {stages}", flush=True)


def _timing(function: Callable[..., Any], name: str, seconds: Counter[str]) -> Callable[..., Any]:
    @wraps(function)
    def timing(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401
        start = time.perf_counter()
        try:
            return function(*arguments, **options)
        finally:
            seconds[name] += time.perf_counter() - start  # type: ignore[assignment]

    return timing


def _watch(peak: list[float], ended: Event) -> None:
    while not ended.wait(LOOK_EVERY):
        peak[0] = max(peak[0], _own_megabytes())


def _own_megabytes() -> float:
    """Return this process's private memory: without files that are mapped."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon")]
    return int(line.split()[1]) * 1024 / 1e6
