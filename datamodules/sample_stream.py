"""The stream of training samples in many orderings, and the validation set after every batch."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, ClassVar, Literal

import torch
from jsonargparse.typing import NonNegativeInt, PositiveInt
from torch import Tensor
from torch.utils.data import DataLoader

from headstart.datamodules.chosen_backbone import build_chosen
from headstart.datamodules.mapped_samples import Rows, samples_of, tensor_of
from headstart.datamodules.orderings import SHUFFLED, Order, ordered_indices, sample_validation
from headstart.datamodules.photo_data import PhotoData, digest_splits
from headstart.datamodules.photos.near_duplicates import warn_of_near_duplicates
from headstart.datamodules.photos.photo_source import Photos
from headstart.datamodules.photos.pictures import Pictures
from headstart.datamodules.row_check import RowCheck
from headstart.datamodules.row_computation import best_precision
from headstart.datamodules.row_request import Precision, RowRequest
from headstart.datamodules.rows import find
from headstart.modules.arithmetic import set_float32_arithmetic
from headstart.modules.method import MethodStart
from headstart.modules.networks.backbone_spec import RANDOM, without_digest
from headstart.modules.networks.trainable_backbone import TrainableBackbone
from headstart.modules.networks.weights import weights_digest
from headstart.output.errors import UserError, prefix_errors
from headstart.output.printable import printable, say

# Increase this whenever the same protocol feeds something else, or starts from another head.
STREAM_VERSION = 1
# Names of what is fed, which a ledger keeps for its readers.
NAMES = ("dataset", "backbone", "weights")


class ValidationSet:
    """The validation set, in chunks and always in one order.

    Args:
        inputs: `[samples, ...]`.
        labels: `[samples]`.
        chunk: Samples that are predicted together.
    """

    def __init__(self, inputs: Tensor, labels: Tensor, chunk: int) -> None:
        # The same tensors in every evaluation, so that methods can reuse what they compute of them.
        self.chunks = list(zip(inputs.split(chunk), labels.split(chunk), strict=True))

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Iterate over inputs and labels of each chunk."""
        return iter(self.chunks)


class SampleStream(PhotoData):
    """Feeds one stream of samples in many seeded orderings, and the validation set after every batch.

    Args:
        batch_size: New samples per batch in each ordering.
        max_samples: Sample limit of each ordering.
        orderings: Number of orderings.
        first_ordering: Number of the first ordering. Ordering k does not depend on the others.
        validation_size: Number of validation photos, a seeded sample stratified by class, which unreadable ones leave
            smaller. All are used by default.
        order: `shuffled`, or `balanced`: each block contains one sample of every class. The accuracy after k blocks
            is then that of k samples per class. The stream ends when a class runs out.
        orderings_at_once: Orderings that run side by side in one pass over the stream, at most. By default as many as
            fit into a few gigabytes; methods that train the backbone run one at a time. A pass is stored when it ends.
        precision: Arithmetic of what is frozen, and of evaluations. `auto` uses bfloat16 if the hardware supports it,
            else float32. `trainer.precision` sets the arithmetic of training.
        near_duplicates: Also warn of validation photos that look like a training photo, such as copies of another size.
            Equal files are always found; see `on_duplicates`.
    """

    # Precisions of methods, as the trainer names them.
    trainer_precisions: ClassVar[tuple[str, ...]] = ("32-true",)

    def __init__(
        self,
        batch_size: PositiveInt = 1,
        max_samples: PositiveInt = 500,
        orderings: PositiveInt = 20,
        first_ordering: NonNegativeInt = 0,
        validation_size: PositiveInt | None = None,
        order: Order = SHUFFLED,
        orderings_at_once: PositiveInt | None = None,
        precision: Literal["auto", "float32", "bfloat16"] = "auto",
        near_duplicates: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.batch_size = batch_size
        self.max_samples = max_samples
        self.orderings = range(first_ordering, first_ordering + orderings)
        self.validation_size = validation_size
        self.order = order
        self.orderings_at_once = orderings_at_once
        self.precision = precision
        self.finds_near_duplicates = near_duplicates
        self.near_duplicates: list[list[str]] = []
        self.fingerprints: dict[str, str] = {}
        self.feed(self.orderings)

    @property
    def device(self) -> torch.device:
        """The device on which the methods run."""
        assert self.trainer is not None
        return self.trainer.strategy.root_device

    @property
    def arithmetic(self) -> Precision:
        """The arithmetic of what is frozen, and of evaluations."""
        return best_precision(self.device) if self.precision == "auto" else self.precision

    @property
    @abstractmethod
    def validation_chunk(self) -> int:
        """Validation samples in one step of an evaluation."""

    @abstractmethod
    def request(self, photos: Pictures) -> RowRequest:
        """Return the request for the rows of one split.

        Args:
            photos: The split's photos.
        """

    def look_at(self, rows: Rows) -> None:
        """See the training rows before any is fed; nothing by default."""

    @abstractmethod
    def inputs_in(self, rows: Tensor, notes: Mapping[str, Any]) -> Tensor:
        """Return what is fed of some rows of a split with their notes, `[rows, ...]`."""

    def trainable_backbone(self) -> TrainableBackbone | None:
        """Return the backbone that the methods train; None where they see frozen features only."""
        return None

    def setup(self, stage: str) -> None:
        """Check the photos, load the rows of both splits and move them to the device; once for all calls."""
        if self.fingerprints:
            return
        train, validation = self._open()
        self.classes = train.classes
        self.train_inputs, self.train_labels = self._load(train, "training")
        if self.validation_size is not None:
            validation = validation.subset(sample_validation(validation.labels, self.validation_size, self.seed))
        self.validation_inputs, self.validation_labels = self._load(validation, "validation")
        self.require_readable(self.classes, self.train_labels, "training")
        self.require_readable(self.classes, self.validation_labels, "validation")
        self._limit_samples()

        self.check_duplicates(train, validation)
        if self.finds_near_duplicates:
            with self.explain_row_errors(train):
                preprocessing = self.backbone.preprocessing
                self.near_duplicates = warn_of_near_duplicates(train, validation, preprocessing, self.num_workers)
        self.fingerprints = digest_splits(train, validation)
        self.own_decoding = sorted({train.own_code, validation.own_code} - {""})
        self.move_samples(self.device)

    def check_rows(self, check: RowCheck) -> None:
        """Compare stored rows of both splits with rows that are computed again.

        Args:
            check: The comparison.

        Raises:
            UserError: The photos or the backbone cannot be read, or the cache cannot be used.
        """
        for photos, split in zip(self._open(), ("training", "validation"), strict=True):
            with self.explain_row_errors(photos):
                check.compare(self.request(photos), self.resources(split))

    def _open(self) -> tuple[Photos, Photos]:
        """List the photos of both splits, and build the backbone."""
        set_float32_arithmetic()
        train, validation = self.read_splits()
        self._require_sizes(train, validation)
        with prefix_errors("data.backbone"):
            self.spec, self.backbone = build_chosen(self.chosen, self.seed, self.device)
        return train, validation

    def _limit_samples(self) -> None:
        """Check that there are samples up to the limit; end a balanced stream where a class runs out."""
        if self.order == SHUFFLED:
            self._require("data.max_samples", self.max_samples, len(self.train_labels), "readable training")
            return
        sizes = self.train_labels.bincount()
        end = int(sizes.min()) * len(self.classes)
        if end < self.max_samples:
            smallest = printable(self.classes[int(sizes.argmin())])
            say(f"Balanced orderings end after {end} samples, when the class {smallest} runs out.")
            self.max_samples = end

    def _require_sizes(self, train: Photos, validation: Photos) -> None:
        if self.order == SHUFFLED:
            self._require("data.max_samples", self.max_samples, len(train), "training")
        if self.validation_size is None:
            return
        self._require("data.validation_size", self.validation_size, len(validation), "validation")
        if self.validation_size < len(validation.classes):
            raise UserError(
                f"data.validation_size: {self.validation_size} photos cannot contain one of each of the "
                f"{len(validation.classes)} classes; give {len(validation.classes)} or more"
            )

    def _load(self, photos: Photos, split: str) -> tuple[Any, Tensor]:
        """Load the inputs of the readable photos and their labels."""
        with self.explain_row_errors(photos):
            stored = find(self.request(photos), self.resources(split))
        readable = self.find_readable(photos, stored, split)
        if split == "training":
            self.look_at(stored.rows)
        # Methods may compute with the whole validation set, but only with some of the training samples at once.
        load: Any = samples_of if split == "training" else tensor_of
        inputs, labels = load(stored.rows, partial(self.inputs_in, notes=stored.notes)), torch.from_numpy(photos.labels)
        if readable is not None:
            inputs, labels = inputs[readable], labels[readable]
        return inputs, labels

    @staticmethod
    def _require(option: str, requested: int, available: int, kind: str) -> None:
        if requested > available:
            raise UserError(f"{option}: {requested} requested, but there are {available} {kind} photos")

    def feed(self, numbers: Sequence[int]) -> None:
        """Choose the orderings that are fed, of those of the comparison.

        Args:
            numbers: Their numbers.
        """
        self.active_orderings = numbers

    def held(self) -> dict[str, Tensor]:
        """Return the tensors that no method may change, besides those of the start, by their names in messages."""
        return {
            "the validation inputs": self.validation_inputs,
            "the validation labels": self.validation_labels,
            "the training labels": self.train_labels,
        }

    def start(self) -> MethodStart:
        """Return what every method of the comparison starts from."""
        return MethodStart(
            features=self.backbone.width,
            classes=len(self.classes),
            ordering_numbers=self.active_orderings,
            max_samples=self.max_samples,
            seed=self.seed,
            device=self.device,
            backbone=self.trainable_backbone(),
            source_head=self.backbone.source_head,
            source_bias=self.backbone.source_bias,
        )

    def train_dataloader(self) -> DataLoader[tuple[Tensor, Tensor, Tensor]]:
        """Return a loader of batch b of all orderings together: inputs, labels and indices of the training samples.

        The last is smaller where the batches do not divide the samples.
        """
        balanced = None if self.order == SHUFFLED else self.train_labels.numpy(force=True)
        indices = ordered_indices(len(self.train_labels), self.active_orderings, self.max_samples, self.seed, balanced)
        batches: Any = torch.from_numpy(indices).to(self.train_inputs.device).split(self.batch_size, dim=1)
        # The loader declares lists of samples.
        gather: Any = self._gather
        return DataLoader(batches, batch_size=None, collate_fn=gather)

    def _gather(self, samples: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.train_inputs[samples], self.train_labels[samples], samples

    def val_dataloader(self) -> DataLoader[ValidationSet]:
        """Return a loader of the whole validation set, which yields its chunks in every evaluation."""
        whole: Any = [ValidationSet(self.validation_inputs, self.validation_labels, self.validation_chunk)]
        return DataLoader(whole, batch_size=None)

    def describe(self) -> dict[str, Any]:
        """Return what readers should know of the stream besides what decides its traces, as JSON values."""
        return {
            "dataset": self.photos.name,
            "backbone": self.chosen.name,
            "weights": without_digest(self.chosen.weights)
            if self.chosen.registry is None
            else str(self.spec.weights or RANDOM),
            "max_samples": self.max_samples,
            "orderings": len(self.orderings),
            "first_ordering": self.orderings.start,
            "unreadable_photos": self.unreadable,
            "duplicate_photos": self.duplicates,
            "near_duplicate_photos": self.near_duplicates,
        }

    def environment(self) -> dict[str, Any]:
        """Return numbers on which no count depends: of the files left out, by reason."""
        return {"files_left_out": self.left_out}

    def decisive(self) -> dict[str, Any]:
        """Return the stream's part of a key: all on which a trace depends besides method, place and ordering.

        The names of the data set, the backbone and its weights are left out: their contents count. The sample limit is
        left out if the batches divide it. A trace of a lower limit is then the beginning of a trace of a higher one.
        """
        assert self.trainer is not None
        assert self.spec.preprocessing is not None
        return {
            "version": STREAM_VERSION,
            **self.fingerprints,
            "classes": list(self.classes),
            "train_size": len(self.train_labels),
            "validation_size": len(self.validation_labels),
            "batch_size": self.batch_size,
            **({"max_samples": self.max_samples} if self.max_samples % self.batch_size else {}),
            "order": self.order,
            "seed": self.seed,
            "trainer_precision": self.trainer.precision,
            "weights_sha256": self.spec.loaded_sha256,
            "random_weights": self.spec.weights is None,
            **({"decoding": self.own_decoding} if self.own_decoding else {}),
            "network": self.spec.identity,
            # The source head is an input of methods, and no part of the network's identity.
            "start": weights_digest(self.backbone),
            "preprocessing": asdict(self.spec.preprocessing),
        }
