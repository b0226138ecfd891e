"""Photos that look alike: copies of another size, compression or brightness."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, normalize

from headstart.datamodules.decoding import Decoder, explain_decoding_errors
from headstart.datamodules.photos.duplicates import quote
from headstart.datamodules.photos.photo_source import Photos
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.output.printable import say
from headstart.output.processors import count_processors
from headstart.output.progress import Progress

SIDE = 8
# See docs/protocol.md: different photos had 0.98 at most, copies of another size or compression 0.998 at least.
ALIKE = 0.995
# Products of thumbnails in memory at once, 64 MB.
BLOCK = 2**24
# Pictures that are decoded at once, and of which thumbnails are computed at once, in a processor's cache.
CHUNK, PHOTOS_AT_ONCE = 64, 16


def thumbnails(pixels: Tensor) -> Tensor:
    """Compute thumbnails, by which pictures are compared.

    Args:
        pixels: Prepared pictures, uint8 `[pictures, 3, side, side]`.

    Returns:
        Mean grey of 8 x 8 fields, less its mean and of length 1, `[pictures, 64]`; zeros for a picture of one grey.
    """
    # Sums of whole numbers take less than half of the time and are exact.
    grey = pixels.sum(1, keepdim=True, dtype=torch.int16).float() / 3
    fields = adaptive_avg_pool2d(grey, SIDE).flatten(1)
    return normalize(fields - fields.mean(1, keepdim=True), eps=1.0)


def read_thumbnails(photos: Photos, preprocessing: Preprocessing, workers: int | None, title: str) -> Tensor:
    """Decode photos, and return their thumbnails, `[photos, 64]`; zeros of one that cannot be decoded.

    Args:
        photos: The photos.
        preprocessing: How they are prepared.
        workers: Processes that decode; None for one per processor.
        title: Title of the progress.
    """
    decoder = Decoder(photos, preprocessing, count_processors() if workers is None else workers, CHUNK, ahead=True)
    computed = []
    with explain_decoding_errors(), Progress(title, len(photos), "photos compared") as progress:
        for pixels, _ in decoder.decode(range(len(photos)), torch.device("cpu")):
            computed += [thumbnails(part) for part in pixels.split(PHOTOS_AT_ONCE)]
            progress.advance(len(pixels))
    return torch.cat(computed)


def find_alike(pictures: Tensor, others: Tensor | None = None) -> list[tuple[int, int]]:
    """Find the pictures that look like another one.

    Args:
        pictures: Thumbnails of the pictures, `[pictures, 64]`.
        others: Thumbnails of the others; by default each picture is compared with those before it.

    Returns:
        Indices of the closest other one and of the picture, for each that has one.
    """
    pairs = []
    step = max(1, BLOCK // max(1, len(pictures if others is None else others)))
    for first in range(0, len(pictures), step):
        block = pictures[first : first + step]
        candidates = pictures[: first + len(block)] if others is None else others
        products = block @ candidates.mT
        likeness, closest = (products.tril(first - 1) if others is None else products).max(1)
        pairs += [(int(closest[i]), first + i) for i in torch.nonzero(likeness > ALIKE)[:, 0].tolist()]
    return pairs


def warn_of_near_duplicates(
    train: Photos, validation: Photos, preprocessing: Preprocessing, workers: int | None
) -> list[list[str]]:
    """Warn of validation photos that look like a training photo, except for those of equal content.

    Args:
        train: Training photos.
        validation: Validation photos.
        preprocessing: How they are prepared.
        workers: Processes that decode them; None for one per processor.

    Returns:
        The names of the training and of the validation photo of each pair.
    """
    splits: Sequence[tuple[str, Photos]] = [("training", train), ("validation", validation)]
    of_train, of_validation = (
        read_thumbnails(photos, preprocessing, workers, f"{split} photos") for split, photos in splits
    )
    pairs = find_alike(of_validation, of_train)
    digests = train.packed_digests(), validation.packed_digests()
    names = [[train.names[i], validation.names[j]] for i, j in pairs if digests[0][i] != digests[1][j]]
    if names:
        listed = quote(names, " ~ ")
        say(f"WARNING: data.photos: {len(names)} validation photos look like a training photo: {listed}")
    return names
