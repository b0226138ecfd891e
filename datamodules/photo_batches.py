"""Labelled photos, or their features by a frozen source, in batches and epochs, as plain training takes them."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np
import torch
from jsonargparse.typing import ClosedUnitInterval, NonNegativeInt, PositiveInt
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from headstart.datamodules.mapped_samples import MappedSamples, samples_of
from headstart.datamodules.orderings import sample_epoch, sample_seed, sample_selection
from headstart.datamodules.photo_data import PhotoData, digest_splits
from headstart.datamodules.photos.photo_source import Photos
from headstart.datamodules.row_computation import best_precision
from headstart.datamodules.row_request import NetworkSettings, Precision, RowRequest
from headstart.datamodules.rows import find, label_maps
from headstart.modules.arithmetic import set_float32_arithmetic
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import WHOLE_NETWORK, NetworkSpec
from headstart.output.errors import prefix_errors
from headstart.store.cache import cache_folder

# Samples in one step of an evaluation, or pixels where each has a class.
VALIDATED_AT_ONCE = 250
PIXELS_AT_ONCE = 2**20
PLAIN = NetworkSettings(device="cpu")


class EpochBatches(Sampler[Tensor]):
    """Indices of the samples in batches, in an order that the seed and the number of the epoch decide.

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
        """Set the number of the epoch, as Lightning does before it begins."""
        self.epoch = epoch

    def __len__(self) -> int:
        """Return the number of batches."""
        whole, rest = divmod(self.samples, self.batch_size)
        return max(1, whole + (rest > 1 or (rest == 1 and self.batch_size == 1)))

    def __iter__(self) -> Iterator[Tensor]:
        """Yield the indices of each batch."""
        order = torch.from_numpy(sample_epoch(self.samples, self.epoch, self.seed))
        last = len(self) - 1
        for batch in range(last + 1):
            yield order[batch * self.batch_size : (batch + 1) * self.batch_size if batch < last else None]


class _Samples(Dataset[tuple[Tensor, Tensor]]):
    """Inputs and labels, by a tensor of indices."""

    def __init__(self, inputs: Tensor | MappedSamples, labels: Tensor) -> None:
        self.inputs, self.labels = inputs, labels

    def __getitem__(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        indices = indices.to(self.inputs.device)
        return self.inputs[indices], self.labels[indices]


class PhotoBatches(PhotoData):
    """Feeds the training photos of a data set in shuffled batches, and its validation photos.

    Photos are drawn or decoded once, and stored on disk for all runs.

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
        set_float32_arithmetic()
        self.train_photos, self.validation_photos = self.read_splits()
        with prefix_errors("data.photos"):
            for photos in (self.train_photos, self.validation_photos):
                photos.packed_digests(cache_folder(self.cache_dir))
        self.classes = self.train_photos.classes
        self.check_duplicates(self.train_photos, self.validation_photos)

    @property
    def of_pixels(self) -> bool:
        """Return whether every pixel has a class, rather than every photo."""
        return self.train_photos.maps is not None

    @property
    def parts(self) -> int:
        """Number of equal parts in which accuracies are counted: the validation photos; a billion for a mean IoU."""
        return 10**9 if self.of_pixels else len(self.validation_labels)

    def fingerprints(self) -> dict[str, str]:
        """Return digests of both splits: contents, names, labels and order of the photos."""
        return digest_splits(self.train_photos, self.validation_photos)

    def load_photos(
        self,
        preprocessing: Preprocessing,
        device: torch.device,
        source: NetworkSpec | None = None,
        settings: NetworkSettings = PLAIN,
    ) -> None:
        """Load the prepared photos of both splits, uint8 `[photos, 3, crop, crop]`, or a network's rows of them.

        Args:
            preprocessing: How they are prepared, and with them their label maps.
            device: Where they are moved to, if its memory suffices.
            source: The network, whose rows are fed instead of the photos.
            settings: How the network runs.

        Raises:
            UserError: The cache cannot be used, or photos cannot be decoded.
        """
        train, validation = (
            self._load(photos, RowRequest(photos, preprocessing, settings, source), split)
            for photos, split in ((self.train_photos, "training"), (self.validation_photos, "validation"))
        )
        self.train_inputs, self.train_labels, self.readable = train
        self.validation_inputs, self.validation_labels, _ = validation
        self.move_samples(device)

    def _load(self, photos: Photos, request: RowRequest, split: str) -> tuple[Any, Tensor, Tensor | None]:
        """Load the inputs and labels of the readable photos, and which ones these are; None where all are."""
        resources = self.resources(split)
        with self.explain_row_errors(photos):
            stored = find(request, resources)
        readable = self.find_readable(photos, stored, split)
        inputs, labels = samples_of(stored.rows, lambda part: part), torch.from_numpy(photos.labels)

        if photos.maps is not None:
            with self.explain_row_errors(photos.maps):
                stored = label_maps(request.preprocessing, photos.maps, resources)
            mapped = self.find_readable(photos.maps, stored, split)
            labels = torch.from_numpy(np.asarray(stored.rows))
            readable = mapped if readable is None else readable if mapped is None else readable & mapped

        if readable is not None:
            inputs, labels = inputs[readable], labels[readable]
        if photos.maps is None:
            self.require_readable(self.classes, labels, split)
        return inputs, labels, readable

    def train_dataloader(self) -> DataLoader[tuple[Tensor, Tensor]]:
        """Return a loader of the batches of an epoch: inputs and labels."""
        batches = EpochBatches(len(self.train_labels), self.batch_size, self.order_seed)
        return load_batches(self.train_inputs, self.train_labels, batches)

    def val_dataloader(self) -> DataLoader[tuple[Tensor, Tensor]]:
        """Return a loader of the validation set in batches, in one order."""
        return self.load_evaluated(self.validation_inputs, self.validation_labels)

    def load_evaluated(self, inputs: Tensor | MappedSamples, labels: Tensor) -> DataLoader[tuple[Tensor, Tensor]]:
        """Return a loader of inputs and labels in the batches of an evaluation, in their order."""
        at_once = max(1, PIXELS_AT_ONCE // labels[0].numel()) if self.of_pixels else VALIDATED_AT_ONCE
        return load_batches(inputs, labels, torch.arange(len(labels)).split(at_once))


def load_batches(
    inputs: Tensor | MappedSamples, labels: Tensor, batches: Iterable[Tensor]
) -> DataLoader[tuple[Tensor, Tensor]]:
    """Return a loader of inputs and labels.

    Args:
        inputs: `[samples, ...]`.
        labels: `[samples]`, or `[samples, height, width]` of pixels.
        batches: The indices of the samples of each batch.
    """
    # It has a generator of its own, because the default one is shared with other code.
    return DataLoader(_Samples(inputs, labels), sampler=batches, batch_size=None, generator=torch.Generator())


class TargetBatches(PhotoBatches):
    """Feeds a target's training photos, or their features, in batches, and its validation photos.

    Args:
        orderings: Number of repetitions of training, each with its own head and order.
        first_ordering: Number of the first ordering. Ordering k does not depend on the others.
        precision: Arithmetic of the frozen source if only the head is trained. `auto` uses bfloat16 if the hardware
            supports it, else float32.
        selection_share: Share of the training photos that are held out to choose a recipe, such as a learning rate.
            The accuracy on them is measured as well. Photos of equal content stay together.
        trainable_from: The first module of the source that is trained, such as `features.14`. Earlier modules stay
            frozen, with batch norm on its stored statistics. `all` trains the whole network.
    """

    selection_inputs: Any
    selection_labels: Tensor

    def __init__(
        self,
        orderings: PositiveInt = 1,
        first_ordering: NonNegativeInt = 0,
        precision: Literal["auto", "float32", "bfloat16"] = "auto",
        selection_share: ClosedUnitInterval = 0.0,
        trainable_from: str = WHOLE_NETWORK,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.orderings = range(first_ordering, first_ordering + orderings)
        self.precision = precision
        self.selection_share = selection_share
        self.trainable_from = trainable_from

    def setup(self, stage: str) -> None:
        """List the photos and check them, and that a share of them can be selected.

        Raises:
            UserError: The share of the selection photos is too small or too large.
        """
        super().setup(stage)
        if self.selection_share:
            self._sample_selection()

    def choose(self, ordering: int) -> int:
        """Choose the ordering that is fed.

        Args:
            ordering: Its number.

        Returns:
            The seed of everything random in its training.
        """
        self.order_seed = sample_seed(ordering, self.seed)
        return self.order_seed

    def arithmetic(self, device: torch.device) -> Precision:
        """Return the arithmetic of the frozen source on a device."""
        return best_precision(device) if self.precision == "auto" else self.precision

    def select(self) -> None:
        """Set the selection photos apart from the training photos, once these are loaded.

        Raises:
            UserError: Their share is too small or too large for those that can be decoded.
        """
        selected = torch.zeros(len(self.train_labels), dtype=torch.bool)
        if self.selection_share:
            selected[self._sample_selection(self.readable)] = True
        selected = selected.to(self.train_labels.device)

        self.selection_inputs, self.selection_labels = self.train_inputs[selected], self.train_labels[selected]
        if self.selection_share:
            self.train_inputs, self.train_labels = self.train_inputs[~selected], self.train_labels[~selected]

    def _sample_selection(self, readable: Tensor | None = None) -> NDArray[np.int64]:
        """Sample the indices of the selection photos among the readable training photos."""
        photos = self.train_photos
        # A label map has no single class.
        labels = np.zeros(len(photos), int) if self.of_pixels else photos.labels
        contents = np.array(photos.digests())
        if readable is not None:
            labels, contents = labels[readable.numpy()], contents[readable.numpy()]
        return sample_selection(labels, contents, self.selection_share, self.seed)

    @property
    def evaluated(self) -> tuple[str, ...]:
        """Names of the splits on which the accuracy is measured: the validation photos, then the selection photos."""
        return ("validation", "selection") if self.selection_share else ("validation",)

    def evaluation_dataloader(self, split: str) -> DataLoader[tuple[Tensor, Tensor]]:
        """Return a loader of a split on which the accuracy is measured.

        Args:
            split: `validation` or `selection`.
        """
        if split == "validation":
            return self.val_dataloader()
        return self.load_evaluated(self.selection_inputs, self.selection_labels)

    def load_features(self, source: NetworkSpec, device: torch.device) -> None:
        """Load the features, float32 `[photos, features]`: the rows that a comparison is fed.

        Where every pixel has a class, they are of pixels, `[photos, height, width, features]`.

        Args:
            source: The source, with its preprocessing.
            device: Where it runs.
        """
        assert source.preprocessing is not None
        settings = NetworkSettings(self.arithmetic(device), folded=True, device=str(device))
        self.load_photos(source.preprocessing, device, source, settings)
