"""How fast photos are decoded and resized, and how many cores a device of a given rate needs for that."""

import io
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torchvision.io import decode_jpeg

from headstart.benchmarks.speed.frame import PHOTOS, timed
from headstart.datamodules.decoding import Decoder
from headstart.datamodules.photos.photo_source import PhotoFiles
from headstart.datamodules.photos.picture_decoding import decode
from headstart.datamodules.row_computation import CHUNK
from headstart.modules import Preprocessing
from headstart.output.processors import count_processors

PREPROCESSING = Preprocessing()
# Usual size of photos of ImageNet.
LARGE, QUALITY = (500, 375), 96
STEPS = 200


class PacedDevice(nn.Module):
    """A stand-in for a device: it takes pictures at a fixed rate and no processor time.

    Args:
        rate: Pictures a second.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.free_at = 0.0

    def forward(self, pixels: Tensor) -> Tensor:
        """Wait as long as the device would be busy, and return zeros `[pictures, 1]`."""
        now = time.perf_counter()
        self.free_at = max(now, self.free_at) + len(pixels) / self.rate
        time.sleep(self.free_at - now)
        return torch.zeros(len(pixels), 1)


def main(
    photos: str = PHOTOS,
    count: int = 1000,
    rates: Sequence[float] = (200, 800, 3200),
    processes: Sequence[int] | None = None,
    large: bool = False,
) -> None:
    """Print the seconds of each step on one core, then the speed from files by rate of a device and processes.

    Let `seconds` be the time to decode and prepare one picture. A device that takes `rate` pictures a second then needs
    `rate * seconds` cores.

    Args:
        photos: Folder whose JPEG files are used.
        count: Photos in each measurement. Files are used again where there are fewer.
        rates: Pictures a second that the device takes.
        processes: Numbers of decoding processes; by default 1, 2, 4 and so on up to the processors of the machine.
        large: Whether the photos are scaled to 500 x 375 pixels first.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = enlarge(Path(photos), Path(folder)) if large else jpeg_files(Path(photos))
        seconds = _measure_steps([files.open(index).read() for index in range(min(len(files), STEPS))])
        if torch.cuda.is_available():
            _compare_with_nvjpeg([files.open(index).read() for index in range(min(len(files), STEPS))])

        powers = [2**k for k in range(count_processors().bit_length())]
        for rate in rates:
            print(f"a device of {rate:g} pictures a second needs {rate * seconds:.2f} cores", flush=True)
            for number in processes or powers:
                measured = count / timed(lambda: _extract(files, count, rate, number))[0]  # noqa: B023
                print(f"  {number} decoding processes: {measured:.0f} pictures a second", flush=True)


def jpeg_files(folder: Path) -> PhotoFiles:
    """List all JPEG files of a folder and of the folders in it."""
    names = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*.jpg"))]
    return PhotoFiles(folder, names, [0] * len(names), ["any"])


def enlarge(source: Path, target: Path) -> PhotoFiles:
    """Write the JPEG files of a folder to another one, in the size of those of ImageNet."""
    photos = jpeg_files(source)
    for index in range(min(len(photos), 500)):
        photos.read(index).resize(LARGE).save(target / f"{index}.jpg", quality=QUALITY)
    return jpeg_files(target)


def _measure_steps(contents: Sequence[bytes]) -> float:
    """Print what each step takes; return the processor seconds of decoding and preparing one picture."""
    pictures = [decode(io.BytesIO(content)) for content in contents]
    sizes = np.mean([picture.size for picture in pictures], 0)
    kilobytes = np.mean([len(content) for content in contents]) / 1000
    print(f"{len(contents)} photos of {sizes[0]:.0f} x {sizes[1]:.0f} pixels and {kilobytes:.0f} KB on average")

    steps = {
        "decode": lambda: [decode(io.BytesIO(content)) for content in contents],
        "resize and crop": lambda: [PREPROCESSING.prepare(picture) for picture in pictures],
        "decode by torchvision.io, which is not used": lambda: [
            decode_jpeg(torch.frombuffer(bytearray(content), dtype=torch.uint8)) for content in contents
        ],
    }
    seconds = {
        name: min(timed(step, time.process_time)[0] for _ in range(3)) / len(contents) for name, step in steps.items()
    }
    for name, each in seconds.items():
        print(f"{name}: {each * 1e3:.2f} ms, {1 / each:.0f} pictures a second and core")
    return seconds["decode"] + seconds["resize and crop"]


def _compare_with_nvjpeg(contents: Sequence[bytes]) -> None:
    """Print how fast the GPU decodes, and by how much its pixels differ."""
    encoded = [torch.frombuffer(bytearray(content), dtype=torch.uint8) for content in contents]
    mine = [np.asarray(decode(io.BytesIO(content)), np.int16) for content in contents]

    def decode_all() -> list[Tensor]:
        decoded: list[Tensor] = decode_jpeg(encoded, device="cuda")
        torch.cuda.synchronize()
        return decoded

    theirs = [each.permute(1, 2, 0).cpu().numpy() for each in decode_all()]
    alike = [pair for pair in zip(mine, theirs, strict=True) if pair[0].shape == pair[1].shape]
    differences = np.concatenate([abs(a - b).ravel() for a, b in alike])
    seconds = min(timed(decode_all)[0] for _ in range(3)) / len(contents)
    print(
        f"nvJPEG, which is not used: {1 / seconds:.0f} pictures a second; {np.mean(differences > 0):.1%} of its values "
        f"differ, by {differences.max()} at most"
    )


def _extract(files: PhotoFiles, count: int, rate: float, processes: int) -> None:
    """Compute rows with a stand-in for a device."""
    decoder, device = Decoder(files, PREPROCESSING, processes, CHUNK, ahead=True), PacedDevice(rate)
    for pixels, _ in decoder.decode([index % len(files) for index in range(count)], torch.device("cpu")):
        device(pixels)
