"""Some classes of a larger data set, as a data set of their own."""

from pathlib import Path

import numpy as np

from headstart.datamodules.photos.photo_source import Photos, PhotoSource
from headstart.output.errors import UserError, prefix_errors, require_different

MOST_NAMED = 20


class ClassSubset(PhotoSource):
    """Some classes of another data set.

    Args:
        source: The data set to select from.
        classes: Names of the classes to keep, two or more, numbered in this order.
    """

    def __init__(self, source: PhotoSource, classes: list[str]) -> None:
        self.source = source
        self.classes = classes
        listed = " and ".join(classes) if len(classes) == 2 else f"{len(classes)} classes"
        self.name = f"{source.name}, {listed}"

    def prepare(self, cache: Path | None = None) -> None:
        """Fetch the larger data set, if that is asked for.

        Args:
            cache: The cache folder.
        """
        require_different("classes", self.classes, minimum=2)
        with prefix_errors("source"):
            self.source.prepare(cache)

    def train(self) -> Photos:
        """Select from the training photos."""
        with prefix_errors("source"):
            photos = self.source.train()
        return self._select(photos)

    def validation(self) -> Photos:
        """Select from the validation photos."""
        with prefix_errors("source"):
            photos = self.source.validation()
        return self._select(photos)

    def both(self) -> tuple[Photos, Photos]:
        """Select from the photos of both splits."""
        with prefix_errors("source"):
            train, validation = self.source.both()
        return self._select(train), self._select(validation)

    def _select(self, photos: Photos) -> Photos:
        require_different("classes", self.classes, minimum=2)
        unknown = [name for name in self.classes if name not in photos.classes]
        if unknown:
            more = ", ..." if len(photos.classes) > MOST_NAMED else ""
            raise UserError(
                f"classes: {', '.join(unknown)} not in {self.source.name}, whose classes are "
                f"{', '.join(photos.classes[:MOST_NAMED])}{more}"
            )
        numbers = [photos.classes.index(name) for name in self.classes]
        selected = photos.subset(np.flatnonzero(np.isin(photos.labels, numbers)))
        selected.labels = np.array([numbers.index(label) for label in selected.labels], dtype=np.int64)
        selected.classes = tuple(self.classes)
        return selected
