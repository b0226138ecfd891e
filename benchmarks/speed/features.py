"""Features of photos."""

import io
import tarfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

from headstart.benchmarks.frame import SHARED, compare, run, temporary_folder, timed
from headstart.datamodules.chosen_backbone import build_chosen
from headstart.datamodules.embedding import embed
from headstart.datamodules.photos.picture_decoding import decode
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.preprocessing import Preprocessing

PHOTOS, BATCH = 256, 32
# Tiny pictures in all, in a shard, and their side in pixels.
MANY, SHARD, SIDE = 100_000, 10_000, 8
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
WEIGHTS = SHARED / "weights/mobilenet_v2_imagenet.safetensors"


def write_photos(folder: Path, count: int = PHOTOS) -> None:
    """Write so many JPEG files of cats and dogs; bytes behind the end of a picture tell copies apart."""
    files = sorted((SHARED / "data/cats_and_dogs").rglob("*.jpg"))
    folder.mkdir()
    for index in range(count):
        content = files[index % len(files)].read_bytes()
        (folder / f"{index}.jpg").write_bytes(content + index.to_bytes(4, "big"))


def extraction() -> str:
    """How long do features of JPEG files take, over a plain loop of the network on pictures in memory?"""
    with temporary_folder() as folder:
        write_photos(folder / "photos")
        found = compare({"bare": _bare_network(), "embed": partial(_embed, folder)}, repeats=1)
    return f"{found['embed']:.2f} times the time"


def workers() -> str:
    """What do two workers of one thread save over one, start-up included?"""
    with temporary_folder() as folder:
        write_photos(folder / "photos", 2 * PHOTOS)
        ways = {number: partial(_embed_by_command, folder, number) for number in ("2", "1")}
        found = compare(ways, repeats=1)
    return f"one takes {found['1']:.1f} times as long"


def many_pictures() -> str:
    """How long do 100,000 tiny pictures in tar shards take with two workers, and how much memory the command itself?"""
    with temporary_folder() as folder:
        (folder / "stub_network.py").write_text(STUB)
        _write_shards(folder / "shards", MANY)
        return str(
            run(
                "-m",
                "headstart",
                "embed",
                str(folder / "shards" / "*.tar"),
                "--backbone.name=stub_network.Stub",
                "--backbone.weights=random",
                f"--backbone.preprocessing.resize={SIDE}",
                f"--backbone.preprocessing.crop={SIDE}",
                "--workers=2",
                "--num_workers=0",
                f"--export={folder / 'features.parquet'}",
                cache=folder / "cache",
                OMP_NUM_THREADS="1",
                PYTHONPATH=str(folder),
            )
        )


def decoding() -> str:
    """How long does a photo of about 300 x 270 pixels take to decode and prepare, on one core?"""
    contents = [path.read_bytes() for path in sorted((SHARED / "data/cats_and_dogs").rglob("*.jpg"))[:200]]
    preprocessing = Preprocessing()
    seconds = timed(lambda: [preprocessing.prepare(decode(io.BytesIO(each))) for each in contents], time.process_time)
    return f"{1000 * seconds / len(contents):.1f} ms"


def _write_shards(folder: Path, count: int) -> None:
    """Write distinct small PNG pictures into tar shards, two classes in turn."""
    folder.mkdir()
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


def _bare_network() -> partial[None]:
    """Return what runs the network as often as for all photos, on one batch in memory."""
    _, backbone = build_chosen(BackboneSpec("mobilenet_v2", str(WEIGHTS)), 0, torch.device("cpu"))
    batch = torch.rand(BATCH, 3, 224, 224)

    def forward(network: nn.Module) -> None:
        with torch.inference_mode():
            for _ in range(0, PHOTOS, BATCH):
                network(batch)

    return partial(forward, backbone)


def _embed(folder: Path) -> None:
    with temporary_folder() as cache:
        embed(str(folder / "photos"), BackboneSpec("mobilenet_v2", str(WEIGHTS)), cache_dir=str(cache))


def _embed_by_command(folder: Path, number: str) -> None:
    with temporary_folder() as cache:
        run(
            "-m",
            "headstart",
            "embed",
            str(folder / "photos"),
            "--backbone.name=mobilenet_v2",
            f"--backbone.weights={WEIGHTS.resolve()}",
            f"--workers={number}",
            f"--export={cache / 'rows.npz'}",
            cache=cache,
            OMP_NUM_THREADS="1",
        )


BENCHMARKS = (extraction, workers, many_pictures, decoding)
