"""Feature extraction from JPEG files against the bare network on pictures in memory."""

import multiprocessing
from pathlib import Path

import torch

from headstart.benchmarks.speed.frame import PHOTOS, WEIGHTS, compare
from headstart.datamodules import CatsAndDogs
from headstart.datamodules.row_computation import ComputedRows, best_precision, load
from headstart.datamodules.row_policy import Policy, Resources, pass_size
from headstart.modules import BackboneSpec, Preprocessing


def main(photos: str = PHOTOS, weights: str = WEIGHTS, count: int = 1000, busy: int = 0) -> None:
    """Measure both in turn, and print their times.

    Args:
        photos: Folder of cats and dogs.
        weights: Weights of MobileNetV2.
        count: Photos in each measurement.
        busy: Other processes that keep a processor busy each.
    """
    for _ in range(busy):
        multiprocessing.get_context("spawn").Process(target=_keep_busy, daemon=True).start()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    precision = best_precision(device)
    policy, resources = Policy(precision, folded=True), Resources(Path(), "extraction")
    frozen = load(BackboneSpec(weights=weights, preprocessing=Preprocessing()).network(0), [], policy)
    train = CatsAndDogs(photos).train()
    indices = torch.randperm(2000, generator=torch.Generator().manual_seed(0))[:count].tolist()
    size = pass_size(Preprocessing.crop, device.type)
    pictures = torch.randint(0, 256, (size, 3, 224, 224), dtype=torch.uint8, device=device)

    @torch.inference_mode()
    def network_alone() -> None:
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
            for _ in range(count // size):
                frozen.network(pictures).cpu()

    def extract() -> int:
        return sum(map(len, ComputedRows(train, indices, Preprocessing(), policy, resources, frozen)))

    network_alone()
    print(f"{count} photos, {device.type}, {precision}")
    seconds = compare({"from JPEG files": extract, "network alone": network_alone}, "network alone")
    print(", ".join(f"{name} {count / each:.0f} samples per second" for name, each in seconds.items()))


def _keep_busy() -> None:
    while True:
        pass
