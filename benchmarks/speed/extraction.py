"""Feature extraction from JPEG files against the bare network on pictures in memory."""

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path

import torch

from headstart.benchmarks.speed.decoding import PREPROCESSING, jpeg_files
from headstart.benchmarks.speed.frame import PHOTOS, WEIGHTS, compare, ratios
from headstart.datamodules.row_computation import FrozenNetwork, RowComputer, best_precision, load
from headstart.datamodules.row_request import Policy, pass_size
from headstart.modules import BackboneSpec

WORKERS = 2


def main(
    photos: str = PHOTOS,
    weights: str = WEIGHTS,
    network: str = "mobilenet_v2",
    count: int = 1000,
    busy: int = 0,
    repeats: int = 3,
) -> dict[str, float]:
    """Measure both in turn, on a processor also in two processes of one thread each, and print their times.

    Args:
        photos: Folder whose JPEG files are used.
        weights: Weights of the network, or `random`.
        network: The network.
        count: Photos in each measurement. Files are used again where there are fewer.
        busy: Other processes that keep a processor busy each.
        repeats: Measurements of each, of which the median counts.

    Returns:
        The time of each over that of the network alone.
    """
    spawning = multiprocessing.get_context("spawn")
    for _ in range(busy):
        spawning.Process(target=_keep_busy, daemon=True).start()

    indices = [index % len(jpeg_files(Path(photos))) for index in range(count)]
    halves = [indices[first::WORKERS] for first in range(WORKERS)]
    # A worker has one core, on which it decodes, too.
    from_files, in_worker = (partial(_extract, photos, weights, network, workers) for workers in (None, 0))
    alone = partial(_run_alone, weights, network)
    print(f"{count} photos, {network}, {Policy().kind}, {torch.get_num_threads()} threads", flush=True)

    with ProcessPoolExecutor(WORKERS, spawning, torch.set_num_threads, (1,)) as pool:
        functions: dict[str, Callable[[], object]] = {
            "from JPEG files": lambda: from_files(indices),
            "network alone": lambda: alone(indices),
        }
        if Policy().kind == "cpu":
            functions |= {
                "from JPEG files, two workers": lambda: list(pool.map(in_worker, halves)),
                "network alone, two workers": lambda: list(pool.map(alone, halves)),
            }
        for function in functions.values():
            function()
        seconds = compare(functions, "network alone", repeats)
    print(", ".join(f"{name} {count / each:.0f} pictures a second" for name, each in seconds.items()))
    return ratios(seconds, "network alone")


def _extract(photos: str, weights: str, network: str, workers: int | None, indices: Sequence[int]) -> None:
    frozen, policy = _load(weights, network)
    computer = RowComputer(jpeg_files(Path(photos)), PREPROCESSING, policy.precision, workers, frozen)
    computer.compute(indices)


@torch.inference_mode()
def _run_alone(weights: str, network: str, indices: Sequence[int]) -> None:
    """Run the network as often as for these pictures, on pictures in its memory."""
    frozen, policy = _load(weights, network)
    size = pass_size(PREPROCESSING.crop, frozen.device.type)
    pictures = torch.randint(0, 256, (size, 3, 224, 224), dtype=torch.uint8, device=frozen.device)
    with torch.autocast(frozen.device.type, torch.bfloat16, enabled=policy.precision == "bfloat16"):
        for _ in range(len(indices) // size):
            frozen.network(pictures).cpu()


@cache
def _load(weights: str, network: str) -> tuple[FrozenNetwork, Policy]:
    policy = Policy(best_precision(torch.device(Policy().kind)), folded=True)
    spec = BackboneSpec(network, weights=weights, preprocessing=PREPROCESSING).network(0)
    return load(spec, [], policy), policy


def _keep_busy() -> None:
    while True:
        pass
