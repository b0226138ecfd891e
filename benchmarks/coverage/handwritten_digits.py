"""The handwritten digits that scikit-learn brings, as a data set: real pictures of ten classes without a download."""

import hashlib

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from sklearn.datasets import load_digits

from headstart.datamodules.photos.photo_source import Photos, PhotoSource

# Every third picture is for validation.
THIRD = 3
SIDE, BRIGHTEST = 64, 16


class Digits(Photos):
    """Digits of 8 x 8 pixels, enlarged.

    Args:
        pixels: Brightness from 0 to 16, `[pictures, 8, 8]`.
        labels: The digits, `[pictures]`.
        names: Names of the pictures.
    """

    def __init__(self, pixels: NDArray[np.float64], labels: NDArray[np.int64], names: list[str]) -> None:
        self.pixels, self.labels, self.names = (pixels * (255 / BRIGHTEST)).astype(np.uint8), labels, names
        self.classes = tuple(map(str, range(10)))

    def read(self, index: int) -> Image.Image:
        """Return one picture."""
        return Image.fromarray(self.pixels[index]).resize((SIDE, SIDE), Image.Resampling.BICUBIC).convert("RGB")

    def digest(self, index: int) -> str:
        """Digest one picture."""
        return hashlib.sha256(self.pixels[index].tobytes()).hexdigest()


class HandwrittenDigits(PhotoSource):
    """Handwritten digits, two thirds for training.

    Source: E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning Repository,
    1998; the test part, which scikit-learn brings.
    """

    name = "digits"

    def train(self) -> Photos:
        """Return the training pictures."""
        return self._pictures(lambda index: index % THIRD != 0)

    def validation(self) -> Photos:
        """Return the validation pictures."""
        return self._pictures(lambda index: index % THIRD == 0)

    def _pictures(self, chosen) -> Photos:
        digits = load_digits()
        indices = np.flatnonzero(chosen(np.arange(len(digits.target))))
        names = [f"digit {index}" for index in indices]
        return Digits(digits.images[indices], digits.target[indices].astype(np.int64), names)
