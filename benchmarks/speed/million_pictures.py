"""What the suite costs for each of very many pictures: from tar shards to stored and exported features."""

import io
import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import nn

from headstart.datamodules.photos.picture_decoding import decode
from headstart.datamodules.row_policy import pass_size
from headstart.modules.networks.preprocessing import Preprocessing

SIDE, SHARD = 8, 10_000
SMALL = Preprocessing(resize=SIDE, crop=SIDE)
PERIOD = 0.1


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


def main(counts: list[int] = [10_000, 100_000, 1_000_000], workers: list[int] = [1, 2]) -> None:  # noqa: B006
    """Measure the command and a bare loop over the same pictures, and print processor time, wall time and memory.

    Args:
        counts: Numbers of pictures.
        workers: Numbers of worker processes.
    """
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "stub_network.py").write_text(STUB)
        bare = _bare(_write_shards(folder / "bare", counts[0])) / counts[0]
        print(f"bare loop: {1e6 * bare:.1f} us of processor time a picture (read, decode, prepare, network)")
        for count in counts:
            shards, walls = _write_shards(folder / f"{count}", count), {}
            for number in workers:
                cache = folder / f"cache-{count}-{number}"
                wall, processor, memory = _command(shards, cache, number, folder / f"features-{count}-{number}")
                walls[number] = wall
                overhead = 1e6 * (processor / count - bare)
                print(
                    f"{count:,} pictures, {number} workers: {wall:.1f} s, {1e6 * processor / count:.1f} us of CPU "
                    f"time a picture, {overhead:.1f} us more than the bare loop; driver {memory:.0f} MB",
                    flush=True,
                )
            if len(walls) > 1:
                print(f"  {max(walls)} workers take {walls[max(walls)] / walls[min(walls)]:.2f} of the time of one")


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
def _bare(folder: Path) -> float:
    """Return the processor time of a loop that reads, decodes and prepares pictures and runs the network on them."""
    network, size = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(3, 4, 1), nn.Flatten()), pass_size(SIDE, "cpu")
    torch.set_num_threads(1)
    began, waiting = time.process_time(), []
    for path in sorted(folder.glob("*.tar")):
        with tarfile.open(path) as shard:
            for member in shard:
                if member.name.endswith(".png"):
                    file = shard.extractfile(member)
                    assert file is not None
                    waiting.append(SMALL.prepare(decode(io.BytesIO(file.read()))))
                if len(waiting) == size:
                    _run(network, waiting)
                    waiting = []
    if waiting:
        _run(network, waiting)
    return time.process_time() - began


def _run(network: nn.Module, pictures: list[NDArray[np.uint8]]) -> None:
    network(torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2) / 255)


def _command(shards: Path, cache: Path, workers: int, export: Path) -> tuple[float, float, float]:
    """Run the command; return seconds, processor time of all its processes, and megabytes of its own memory."""
    command = [sys.executable, "-m", "headstart", "embed", str(shards / "*.tar")]
    command += ["--backbone.name=stub_network.Stub", "--backbone.weights=random"]
    command += [f"--backbone.preprocessing.resize={SIDE}", f"--backbone.preprocessing.crop={SIDE}"]
    command += [f"--workers={workers}", f"--cache_dir={cache}", f"--export={export}"]
    before, began, most = os.times(), time.monotonic(), 0.0
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(shards.parent)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    while process.poll() is None:
        most = max(most, _own_memory(process.pid))
        time.sleep(PERIOD)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with code {process.returncode}")
    seconds, after = time.monotonic() - began, os.times()
    processor = after.children_user - before.children_user + after.children_system - before.children_system
    return seconds, processor, most


def _own_memory(process: int) -> float:
    """Return the megabytes of memory that a process uses, of files that it maps as well."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1000 for line in lines if line.startswith("VmRSS")), 0.0)
