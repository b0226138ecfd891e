"""Photos with a label map each: in folders of photos and maps, or in a data set of torchvision."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image

from headstart.datamodules.photos.class_folders import VALIDATION_FOLDERS
from headstart.datamodules.photos.folder_listing import read_folder, require_folder
from headstart.datamodules.photos.photo_source import PhotoFiles, Photos, PhotoSource
from headstart.datamodules.photos.picture_decoding import upright
from headstart.datamodules.photos.torchvision_dataset import Arguments, TorchvisionSource
from headstart.modules.networks.preprocessing import NO_CLASS
from headstart.output.errors import UserError, require_different

ONE_CHANNEL = ("L", "P")
# Names without a partner that a message lists.
QUOTED = 5
VOC_CLASSES = (
    *("background", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor"),
)


class MapFiles(PhotoFiles):
    """Label maps in files of one channel, grey or with a palette, whose values are the labels.

    Args:
        root: Folder that the names are relative to.
        names: Paths relative to the root, with forward slashes.
        classes: Names of the classes.
        values: Label of each value; by default the value itself.
    """

    kind = "label map"

    def __init__(
        self, root: Path, names: Sequence[str], classes: Sequence[str], values: Mapping[int, int] | None = None
    ) -> None:
        super().__init__(root, names, [0] * len(names), classes)
        self.values = dict(values or {})

    @property
    def decoding(self) -> str:
        """Name of the function that decodes the maps, with the number of labels and those of values."""
        return f"{super().decoding} {len(self.classes)} {self.values}"

    def read(self, index: int) -> Image.Image:
        """Decode one map."""
        with Image.open(self.open(index)) as opened:
            if opened.mode not in ONE_CHANNEL:
                raise OSError(f"a label map has one channel of 8 bits, grey or with a palette, not {opened.mode}")
            opened.load()
            values = np.asarray(upright(opened, in_place=True))

        table = np.arange(256)
        table[list(self.values)] = list(self.values.values())
        labels = table[values].astype(np.uint8)
        unknown = labels[(labels >= len(self.classes)) & (labels != NO_CLASS)]
        if unknown.size:
            raise OSError(f"label {unknown[0]} is none of the {len(self.classes)} classes from 0, nor {NO_CLASS}")
        return Image.fromarray(np.repeat(labels[..., None], 3, 2))


class MapFolders(PhotoSource):
    """Photos in `train/images/` with label maps of the same names in `train/masks/`.

    `validation/` or `val/` holds the validation photos in the same way. A map is a PNG with one channel, grey or with a
    palette. Its values are labels from 0; 255 is a pixel without a class.

    Args:
        root: Folder that holds train/ and validation/. Its name is the data set's name in the results.
        classes: Names of the classes, from label 0.
    """

    def __init__(self, root: str, classes: list[str]) -> None:
        self.root = Path(root).expanduser()
        self.classes = classes
        self.name = self.root.resolve().name

    def train(self) -> Photos:
        """List the photos in train/."""
        return self._read("train")

    def validation(self) -> Photos:
        """List the photos in validation/ or val/."""
        return self._read(*VALIDATION_FOLDERS)

    def _read(self, *names: str) -> Photos:
        require_folder(self.root, "give the folder that holds train/ and validation/")
        require_different("classes", self.classes, minimum=2)
        split = next((self.root / name for name in names if (self.root / name).is_dir()), None)
        if split is None:
            folders = ", ".join(f"{name}/" for name in read_folder(self.root).folders) or "no folder"
            raise UserError(f"root: {self.root} must hold {' or '.join(names)}; it holds {folders}")

        if not all((split / kind).is_dir() for kind in ("images", "masks")):
            raise UserError(f"root: {split} must hold images/ with photos and masks/ with a label map of each")
        listed = {kind: read_folder(split / kind) for kind in ("images", "masks")}
        photos, maps = (
            {Path(name).stem: split / kind / name for name in folder.photos} for kind, folder in listed.items()
        )
        alone = sorted(photos.keys() ^ maps.keys())
        count = sum(len(folder.photos) for folder in listed.values())
        if not photos or alone or count > 2 * len(photos):
            raise UserError(
                f"root: {split} must hold images/ with photos and masks/ with one label map of the same name for each; "
                f"it has {count} files, of which {len(alone)} are without a partner: {', '.join(alone[:QUOTED])}"
            )

        paired = pair(split, list(photos.values()), [maps[stem] for stem in photos], self.classes)
        paired.left_out = {
            f"{split.name}/{kind}/{name}": other
            for kind, folder in listed.items()
            for name, other in folder.others.items()
        }
        return paired


class TorchvisionSegmentation(TorchvisionSource):
    """A segmentation data set of torchvision: Pascal VOC 2012, or the pets of Oxford-IIIT.

    VOC's training and validation photos are those of its lists `train` and `val`. Of the pets' maps, made of pet,
    background and border, the border has no class; training is on `trainval`, validation on `test`.

    Args:
        name: Name of torchvision's class.
        root: Root of torchvision's class. The default is a folder in the cache.
        download: Fetch the data set with torchvision, if the root is missing or empty.
    """

    in_one_archive = True

    def __init__(
        self, name: Literal["VOCSegmentation", "OxfordIIITPet"], root: str | None = None, download: bool = False
    ) -> None:
        super().__init__(name, f"datasets/torchvision/{name}-maps", root, download)
        self.name = name

    def arguments(self) -> tuple[Arguments, Arguments]:
        """Return the arguments of torchvision's class for both splits."""
        if self.name == "VOCSegmentation":
            return {"image_set": "train"}, {"image_set": "val"}
        train, validation = ({"split": split, "target_types": "segmentation"} for split in ("trainval", "test"))
        return train, validation

    def convert(self, dataset: Any) -> Photos:  # noqa: ANN401 - one of torchvision's classes
        """List the photos and label maps of a data set."""
        if self.name == "VOCSegmentation":
            return pair(self.root, dataset.images, dataset.masks, VOC_CLASSES)
        return pair(self.root, dataset._images, dataset._segs, ("background", "pet"), {1: 1, 2: 0, 3: NO_CLASS})


def pair(
    root: Path,
    photos: Sequence[str | Path],
    maps: Sequence[str | Path],
    classes: Sequence[str],
    values: Mapping[int, int] | None = None,
) -> Photos:
    """Return photos in files with their label maps.

    Args:
        root: Folder that the names are relative to.
        photos: Paths of the photos.
        maps: Paths of their label maps.
        classes: Names of the classes.
        values: Label of each value of a map; by default the value itself.
    """
    names, of_maps = ([Path(path).relative_to(root).as_posix() for path in paths] for paths in (photos, maps))
    paired = PhotoFiles(root, names, [0] * len(names), classes)
    paired.maps = MapFiles(root, of_maps, classes, values)
    return paired
