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
# Cosine similarity from which photos look alike. In docs/protocol.md, different photos had at most 0.98, and copies of
# another size or compression at least 0.998.
THRESHOLD = 0.995
# Similarities in memory at once, 64 MB.
BLOCK = 2**24
# Pictures that are decoded at once, and pictures whose thumbnails are computed at once, which fit into a CPU's cache.
CHUNK, PHOTOS_AT_ONCE = 64, 16


def thumbnails(pixels: Tensor) -> Tensor:
    """Compute the thumbnails that represent pictures in comparisons.

    Args:
        pixels: Prepared pictures, uint8 `[pictures, 3, side, side]`.

    Returns:
        Mean grey of 8 x 8 fields, centred and of unit length, `[pictures, 64]`; zeros for a uniformly grey picture.
    """
    # Sums of integers are exact, and take less than half the time of sums of floats.
    grey = pixels.sum(1, keepdim=True, dtype=torch.int16).float() / 3
    fields = adaptive_avg_pool2d(grey, SIDE).flatten(1)
    # With this `eps`, rounding errors in a uniformly grey picture stay small.
    return normalize(fields - fields.mean(1, keepdim=True), eps=1.0)


def read_thumbnails(photos: Photos, preprocessing: Preprocessing, workers: int | None, title: str) -> Tensor:
    """Decode photos, and return their thumbnails, `[photos, 64]`; zeros for a photo that cannot be decoded.

    Args:
        photos: The photos.
        preprocessing: How they are prepared.
        workers: Processes that decode; None for one per processor.
        title: Title of the progress bar.
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
        For each picture that looks like another, the indices of the most similar other one and of the picture.
    """
    pairs = []
    step = max(1, BLOCK // max(1, len(pictures if others is None else others)))
    for first in range(0, len(pictures), step):
        block = pictures[first : first + step]
        candidates = pictures[: first + len(block)] if others is None else others
        similarities = block @ candidates.mT
        if others is None:
            # Zero for the picture itself and later ones.
            similarities = similarities.tril(first - 1)
        similarity, closest = similarities.max(1)
        pairs += [(int(closest[i]), first + i) for i in torch.nonzero(similarity > THRESHOLD)[:, 0].tolist()]
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
    train_digests, validation_digests = train.packed_digests(), validation.packed_digests()
    names = [[train.names[i], validation.names[j]] for i, j in pairs if train_digests[i] != validation_digests[j]]
    if names:
        listed = quote(names, " ~ ")
        say(f"WARNING: data.photos: {len(names)} validation photos look like a training photo: {listed}")
    return names
