"""The photos of a run: its two splits, checked, and their stored rows."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import torch
from jsonargparse.typing import NonNegativeInt, PositiveInt
from lightning.pytorch import LightningDataModule
from torch import Tensor

from headstart.datamodules.photos.duplicates import find_duplicates, quote
from headstart.datamodules.photos.folder_listing import report_left_out
from headstart.datamodules.photos.photo_source import Photos, PhotoSource, require_classes
from headstart.datamodules.row_request import ComputeSettings
from headstart.engines.options import EngineOptions
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.output.errors import UserError, prefix_errors
from headstart.output.printable import say
from headstart.output.seeds import Seed
from headstart.store.cache import cache_folder
from headstart.store.feature_table import StoredRows, StoreError

# Unreadable photos that a message names.
MOST_NAMED = 10


class PhotoData(LightningDataModule):
    """Reads a data set for a network, and reports errors in it.

    Args:
        photos: The data set.
        backbone: The network, and its weights.
        on_bad_image: Photos that cannot be decoded raise an error (`stop`), or are skipped and listed in the results
            (`skip`).
        on_duplicates: How to handle photos of equal content in both splits or in two classes. `stop` raises an error.
            `keep` keeps them and lists them in the results.
        cache_dir: Folder for features, decoded photos and downloads. The default is the environment variable
            HEADSTART_CACHE, or else a folder in the user's cache directory.
        num_workers: Number of processes that decode photos. The default is one per available processor.
        workers: Number of processes that compute missing features of a frozen backbone. Each uses its share of the
            processors, or a GPU of its own. By default the run computes them itself.
        ray: Address of the Ray cluster that computes missing features; `auto` is the cluster of this machine.
        seed: Seed of orderings, heads and random weights. `seed_everything` sets it.
    """

    # Whether it feeds photos with a class for every pixel as well.
    takes_maps = False
    # The samples, once they are loaded: tensors, and MappedSamples where inputs are too large for memory.
    train_inputs: Any
    train_labels: Tensor
    validation_inputs: Any
    validation_labels: Tensor

    def __init__(
        self,
        photos: PhotoSource,
        backbone: BackboneSpec,
        on_bad_image: Literal["stop", "skip"] = "stop",
        on_duplicates: Literal["stop", "keep"] = "stop",
        cache_dir: str | None = None,
        num_workers: NonNegativeInt | None = None,
        workers: PositiveInt | None = None,
        ray: str | None = None,
        seed: Seed = 0,
    ) -> None:
        super().__init__()
        with prefix_errors("data.backbone"):
            backbone.import_user_code()
        self.photos = photos
        self.chosen = backbone
        self.on_bad_image = on_bad_image
        self.on_duplicates = on_duplicates
        self.cache_dir = cache_dir
        self.num_workers = num_workers
        self.engines = EngineOptions(workers, ray)
        self.seed = seed
        self.unreadable: dict[str, str] = {}
        self.duplicates: list[list[str]] = []
        # Numbers of files that are left out, by reason.
        self.left_out: dict[str, int] = {}

    def prepare_data(self) -> None:
        """Fetch what is missing of the data set."""
        with prefix_errors("data.photos"):
            self.photos.prepare(cache_folder(self.cache_dir))

    def read_splits(self) -> tuple[Photos, Photos]:
        """List the training and the validation photos, and print how many files are left out.

        Raises:
            UserError: They cannot be found or read, or there are fewer than two classes of them.
        """
        with prefix_errors("data.photos"):
            train, validation = self.photos.both()
            for photos, split in ((train, "training"), (validation, "validation")):
                if photos.maps is None or not self.takes_maps:
                    require_classes(photos, split, warns=photos is train)
        self.left_out = report_left_out({**train.left_out, **validation.left_out})
        return train, validation

    def check_duplicates(self, train: Photos, validation: Photos) -> None:
        """Find readable photos that are in both splits or in two classes; a UserError names them unless they are kept.

        Args:
            train: The training photos.
            validation: The validation photos.
        """
        self.duplicates = find_duplicates(train, validation)
        if self.duplicates and self.on_duplicates == "stop":
            raise UserError(
                f"data.photos: {len(self.duplicates)} photos are in both splits or in two classes: "
                f"{quote(self.duplicates, ' = ')}; remove them, or keep them with data.on_duplicates=keep"
            )

    def resources(self, split: str) -> ComputeSettings:
        """Return the resources with which rows of a split are computed."""
        cache, title = cache_folder(self.cache_dir), f"{split} photos"
        return ComputeSettings(cache, title, self.num_workers, engines=self.engines)

    @contextmanager
    def explain_row_errors(self, photos: Photos) -> Iterator[None]:
        """Name the option in errors that computing rows of photos raises.

        Args:
            photos: The photos, whose files are digested first.

        Raises:
            UserError: The cache cannot be used, or the network or the photos are wrong.
        """
        try:
            with prefix_errors("data.photos"):
                photos.packed_digests(cache_folder(self.cache_dir))
            with (
                prefix_errors("data", about=("num_workers: ", "cache_dir: ")),
                prefix_errors("data.backbone", about="model "),
                prefix_errors("data.photos", about=photos.kind),
            ):
                yield
        except StoreError as error:
            raise UserError(f"data.cache_dir: {error}") from error

    def find_readable(self, photos: Photos, stored: StoredRows, split: str) -> Tensor | None:
        """Find the photos that can be decoded, and remember the others in `unreadable`.

        Args:
            photos: The photos.
            stored: Their rows.
            split: Name of the split.

        Returns:
            Which photos are readable, `[photos]`; None where all are.

        Raises:
            UserError: Photos cannot be decoded, and are not to be skipped.
        """
        bad = {photos.names[index]: reason for index, reason in stored.remarks.items()}
        if not bad:
            return None
        if self.on_bad_image == "stop":
            listed = ", ".join(f"{name} ({reason})" for name, reason in list(bad.items())[:MOST_NAMED])
            listed += f" and {len(bad) - MOST_NAMED} more" if len(bad) > MOST_NAMED else ""
            raise UserError(
                f"data.photos: {len(bad)} of {len(photos)} {split} photos cannot be decoded: {listed}; "
                "repair or remove them, or skip them with data.on_bad_image=skip"
            )
        self.unreadable.update(bad)
        readable = torch.ones(len(photos), dtype=torch.bool)
        readable[[*stored.remarks]] = False
        return readable

    def require_readable(self, classes: Sequence[str], labels: Tensor, split: str) -> None:
        """Check that some photo of every class can be decoded.

        Args:
            classes: Names of the classes.
            labels: Labels of the readable photos.
            split: Name of the split.

        Raises:
            UserError: There is none of some class.
        """
        readable_labels = set(labels.unique().tolist())
        lost = [name for label, name in enumerate(classes) if label not in readable_labels]
        if lost:
            raise UserError(f"data.photos: none of the {split} photos of class {', '.join(lost)} can be decoded")

    def move_samples(self, device: torch.device) -> None:
        """Move the samples of both splits to the device of the methods, or print that its memory does not suffice.

        Args:
            device: The device.
        """
        samples = (self.train_inputs, self.train_labels, self.validation_inputs, self.validation_labels)
        needed, spare = sum(tensor.nbytes for tensor in samples), _spare_bytes(device)
        if needed > spare:
            say(
                f"{device} can use {spare / 1e9:.1f} GB of memory for {needed / 1e9:.1f} GB of samples; "
                "they stay in main memory, and every batch is copied"
            )
            return
        self.train_inputs, self.train_labels, self.validation_inputs, self.validation_labels = (
            tensor.to(device) for tensor in samples
        )


def digest_splits(train: Photos, validation: Photos) -> dict[str, str]:
    """Return digests of both splits, by key of the results: contents, names, labels and order of the photos."""
    return {
        "train_photos_sha256": train.fingerprint(),
        "validation_photos_sha256": validation.fingerprint(),
    }


def _spare_bytes(device: torch.device) -> float:
    """Return how many bytes of a device samples may fill: half of the free ones of a GPU, which training needs too."""
    return torch.cuda.mem_get_info(device)[0] / 2 if device.type == "cuda" else math.inf
