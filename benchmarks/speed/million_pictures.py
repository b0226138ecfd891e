"""The cost of the suite for each of very many pictures: from tar shards to stored and exported features."""

import io
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import nn

from headstart.datamodules.row_request import pass_size

SIDE, SHARD = 8, 10_000
# Pictures of a command that mostly starts and ends, of which every worker gets some.
FEW = 8_000
PERIOD = 0.1
LOOPS = 3


# A network that costs next to nothing: four mean colours, and a classifier that is not used.
STUB = """from torch import nn


class Stub(nn.Module):
    def __init__(self):
        super().__init__()
        self.fields = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(3, 4, 1), nn.Flatten())
        self.classifier = nn.Linear(4, 2)

    def forward(self, images):
        return self.classifier(self.fields(images))
"""


class Cost(NamedTuple):
    """The resources that a command or a loop took.

    Attributes:
        wall: Seconds.
        processor: Processor time of all its processes.
        memory: Most memory of its own, in megabytes; processes that it starts do not count.
        mapped: The same with pages of the files that it maps, which the system takes back when it needs memory.
    """

    wall: float
    processor: float
    memory: float = 0.0
    mapped: float = 0.0


def main(
    counts: list[int] = [10_000, 100_000, 1_000_000],  # noqa: B006
    workers: list[int] = [1, 2],  # noqa: B006
    repeats: int = 1,
) -> None:
    """Measure the command and a bare loop over like pictures, and print processor time, wall time and memory.

    A worker is one process, which decodes as well. The time to start and end is mostly that of importing torch in each
    process. It is that of a command with few pictures, and is shown separately.

    Args:
        counts: Numbers of pictures.
        workers: Numbers of worker processes.
        repeats: How often everything is measured; the least time counts.
    """
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "stub_network.py").write_text(STUB)
        bare = _write_shards(folder / "bare", FEW)
        _compare_bare_loops(bare, max(workers))
        few, start = _write_shards(folder / "few", FEW), {}
        for number in workers:
            start[number] = _least(few, number, repeats)
            print(f"start and end with {number} workers: {_describe(start[number])}", flush=True)

        before: dict[int, float] = {}
        for count in counts:
            shards, walls = _write_shards(folder / f"{count}", count), {}
            for number in workers:
                around = [_bare(bare)]
                cost = _least(shards, number, repeats)
                around.append(_bare(bare))
                walls[number], each = cost.wall, (cost.processor - start[number].processor) / (count - FEW)
                more = each - sum(loop.processor for loop in around) / (2 * FEW)
                ratio = f", {each / before[number]:.2f} of those before" if number in before else ""
                print(
                    f"{count:,} pictures, {number} workers: {_describe(cost)}; without start {1e6 * each:.1f} us of "
                    f"processor time a picture{ratio}, {1e6 * more:.1f} us more than a bare loop before and after it",
                    flush=True,
                )
                before[number] = each
            if len(walls) > 1:
                print(f"  {max(walls)} workers take {walls[max(walls)] / walls[min(walls)]:.2f} of the time of one")


def _compare_bare_loops(shards: Path, most: int) -> None:
    """Print the processor time of a bare loop, and what this machine gains by several at a time."""
    with ProcessPoolExecutor(most, get_context("spawn")) as pool:
        list(pool.map(_bare, [shards] * most))
        alone = [_bare(shards) for _ in range(LOOPS)]
        together = [max(cost.wall for cost in pool.map(_bare, [shards] * most)) for _ in range(LOOPS)]
    least, share = min(cost.processor for cost in alone), min(together) / (most * min(cost.wall for cost in alone))
    print(f"bare loop: {1e6 * least / FEW:.1f} us of processor time a picture (read, Pillow, NumPy, network)")
    print(f"{most} bare loops at a time take {share:.2f} of the time of one after the other")


def _describe(cost: Cost) -> str:
    return (
        f"{cost.wall:.1f} s, {cost.processor:.1f} s of processor time, driver {cost.memory:.0f} MB "
        f"({cost.mapped:.0f} with files)"
    )


def _least(shards: Path, workers: int, repeats: int) -> Cost:
    """Return the least times and the most memory of a command that is run several times."""
    costs = []
    for _ in range(repeats):
        with TemporaryDirectory(dir=shards.parent) as name:
            costs.append(_command(shards, Path(name) / "cache", workers, Path(name) / "features.parquet"))
    walls, processors, *memories = zip(*costs, strict=True)
    return Cost(min(walls), min(processors), *map(max, memories))


def _write_shards(folder: Path, count: int) -> Path:
    """Write distinct small PNG pictures into tar shards, two classes in turn."""
    folder.mkdir(parents=True)
    generator = np.random.default_rng(0)
    for first in range(0, count, SHARD):
        pixels = generator.integers(0, 256, (min(SHARD, count - first), SIDE, SIDE, 3), np.uint8)
        with tarfile.open(folder / f"shard-{first // SHARD:06}.tar", "w") as shard:
            for index, picture in enumerate(pixels, first):
                content = io.BytesIO()
                Image.fromarray(picture).save(content, "png", compress_level=0)
                for suffix, data in (("png", content.getvalue()), ("cls", str(index % 2).encode())):
                    member = tarfile.TarInfo(f"{index:08}.{suffix}")
                    member.size = len(data)
                    shard.addfile(member, io.BytesIO(data))
    return folder


@torch.inference_mode()
def _bare(folder: Path) -> Cost:
    """Return the times of a loop that reads and decodes pictures and runs the network on them."""
    network, size = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(3, 4, 1), nn.Flatten()), pass_size(SIDE, "cpu")
    torch.set_num_threads(1)
    found = []
    for path in sorted(folder.glob("*.tar")):
        with tarfile.open(path) as shard:
            found.append((path, [(each.offset_data, each.size) for each in shard if each.name.endswith(".png")]))

    clocks: list[Callable[[], float]] = [time.perf_counter, time.process_time]
    began, waiting = [clock() for clock in clocks], []
    for path, pictures in found:
        with path.open("rb") as file:
            for offset, length in pictures:
                content = os.pread(file.fileno(), length, offset)
                waiting.append(np.asarray(Image.open(io.BytesIO(content)).convert("RGB")))
                if len(waiting) == size:
                    _run(network, waiting)
                    waiting = []
    if waiting:
        _run(network, waiting)
    return Cost(*(clock() - before for clock, before in zip(clocks, began, strict=True)))


def _run(network: nn.Module, pictures: list[NDArray[np.uint8]]) -> None:
    network(torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2) / 255)


def _command(shards: Path, cache: Path, workers: int, export: Path) -> Cost:
    """Run the command."""
    command = [sys.executable, "-m", "headstart", "embed", str(shards / "*.tar")]
    command += ["--backbone.name=stub_network.Stub", "--backbone.weights=random"]
    command += [f"--backbone.preprocessing.resize={SIDE}", f"--backbone.preprocessing.crop={SIDE}"]
    command += [f"--workers={workers}", "--num_workers=0", f"--cache_dir={cache}", f"--export={export}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(shards.parent)}
    before, began, own, mapped = os.times(), time.monotonic(), 0.0, 0.0
    with (shards.parent / "output.txt").open("w+") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        while process.poll() is None:
            own, mapped = max(own, _memory(process.pid, "RssAnon")), max(mapped, _memory(process.pid, "VmRSS"))
            time.sleep(PERIOD)
        if process.returncode:
            output.seek(0)
            raise SystemExit(f"{' '.join(command)} ended with code {process.returncode}: {output.read()}")
    # Workers without processes of their own count, also killed ones: the command waits for each.
    seconds, after = time.monotonic() - began, os.times()
    processor = after.children_user - before.children_user + after.children_system - before.children_system
    return Cost(seconds, processor, own, mapped)


def _memory(process: int, kind: str) -> float:
    """Return the megabytes of memory of a process, of a kind in Linux's `/proc/PID/status`."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1000 for line in lines if line.startswith(kind)), 0.0)
