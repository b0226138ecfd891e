"""Pictures that are decoded on demand, and some of them on their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from headstart.datamodules.photos.picture_decoding import DECODING
from headstart.modules.provenance import user_digests
from headstart.store.feature_table import Digests, in_hexadecimal, pack
from headstart.store.json_digest import digest_of

# Pictures that are digested at once: what waits for a thread takes more memory than a digest.
SPAN = 2**14


class Pictures(ABC):
    """Pictures that are decoded on demand.

    Attributes:
        kind: Noun for one of them, for messages.
        names: Name of each picture for messages, unique, `[samples]`.
    """

    kind = "photo"
    names: Sequence[str]
    _known: Digests | None = None
    # It is digested once, and goes along to other processes, which may have loaded other modules.
    _own_code: str | None = None

    def __len__(self) -> int:
        """Return the number of pictures."""
        return len(self.names)

    @abstractmethod
    def read(self, index: int) -> Image.Image:
        """Decode one picture.

        Args:
            index: Its index, from 0.

        Returns:
            The picture in RGB.

        Raises:
            OSError: The picture cannot be decoded.
        """

    @abstractmethod
    def digest(self, index: int) -> str:
        """Digest the content of one picture, by which its stored rows are found, whatever it is called.

        Args:
            index: Its index, from 0.

        Returns:
            A SHA-256, hexadecimal: of a file's bytes, of pixels, or of anything else that decides the picture.

        Raises:
            UserError: It cannot be read.
        """

    @property
    def own_code(self) -> str:
        """Digest of the user's own code, where such code decodes the pictures; empty where the suite's does."""
        if self._own_code is None:
            digests = user_digests(type(self).__mro__)
            self._own_code = digest_of(digests) if digests else ""
        return self._own_code

    @property
    def decoding(self) -> str:
        """Name and rule of the function that decodes the pictures, and own code: rows of two are never mixed."""
        read = type(self).read
        return f"{read.__module__}.{read.__qualname__} {DECODING} {self.own_code}".strip()

    def part(self, indices: NDArray[np.int64]) -> Pictures:
        """Return some of the pictures on their own, to be pickled for another process.

        They hold all pictures unless a data set has a smaller form.

        Args:
            indices: Indices of the pictures.
        """
        return PicturePart(self, indices)

    def digests(self, cache: Path | None = None) -> list[str]:
        """Digest the content of every picture, as `packed_digests`; returns texts, which take four times the memory."""
        return in_hexadecimal(self.packed_digests(cache))

    def packed_digests(self, cache: Path | None = None) -> Digests:
        """Digest the content of every picture, side by side, and each once.

        Args:
            cache: The cache folder, which remembers the digests of files that have not changed since.

        Returns:
            Their SHA-256, 32 bytes each, `[samples]`.
        """
        self.know(np.arange(len(self)), cache)
        return self.known

    def know(self, indices: NDArray[np.int64], cache: Path | None) -> Digests:
        """Digest some pictures, each once.

        Args:
            indices: Their indices.
            cache: As for `packed_digests`.
        """
        missing = np.unique(indices[self.known[indices] == b""])
        for first in range(0, len(missing), SPAN):
            span = missing[first : first + SPAN]
            self.known[span] = self.digest_some(span.tolist(), cache)
        return self.known[indices]

    @property
    def known(self) -> Digests:
        """The digests that are known, 32 bytes each, and empty bytes for other pictures, `[samples]`."""
        if self._known is None:
            self._known = np.zeros(len(self), "S32")
        return self._known

    def known_digest(self, index: int) -> str | None:
        """Return the digest of one picture; None if it is not known."""
        return in_hexadecimal(self.known[index : index + 1])[0] if self.known[index] else None

    def digest_some(self, indices: list[int], cache: Path | None) -> Digests:
        """Digest some pictures, side by side.

        Args:
            indices: Their indices, each once.
            cache: As for `packed_digests`.
        """
        with ThreadPoolExecutor() as pool:
            return pack(list(pool.map(self.digest, indices)))


class PicturePart(Pictures):
    """Some of other pictures.

    Args:
        pictures: The pictures to select from.
        indices: Indices of the selected ones.
    """

    def __init__(self, pictures: Pictures, indices: NDArray[np.int64]) -> None:
        self.pictures = pictures
        self.kind = pictures.kind
        self.indices = indices
        self.names = [pictures.names[index] for index in indices]

    @property
    def own_code(self) -> str:
        """Digest of the code that decodes the pictures."""
        return self.pictures.own_code

    @property
    def decoding(self) -> str:
        """Name of the function that decodes the pictures."""
        return self.pictures.decoding

    def read(self, index: int) -> Image.Image:
        """Decode one of the selected pictures."""
        return self.pictures.read(int(self.indices[index]))

    def part(self, indices: NDArray[np.int64]) -> Pictures:
        """Return some of the selected pictures on their own."""
        return self.pictures.part(self.indices[indices])

    def digest(self, index: int) -> str:
        """Digest one of the selected pictures."""
        return self.pictures.digest(int(self.indices[index]))

    def digest_some(self, indices: list[int], cache: Path | None) -> Digests:
        """Digest some of the selected pictures."""
        return self.pictures.know(self.indices[indices], cache)
