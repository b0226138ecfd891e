"""Features of pictures as an array: those that comparisons feed, from the same store."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from headstart.datamodules.feature_extraction import Choice, describe, request_of
from headstart.datamodules.photos.folder_listing import Listing
from headstart.datamodules.photos.locations import is_remote, join
from headstart.datamodules.photos.photo_source import PhotoFiles, Photos, Pictures
from headstart.datamodules.row_policy import Precision, Resources
from headstart.datamodules.rows import find
from headstart.engines.options import EngineOptions
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.output.errors import UserError, prefix_errors
from headstart.output.parser import OneLineErrorParser
from headstart.store.cache import cache_folder

if TYPE_CHECKING:
    from headstart.modules.networks.backbone import Backbone

Picture = str | Path | NDArray[np.uint8]


def embed(
    photos: str | Path | Sequence[Picture] | NDArray[np.uint8] | Pictures,
    backbone: str | Mapping[str, Any] | BackboneSpec = "mobilenet_v2",
    *,
    precision: Literal["auto", "float32", "bfloat16"] = "auto",
    device: str = "auto",
    num_workers: int | None = None,
    cache_dir: str | None = None,
    seed: int = 0,
) -> NDArray[np.float32]:
    """Compute features of pictures with a frozen backbone: what enters its classifier.

    They are those that a comparison feeds, from the same store: stored rows are used again, whether a
    comparison or another call has computed them, and whatever the files are called.

    Args:
        photos: A folder, whose pictures come first, then those of its folders, each in the order of their names; a list
            of files; a list of arrays `[height, width, 3]` in uint8, or one array `[samples, height, width, 3]`; or
            the photos of a data set, such as `DrawnPets().train()`.
        backbone: Name of a network, with the weights that are its library's default; or the options of
            `--data.backbone` by their names, `{"name": "resnet50", "weights": "IMAGENET1K_V2"}`.
        precision: Arithmetic of the network; `auto` takes bfloat16 where the processor or GPU gains from it.
        device: Where the network runs; `auto` takes a GPU where there is one.
        num_workers: Processes that decode; None for one per processor.
        cache_dir: Folder of the store; by default that in HEADSTART_CACHE, else one in the user's cache directory.
        seed: Seed of random weights.

    Returns:
        Features `[samples, width]`, in the order of the pictures.

    Raises:
        UserError: There are no pictures, one cannot be decoded, or there is no such network.

    Example:
        >>> from headstart.datamodules import DrawnPets
        >>> embed(DrawnPets(train_size=4).train(), {"weights": "embedded"}).shape
        (4, 1280)
    """
    pictures = read_pictures(photos)
    chosen = _read_spec(backbone)
    embedded = embed_readable(pictures, chosen, precision, device, num_workers, cache_dir, seed)
    if embedded.unreadable:
        first, *others = embedded.unreadable
        raise UserError(
            f"photos: {pictures.names[first]} cannot be decoded ({embedded.unreadable[first]})"
            f"{f', nor can {len(others)} more' if others else ''}; leave {'them' if others else 'it'} out"
        )
    return embedded.features


@dataclass(frozen=True)
class Embedded:
    """Features of pictures by one network.

    Attributes:
        features: `[samples, width]`; of a black picture where one cannot be decoded.
        thumbnails: By which pictures are compared, `[samples, 64]`.
        unreadable: Why pictures cannot be decoded, by index.
        backbone: The network.
        digest: SHA-256 of its weights.
        precision: Its arithmetic.
    """

    features: NDArray[np.float32]
    thumbnails: NDArray[np.float32]
    unreadable: dict[int, str]
    backbone: Backbone
    digest: str
    precision: Precision


def embed_readable(
    pictures: Pictures,
    chosen: BackboneSpec,
    precision: Literal["auto", "float32", "bfloat16"] = "auto",
    device: str = "auto",
    num_workers: int | None = None,
    cache_dir: str | None = None,
    seed: int = 0,
    workers: int | None = None,
    ray: str | None = None,
) -> Embedded:
    """Compute features of pictures, also where some cannot be decoded; arguments and errors as for `embed`.

    Args:
        pictures: The pictures.
        chosen: The network.
        precision: As for `embed`.
        device: As for `embed`.
        num_workers: As for `embed`.
        cache_dir: As for `embed`.
        seed: As for `embed`.
        workers: Processes that compute missing rows side by side; by default this one computes them.
        ray: Address of a Ray cluster that computes them instead.
    """
    described, network = describe(Choice(chosen, precision, device, seed))
    engines = EngineOptions(workers, ray)
    stored = find(
        request_of(pictures, described),
        Resources(cache_folder(cache_dir), "features", num_workers, engines=engines),
    )
    features, thumbnails = (np.array(part) for part in np.split(np.asarray(stored.rows), [network.width], axis=1))
    assert described.network.loaded is not None
    return Embedded(features, thumbnails, dict(stored.remarks), network, described.network.loaded, described.precision)


def _read_spec(backbone: str | Mapping[str, Any] | BackboneSpec) -> BackboneSpec:
    if isinstance(backbone, BackboneSpec):
        return backbone
    options = {"name": backbone} if isinstance(backbone, str) else dict(backbone)
    parser = OneLineErrorParser()
    parser.add_class_arguments(BackboneSpec, "backbone")
    spec: BackboneSpec = parser.instantiate_classes(parser.parse_object({"backbone": options})).backbone
    return spec


def read_pictures(photos: str | Path | Sequence[Picture] | NDArray[np.uint8] | Pictures) -> Pictures:
    """List pictures; arguments and errors as for `embed`."""
    if isinstance(photos, Pictures):
        return photos
    if isinstance(photos, str | Path):
        return _in_folder(str(photos) if is_remote(photos) else Path(photos).expanduser())
    files = list(photos)
    if not files:
        raise UserError(f"photos: there are none in {str(photos)!r}; give a folder of pictures, files or arrays")
    if any(isinstance(each, np.ndarray) for each in files):
        return _Arrays([np.asarray(each) for each in files])
    names = [str(each) if is_remote(str(each)) else str(Path(str(each)).expanduser().absolute()) for each in files]
    return PhotoFiles(Path("/"), names, [0] * len(names), ["photos"])


def _in_folder(root: str | Path) -> Photos:
    """List the pictures in a folder and its folders, which are their classes unless some lie outside of them."""
    if isinstance(root, Path) and not root.is_dir():
        raise UserError(f"photos: there is no folder {root}; give one that holds pictures, or a list of files")
    with prefix_errors("photos"):
        listing = Listing(root)
        listed = [(name, listing.folder(name).photos) for name in ("", *listing.folder().folders)]
    listed = [(folder, names) for folder, names in listed if names]
    if not listed:
        raise UserError(f"photos: there are none in {str(root)!r}; give a folder of pictures, files or arrays")

    below = [f"{folder}/{name}" if folder else name for folder, found in listed for name in found]
    base = str(root.absolute()) if isinstance(root, Path) else listing.root
    names = [join(base, name) for name in below]
    if not listed[0][0]:
        return PhotoFiles(Path("/"), names, [0] * len(names), ["photos"])
    labels = [label for label, (_, found) in enumerate(listed) for _ in found]
    return PhotoFiles(Path("/"), names, labels, [folder for folder, _ in listed])


class _Arrays(Pictures):
    """Pictures in memory.

    Args:
        arrays: `[height, width, 3]` in uint8 each.
    """

    def __init__(self, arrays: Sequence[NDArray[Any]]) -> None:
        for index, array in enumerate(arrays):
            if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3:
                raise UserError(
                    f"photos: array {index} is {array.dtype} {list(array.shape)}; give uint8 [height, width, 3]"
                )
        self.arrays = arrays
        self.names = [f"array {index}" for index in range(len(arrays))]

    def read(self, index: int) -> Image.Image:
        """Return one picture."""
        return Image.fromarray(self.arrays[index])

    def digest(self, index: int) -> str:
        """Digest the pixels of one picture."""
        array = self.arrays[index]
        return hashlib.sha256(repr(array.shape).encode() + array.tobytes()).hexdigest()
