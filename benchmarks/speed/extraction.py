"""Feature extraction from JPEG files against the bare network on pictures in memory."""

from __future__ import annotations

import multiprocessing
import statistics
from pathlib import Path

import jsonargparse
import torch

from headstart.benchmarks.speed.frame import timed
from headstart.datamodules import CatsAndDogs
from headstart.datamodules.row_computation import ComputedRows, FrozenNetwork, best_precision, load
from headstart.datamodules.row_policy import Policy, Precision, Resources, pass_size
from headstart.modules import BackboneSpec, Preprocessing

REPEATS = 3


def main(
    photos: str = "../shared/data/cats_and_dogs",
    weights: str = "../shared/weights/mobilenet_v2_imagenet.safetensors",
    count: int = 1000,
    busy: int = 0,
) -> None:
    """Measure both in turn, and print samples per second and the share that extraction reaches.

    Args:
        photos: Folder of cats and dogs.
        weights: Weights of MobileNetV2.
        count: Photos in each measurement.
        busy: Other processes that keep a processor busy each.
    """
    beside = [multiprocessing.get_context("spawn").Process(target=_keep_busy, daemon=True) for _ in range(busy)]
    for process in beside:
        process.start()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    precision = best_precision(device)
    policy, resources = Policy(precision, folded=True), Resources(Path(), "extraction")
    spec = BackboneSpec(weights=weights, preprocessing=Preprocessing()).network(0)
    frozen = load(spec, [], policy)
    train = CatsAndDogs(photos).train()
    chosen = torch.randperm(2000, generator=torch.Generator().manual_seed(0))[:count].tolist()
    size = pass_size(Preprocessing.crop, device.type)

    bare, whole = [], []
    for _ in range(REPEATS):
        pictures = torch.randint(0, 256, (size, 3, 224, 224), dtype=torch.uint8, device=device)
        bare.append(_bare(frozen, precision, pictures, count))
        rows = ComputedRows(train, chosen, Preprocessing(), policy, resources, frozen)
        seconds, done = timed(lambda: sum(len(chunk) for chunk in rows))  # noqa: B023
        whole.append(done / seconds)

    one, other = statistics.median(bare), statistics.median(whole)
    print(
        f"{device.type}, {precision}: network alone {one:.0f}/s, from JPEG files {other:.0f}/s, share {other / one:.0%}"
    )


def _keep_busy() -> None:
    while True:
        pass


@torch.inference_mode()
def _bare(frozen: FrozenNetwork, precision: Precision, pictures: torch.Tensor, count: int) -> float:
    with torch.autocast(frozen.device.type, torch.bfloat16, enabled=precision == "bfloat16"):
        frozen.network(pictures).cpu()
        passes = max(1, count // len(pictures))
        seconds, _ = timed(lambda: [frozen.network(pictures).cpu() for _ in range(passes)])
        return passes * len(pictures) / seconds


if __name__ == "__main__":
    jsonargparse.auto_cli(main)
