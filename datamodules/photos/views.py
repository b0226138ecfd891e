"""Photos as they are, and views of them with random augmentation, which are the same every time."""

import hashlib
from pathlib import Path

from PIL import Image

from headstart.datamodules.photos.pictures import OfOthers, Pictures
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.store.feature_table import Digests, pack

# Part of the names of stored views. Change it whenever the augmentation changes.
AUGMENTATION = "random resized crop, horizontal flip"


class Views(OfOthers):
    """Every photo as it is, then every photo in a second view, and so on. View k of photo i is at k * photos + i.

    All views but the first are random resized crops, half of them flipped horizontally, by the defaults of
    torchvision's transforms. Their random numbers follow from the photo's content, the number of the view and the seed.

    Args:
        photos: The photos.
        views: Number of views of each.
        seed: Seed of the augmentation.
        preprocessing: How they are prepared afterwards; a view is a square of the side to which photos are scaled.
    """

    def __init__(self, photos: Pictures, views: int, seed: int, preprocessing: Preprocessing) -> None:
        super().__init__(photos)
        self.seed = seed
        self.preprocessing = preprocessing
        self.names = [f"{name}{f' (view {view})' if view else ''}" for view in range(views) for name in photos.names]

    def read(self, index: int) -> Image.Image:
        """Decode one photo, and augment it for another view than the first."""
        view, photo_index = divmod(index, len(self.pictures))
        photo = self.pictures.read(photo_index)
        if not view:
            return photo
        digest = self.pictures.known_digest(photo_index) or self.pictures.digest(photo_index)
        return self._augment(photo, self._name(digest, view))

    def digest(self, index: int) -> str:
        """Digest a photo's content, and for another view than the first the seed of its augmentation."""
        view, photo_index = divmod(index, len(self.pictures))
        return self._name(self.pictures.digest(photo_index), view)

    def digest_some(self, indices: list[int], cache: Path | None) -> Digests:
        """Digest some views, each photo once."""
        digests = self.pictures.digests(cache)
        return pack([self._name(digests[index % len(digests)], index // len(digests)) for index in indices])

    def _name(self, digest: str, view: int) -> str:
        if not view:
            return digest
        return hashlib.sha256(f"{digest}\0{view}\0{self.seed}\0{AUGMENTATION}".encode()).hexdigest()

    def _augment(self, photo: Image.Image, name: str) -> Image.Image:
        import torch
        from torchvision.transforms import v2

        side = self.preprocessing.resize
        crop = v2.RandomResizedCrop(side, interpolation=v2.InterpolationMode(self.preprocessing.interpolation))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(name[:15], 16))
            view: Image.Image = v2.RandomHorizontalFlip()(crop(photo))
        return view
