"""Stimuli: pictures from files that strangers may have had a hand in, and their embeddings as rows of the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from datamodules.photos.photo_source import Pictures, decode, digest_file
from datamodules.rows import PixelRows, Precision, pass_size
from modules.networks.layer_embedding import LayerEmbedding
from output.errors import UserError

# Formats whose decoders are part of Pillow; others hand the file to a program outside, as EPS does to Ghostscript.
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM")
MAX_PIXELS = 100_000_000
# The long side of a picture in terms of the short one: scaling the short side up makes the long one so much longer.
MAX_ASPECT = 100
# Pillow's modes of 32 bits per pixel, in which no value is known to mean white.
UNSCALED_MODES = ("I", "F")
SEED = 0


class Stimuli(Pictures):
    """Pictures in files, from any number of data sets.

    Args:
        names: What each stimulus is called in messages.
        paths: Their files.
    """

    def __init__(self, names: Sequence[str], paths: Sequence[Path]) -> None:
        self.names = names
        self.paths = paths

    def read(self, index: int) -> Image.Image:
        """Decode one stimulus.

        A picture of a common format is one, of at most 100 million pixels, of sides that are not more than 100 times
        as long as each other, and of 8 or 16 bits per channel.
        """
        return decode(self.paths[index], FORMATS, _check)

    def digest(self, index: int) -> str:
        """Digest the bytes of one file."""
        return digest_file(self.paths[index])


def _check(picture: Image.Image) -> None:
    size = f"{picture.width} x {picture.height} pixels"
    if picture.width * picture.height > MAX_PIXELS:
        msg = f"it has {size}, more than the {MAX_PIXELS:,} that are allowed"
        raise OSError(msg)
    if max(picture.size) > MAX_ASPECT * min(picture.size):
        msg = f"it has {size}; the long side may have at most {MAX_ASPECT} times as many as the short one"
        raise OSError(msg)
    if picture.mode in UNSCALED_MODES:
        kind = "floating-point" if picture.mode == "F" else "32-bit whole"
        msg = f"its pixels are {kind} numbers, of which none is white; save it as PNG with 8 or 16 bits per channel"
        raise OSError(msg)


class EmbeddingRows(PixelRows):
    """Embeddings of one model as rows, float32 `[stimuli, sum of the layers' widths]`.

    Every pass through the network has the same number of pictures, the last one filled up with black ones, and the
    same random numbers, so that a row does not depend on which stimuli it is computed with.

    Args:
        stimuli: The stimuli.
        model: The network with its layers, on the device where it is to run.
        precision: Arithmetic of the network.
        workers: Processes that decode; None for one per processor.
        notes: What is kept beside the rows.
    """

    def __init__(
        self,
        stimuli: Pictures,
        model: LayerEmbedding,
        precision: Precision,
        workers: int | None,
        notes: dict[str, Any],
    ) -> None:
        super().__init__(stimuli, model.preprocessing, workers, f"embeddings of {model.name}")
        self.model = model
        self.precision = precision
        self.device = model.device
        self.size = pass_size(self.preprocessing.crop, self.device)
        self.chunk = max(self.chunk, self.size)
        self.notes = notes

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Give the rows in chunks, with a progress bar and deterministic arithmetic."""
        self.done = 0
        cudnn = torch.backends.cudnn
        with cudnn.flags(enabled=cudnn.enabled, benchmark=False, deterministic=True, allow_tf32=False):
            yield from super().__iter__()

    def pass_over(self, name: str, reason: str) -> None:
        """Refuse a stimulus that cannot be decoded: a score without it would be another score."""
        msg = f"stimulus {name!r} cannot be decoded: {reason}"
        raise UserError(msg.replace("\n", " "))

    @torch.inference_mode()
    def convert(self, pixels: Tensor) -> NDArray[Any]:
        """Run the network on one chunk."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bfloat16"):
            rows = torch.cat([self._embed(part) for part in pixels.split(self.size)])
        finite = rows.isfinite().all(1)
        if not finite.all():
            name = self.photos.names[self.done + int(finite.logical_not().nonzero()[0])]
            msg = f"model {self.model.name!r} gives NaN or infinite embeddings, first for stimulus {name!r}"
            raise UserError(msg)
        self.done += len(rows)
        return rows.numpy()

    def _embed(self, pixels: Tensor) -> Tensor:
        count = len(pixels)
        if count < self.size:
            black = pixels.new_zeros(self.size - count, *pixels.shape[1:])
            pixels = torch.cat([pixels, black])
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(SEED)
            rows: Tensor = self.model(pixels.to(self.device))
        return rows[:count].float().cpu()
