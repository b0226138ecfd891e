"""Sources that list both splits together, and a seeded split for data sets that come without one."""

import hashlib
from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headstart.datamodules.photos.photo_source import Photos, PhotoSource
from headstart.output.errors import UserError


def hold_out(
    names: Sequence[str], labels: NDArray[np.int64], classes: Sequence[str], fraction: float, seed: int
) -> NDArray[np.bool_]:
    """Choose the photos that are held out for validation, the same share of every class.

    A digest of the seed and the name ranks the photos. The choice is thus the same on every system and with every
    version of NumPy.

    Args:
        names: Name of each photo, unique, `[samples]`.
        labels: Class of each photo, `[samples]`.
        classes: Names of the classes.
        fraction: Share of every class that is held out; at least one photo is, and at least one is not.
        seed: Seed of the choice.

    Returns:
        Whether each photo is held out, `[samples]`.

    Raises:
        UserError: A class has fewer than two photos.
    """
    held = np.zeros(len(names), dtype=np.bool_)
    for label, title in enumerate(classes):
        members = np.flatnonzero(labels == label).tolist()
        if len(members) < 2:
            raise UserError(
                f"class {title} needs two or more photos, to hold some out for validation; it has {len(members)}"
            )
        ranks = {i: hashlib.sha256(f"{seed}/{names[i]}".encode(errors="surrogateescape")).digest() for i in members}
        size = min(max(round(fraction * len(members)), 1), len(members) - 1)
        held[sorted(members, key=ranks.__getitem__)[:size]] = True
    return held


class SplitSource(PhotoSource):
    """A data set whose splits are listed together; where there is one alone, a seeded part is held out for validation.

    Attributes:
        validation_fraction: Share of each class that is held out; None for nothing.
        split_seed: Seed of the choice.
    """

    validation_fraction: float | None = None
    split_seed: int = 0

    @abstractmethod
    def splits(self) -> tuple[Photos, Photos | None]:
        """Return the training and the validation photos; None where the latter are a part of the former."""

    def train(self) -> Photos:
        """List the training photos."""
        train, validation = self.splits()
        return train if validation is not None or self.validation_fraction is None else self._split(train, held=False)

    def validation(self) -> Photos:
        """List the validation photos."""
        train, validation = self.splits()
        return self._split(train, held=True) if validation is None else validation

    def both(self) -> tuple[Photos, Photos]:
        """Return the photos of both splits, listed once."""
        if (type(self).train, type(self).validation) != (SplitSource.train, SplitSource.validation):
            # A class of the user's own returns others.
            return super().both()
        train, validation = self.splits()
        if validation is None:
            return self._split(train, held=False), self._split(train, held=True)
        return train, validation

    def _split(self, photos: Photos, held: bool) -> Photos:
        if self.validation_fraction is None:
            raise UserError(
                f"validation_fraction: required, since all photos of {self.name} are for training; "
                "give a share to hold out, such as 0.2"
            )
        chosen = hold_out(photos.names, photos.labels, photos.classes, self.validation_fraction, self.split_seed)
        return photos.subset(np.flatnonzero(chosen == held))
