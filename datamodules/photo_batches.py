"""Labelled photos in batches, epoch by epoch, as plain training takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from jsonargparse.typing import PositiveInt
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from headstart.datamodules.draws import draw_epoch
from headstart.datamodules.held_samples import hold
from headstart.datamodules.photo_data import PhotoData
from headstart.datamodules.photos.duplicates import find_duplicates, require_none
from headstart.datamodules.photos.photo_source import Photos, Pictures
from headstart.datamodules.row_policy import Resources
from headstart.datamodules.rows import label_maps, pixels
from headstart.modules.arithmetic import settle_arithmetic
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.output.errors import prefix_errors
from headstart.store.cache import cache_folder
from headstart.store.row_store import StoredRows

# Samples in one step of an evaluation, or pixels where each has a class.
VALIDATED_AT_ONCE = 250
PIXELS_AT_ONCE = 2**20


class EpochBatches(Sampler[Tensor]):
    """Places of the samples in batches, in an order that the seed and the number of the epoch decide.

    A single sample that is left over joins the batch before: batch norm cannot be trained on it alone.

    Args:
        samples: Number of samples.
        batch_size: Samples in a batch.
        seed: Seed of the orders.
    """

    def __init__(self, samples: int, batch_size: int, seed: int) -> None:
        self.samples, self.batch_size, self.seed = samples, batch_size, seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Take the number of the epoch, which Lightning tells before it begins."""
        self.epoch = epoch

    def __len__(self) -> int:
        """Give the number of batches."""
        whole, rest = divmod(self.samples, self.batch_size)
        return max(1, whole + (rest > 1 or (rest == 1 and self.batch_size == 1)))

    def __iter__(self) -> Iterator[Tensor]:
        """Give the places of each batch."""
        order = torch.from_numpy(draw_epoch(self.samples, self.epoch, self.seed))
        last = len(self) - 1
        for batch in range(last + 1):
            yield order[batch * self.batch_size : (batch + 1) * self.batch_size if batch < last else None]


class _Samples(Dataset[tuple[Tensor, Tensor]]):
    """Inputs and labels, by a tensor of places."""

    def __init__(self, inputs: Tensor, labels: Tensor) -> None:
        self.inputs, self.labels = inputs, labels

    def __getitem__(self, places: Tensor) -> tuple[Tensor, Tensor]:
        places = places.to(self.inputs.device)
        return self.inputs[places], self.labels[places]


class PhotoBatches(PhotoData):
    """Feeds the training photos of a data set in batches, every epoch in another order, and its validation photos.

    Photos are drawn or decoded once, and kept on disk as bytes, for all runs.

    Args:
        batch_size: Photos in a batch.
    """

    takes_maps = True

    def __init__(self, batch_size: PositiveInt = 64, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.batch_size = batch_size
        self.order_seed = int(self.seed)

    def setup(self, stage: str) -> None:
        """List the photos and check them; once for all calls."""
        if hasattr(self, "classes"):
            return
        settle_arithmetic()
        self.train_photos, self.validation_photos = self.read_splits()
        with prefix_errors("data.photos"):
            for photos in (self.train_photos, self.validation_photos):
                photos.digests(cache_folder(self.cache_dir))
        self.classes = self.train_photos.classes
        self.duplicates = find_duplicates(self.train_photos, self.validation_photos)
        if self.on_duplicates == "stop":
            require_none(self.duplicates)

    @property
    def of_pixels(self) -> bool:
        """Whether every pixel has a class, rather than every photo."""
        return self.train_photos.maps is not None

    @property
    def parts(self) -> int:
        """What an accuracy is a whole number of: validation photos; billionths where it is a mean IoU."""
        return 10**9 if self.of_pixels else len(self.validation_labels)

    def fingerprints(self) -> dict[str, str]:
        """Digest both splits: contents, names, labels and order of the photos."""
        return {
            "train_photos_sha256": self.train_photos.fingerprint(),
            "validation_photos_sha256": self.validation_photos.fingerprint(),
        }

    def load_photos(self, preprocessing: Preprocessing, device: torch.device) -> None:
        """Draw, decode or find the prepared photos, uint8 `[photos, 3, crop, crop]`.

        Args:
            preprocessing: How they are prepared.
            device: Where they are to be, if its memory suffices.
        """
        self.load(lambda photos, resources: pixels(preprocessing, photos, resources), preprocessing, device)

    def load(
        self, find: Callable[[Pictures, Resources], StoredRows], preprocessing: Preprocessing, device: torch.device
    ) -> None:
        """Find or compute what is fed of both splits.

        Args:
            find: Gives the rows of photos.
            preprocessing: How photos are prepared, and with them their label maps.
            device: Where they are to be, if its memory suffices.

        Raises:
            UserError: The cache cannot be used, or photos cannot be decoded.
        """
        train = self._load(find, self.train_photos, preprocessing, "training")
        validation = self._load(find, self.validation_photos, preprocessing, "validation")
        held = hold(device, (*train, *validation))
        self.train_inputs, self.train_labels, self.validation_inputs, self.validation_labels = held

    def _load(
        self,
        find: Callable[[Pictures, Resources], StoredRows],
        photos: Photos,
        preprocessing: Preprocessing,
        split: str,
    ) -> tuple[Tensor, Tensor]:
        found, readable = self.find_rows(lambda resources: find(photos, resources), photos, split)
        inputs, labels = torch.from_numpy(found.rows), torch.from_numpy(photos.labels)
        if (maps := photos.maps) is not None:
            drawn, mapped = self.find_rows(lambda resources: label_maps(preprocessing, maps, resources), maps, split)
            labels = torch.from_numpy(drawn.rows)
            readable = mapped if readable is None else readable if mapped is None else readable & mapped
        if readable is not None:
            inputs, labels = inputs[readable], labels[readable]
        if maps is None:
            self.require_readable(self.classes, labels, split)
        return inputs, labels

    def train_dataloader(self) -> DataLoader[tuple[Tensor, Tensor]]:
        """Feed the batches of an epoch: inputs and labels."""
        batches = EpochBatches(len(self.train_labels), self.batch_size, self.order_seed)
        return load_batches(self.train_inputs, self.train_labels, batches)

    def val_dataloader(self) -> DataLoader[tuple[Tensor, Tensor]]:
        """Feed the validation set in batches, in one order."""
        labels = self.validation_labels
        at_once = max(1, PIXELS_AT_ONCE // labels[0].numel()) if self.of_pixels else VALIDATED_AT_ONCE
        places = torch.arange(len(labels)).split(at_once)
        return load_batches(self.validation_inputs, labels, places)


def load_batches(inputs: Tensor, labels: Tensor, batches: Iterable[Tensor]) -> DataLoader[tuple[Tensor, Tensor]]:
    """Give a loader of inputs and labels.

    Args:
        inputs: `[samples, ...]`.
        labels: `[samples]`, or `[samples, height, width]` of pixels.
        batches: The places of the samples of each batch.
    """
    # The loader would draw from the generator that others share.
    return DataLoader(_Samples(inputs, labels), sampler=batches, batch_size=None, generator=torch.Generator())
