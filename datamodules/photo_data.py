"""The photos that a run is about: its two splits, and the rows that are found or computed of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from jsonargparse.typing import NonNegativeInt
from lightning.pytorch import LightningDataModule
from torch import Tensor

from headstart.datamodules.photos.photo_source import Photos, PhotoSource, require_classes
from headstart.datamodules.row_policy import Resources
from headstart.modules.networks.backbone import BackboneSpec
from headstart.output.errors import UserError, prefix_errors
from headstart.store.cache import cache_folder
from headstart.store.row_store import StoredRows
from headstart.store.segments import StoreError


class PhotoData(LightningDataModule):
    """Reads a data set for a network, with one line for each mistake in it.

    Args:
        photos: The data set.
        backbone: The network, and its weights.
        on_bad_image: What to do about photos that cannot be decoded: `stop` with their names, or `skip` them and
            name them in the results.
        on_duplicates: What to do about photos of equal content that are in both splits or in two classes: `stop` with
            their names, or `keep` them and name them in the results.
        cache_dir: Folder of what is computed of photos and of downloads; by default that in the environment variable
            HEADSTART_CACHE, else a folder in the user's cache directory.
        num_workers: Processes that decode photos; by default one per processor that the run may use.
        seed: Seed of all that is drawn: orders, heads and random weights; taken from `seed_everything`.
    """

    # Whether it feeds photos with a class for every pixel as well.
    takes_maps = False
    # Whether what is not stored of the photos' rows raises NotStoredError.
    only_stored = False

    def __init__(
        self,
        photos: PhotoSource,
        backbone: BackboneSpec,
        on_bad_image: Literal["stop", "skip"] = "stop",
        on_duplicates: Literal["stop", "keep"] = "stop",
        cache_dir: str | None = None,
        num_workers: NonNegativeInt | None = None,
        seed: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        self.photos = photos
        self.chosen = backbone
        self.on_bad_image = on_bad_image
        self.on_duplicates = on_duplicates
        self.cache_dir = cache_dir
        self.num_workers = num_workers
        self.seed = seed
        self.unreadable: dict[str, str] = {}
        self.duplicates: list[list[str]] = []

    def prepare_data(self) -> None:
        """Fetch what is missing of the data set."""
        with prefix_errors("data.photos"):
            self.photos.prepare(cache_folder(self.cache_dir))

    def read_splits(self) -> tuple[Photos, Photos]:
        """List the training and the validation photos.

        Raises:
            UserError: They cannot be found or read, or there are fewer than two classes of them.
        """
        with prefix_errors("data.photos"):
            train, validation = self.photos.train(), self.photos.validation()
            for photos, split in ((train, "training"), (validation, "validation")):
                if photos.maps is None or not self.takes_maps:
                    require_classes(photos, split)
        return train, validation

    def find_rows(
        self, find: Callable[[Resources], StoredRows], photos: Photos, split: str
    ) -> tuple[StoredRows, Tensor | None]:
        """Find or compute the rows of one split.

        Args:
            find: Gives them, for each photo or for each view of all photos in turn.
            photos: The photos.
            split: What the split is called.

        Returns:
            The rows, and which photos are readable, `[photos]`; None where all are.

        Raises:
            UserError: The cache cannot be used, or photos cannot be decoded.
        """
        resources = Resources(cache_folder(self.cache_dir), f"{split} photos", self.num_workers, self.only_stored)
        try:
            with prefix_errors("data.photos"):
                photos.digests(resources.cache)
            with (
                prefix_errors("data", about="num_workers: "),
                prefix_errors("data.backbone", about="model "),
                prefix_errors("data.photos", about=photos.kind),
            ):
                found = find(resources)
        except StoreError as error:
            raise UserError(f"data.cache_dir: {error}; choose another folder") from error
        bad = {photos.names[place % len(photos)]: reason for place, reason in found.remarks.items()}
        if bad and self.on_bad_image == "stop":
            listed = ", ".join(f"{name} ({reason})" for name, reason in bad.items())
            raise UserError(
                f"data.photos: {len(bad)} of {len(photos)} {split} photos cannot be decoded: {listed}; "
                "mend or remove them, or leave them out with data.on_bad_image=skip"
            )
        self.unreadable.update(bad)
        return found, torch.tensor([name not in bad for name in photos.names]) if bad else None

    def require_readable(self, classes: tuple[str, ...], labels: Tensor, split: str) -> None:
        """Refuse a class of which no photo can be decoded.

        Args:
            classes: Names of the classes.
            labels: Of the readable photos.
            split: What the split is called.
        """
        lost = [name for label, name in enumerate(classes) if label not in labels]
        if lost:
            raise UserError(f"data.photos: none of the {split} photos of class {', '.join(lost)} can be decoded")
