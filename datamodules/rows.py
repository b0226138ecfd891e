"""From photos to rows of the store: prepared pixels, or features of a frozen backbone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal

import torch
from numpy.typing import NDArray
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Task as ProgressTask
from rich.text import Text
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from datamodules.photos.photo_source import Photos, Pictures
from modules.networks.backbone import Backbone
from modules.networks.preprocessing import Preprocessing

Precision = Literal["float32", "bfloat16"]
# Pixels of one pass through a backbone. On a processor, activations of larger passes exceed the size above which the
# allocator hands memory back to the system, and page faults then take half of the time.
PASS_PIXELS = {"cpu": 4 * 224**2}
PASS_PIXELS_ELSEWHERE = 256 * 224**2
UNREADABLE = "unreadable"


def best_precision(device: torch.device) -> Precision:
    """Choose the precision in which a device runs a frozen backbone fastest.

    Args:
        device: Where the backbone runs.

    Returns:
        bfloat16 on a GPU of NVIDIA's Ampere generation or newer and on a processor with matrix instructions for
        it (AMX), else float32: elsewhere bfloat16 is emulated and slower.
    """
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.get_device_capability(device) >= (8, 0) else "float32"
    return "bfloat16" if device.type == "cpu" and torch.cpu.get_capabilities().get("amx_bf16") else "float32"


def pass_size(side: int, device: torch.device) -> int:
    """Choose how many pictures go through a backbone at once.

    Args:
        side: Side of the pictures in pixels.
        device: Where the backbone runs.

    Returns:
        A number of pictures, 1 or more.
    """
    return max(1, PASS_PIXELS.get(device.type, PASS_PIXELS_ELSEWHERE) // side**2)


class PreparedPhotos(Dataset[tuple[int, Tensor, str]]):
    """Photos decoded, resized and cropped, as bytes; what the loader's workers run.

    Args:
        photos: The photos.
        preprocessing: Size and interpolation.
    """

    def __init__(self, photos: Pictures, preprocessing: Preprocessing) -> None:
        self.photos = photos
        self.preprocessing = preprocessing

    def __len__(self) -> int:
        """Give the number of photos."""
        return len(self.photos)

    def __getitem__(self, index: int) -> tuple[int, Tensor, str]:
        """Give the place, the pixels `[3, crop, crop]`, and why they are black if the photo is unreadable."""
        try:
            return index, self.preprocessing.prepare(self.photos.read(index)), ""
        except (OSError, MemoryError) as error:
            side = self.preprocessing.crop
            reason = "memory does not suffice for it" if isinstance(error, MemoryError) else str(error)
            return index, torch.zeros(3, side, side, dtype=torch.uint8), reason or type(error).__name__


def _collate(samples: list[tuple[int, Tensor, str]]) -> tuple[list[int], Tensor, list[str]]:
    """Stack photos in the channels-last layout, in which they are decoded and in which backbones take them."""
    places, pixels, reasons = zip(*samples, strict=True)
    return list(places), torch.stack([p.permute(1, 2, 0) for p in pixels]).permute(0, 3, 1, 2), list(reasons)


class PixelRows:
    """Prepared photos as rows, uint8 `[samples, 3, crop, crop]`.

    Decoding runs in processes of its own and ahead of what takes the rows. Unreadable photos are noted by name
    and leave a black row.

    Args:
        photos: The photos.
        preprocessing: Size and interpolation.
        workers: Processes that decode; None for one per processor.
        title: What the progress bar says.
    """

    def __init__(self, photos: Pictures, preprocessing: Preprocessing, workers: int | None, title: str) -> None:
        self.photos = photos
        self.preprocessing = preprocessing
        self.workers = (os.cpu_count() or 1) if workers is None else workers
        self.title = title
        self.chunk = 64
        self.notes: dict[str, Any] = {UNREADABLE: {}}

    def __len__(self) -> int:
        """Give the number of photos."""
        return len(self.photos)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Give the rows in chunks, with a progress bar."""
        loader = DataLoader(
            PreparedPhotos(self.photos, self.preprocessing),
            self.chunk,
            num_workers=self.workers,
            collate_fn=_collate,
            prefetch_factor=4 if self.workers else None,
        )
        with _progress() as progress:
            task = progress.add_task(self.title, total=len(self))
            for places, pixels, reasons in loader:
                for place, reason in zip(places, reasons, strict=True):
                    if reason:
                        self.pass_over(self.photos.names[place], reason)
                yield self.convert(pixels)
                progress.advance(task, len(pixels))

    def pass_over(self, name: str, reason: str) -> None:
        """Note an unreadable photo, whose row is black."""
        self.notes[UNREADABLE][name] = reason

    def convert(self, pixels: Tensor) -> NDArray[Any]:
        """Turn prepared photos into rows; here they are the rows."""
        return pixels.numpy()


class FeatureRows(PixelRows):
    """Features of a frozen backbone as rows, float32 `[samples, features]`.

    Args:
        photos: The photos.
        backbone: The backbone, on the device where it is to run.
        precision: Arithmetic of the backbone.
        workers: Processes that decode; None for one per processor.
        title: What the progress bar says.
    """

    def __init__(
        self, photos: Photos, backbone: Backbone, precision: Precision, workers: int | None, title: str
    ) -> None:
        super().__init__(photos, backbone.preprocessing, workers, title)
        self.backbone = backbone
        self.precision = precision
        self.device = next(backbone.parameters()).device
        self.chunk = max(self.chunk, pass_size(self.preprocessing.crop, self.device))

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Give the features in chunks, with a progress bar; float32 is meant in full, without TensorFloat-32."""
        torch.backends.cudnn.allow_tf32 = False
        return super().__iter__()

    @torch.inference_mode()
    def convert(self, pixels: Tensor) -> NDArray[Any]:
        """Run the backbone on one chunk."""
        size = pass_size(self.preprocessing.crop, self.device)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bfloat16"):
            features = [self.folded(part.to(self.device)).float().cpu() for part in pixels.split(size)]
        return torch.cat(features).numpy()

    @cached_property
    def folded(self) -> Backbone:
        """The backbone as it runs; made when the first rows are computed, since most runs find theirs stored."""
        return self.backbone.folded()


class _SpeedColumn(ProgressColumn):
    def render(self, task: ProgressTask) -> Text:
        return Text(f"{task.speed or 0:.0f} samples/s")


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _SpeedColumn(), TimeRemainingColumn()
    )
