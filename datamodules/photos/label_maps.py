"""Photos with a label map each, in folders of photos and maps."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from headstart.datamodules.photos.class_folders import VALIDATION_FOLDERS
from headstart.datamodules.photos.folder_listing import read_folder, require_folder
from headstart.datamodules.photos.photo_source import PhotoFiles, Photos, PhotoSource
from headstart.datamodules.photos.picture_decoding import upright
from headstart.modules.networks.preprocessing import NO_CLASS
from headstart.output.errors import UserError, require_different

ONE_CHANNEL = ("L", "P")
# Names without a partner that a message lists.
QUOTED = 5


class MapFiles(PhotoFiles):
    """Label maps in files of one channel, grey or with a palette, whose values are the labels.

    Args:
        root: Folder that the names are relative to.
        names: Paths relative to the root, with forward slashes.
        classes: Names of the classes.
    """

    kind = "label map"

    def __init__(self, root: Path, names: Sequence[str], classes: Sequence[str]) -> None:
        super().__init__(root, names, [0] * len(names), classes)

    @property
    def decoding(self) -> str:
        """Name of the function that decodes the maps, with the number of labels."""
        return f"{super().decoding} {len(self.classes)}"

    def read(self, index: int) -> Image.Image:
        """Decode one map."""
        with Image.open(self.open(index)) as opened:
            if opened.mode not in ONE_CHANNEL:
                raise OSError(f"a label map has one channel of 8 bits, grey or with a palette, not {opened.mode}")
            opened.load()
            labels = np.asarray(upright(opened, in_place=True))

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
            {Path(name).stem: f"{kind}/{name}" for name in folder.photos} for kind, folder in listed.items()
        )
        alone = sorted(photos.keys() ^ maps.keys())
        count = sum(len(folder.photos) for folder in listed.values())
        if not photos or alone or count > 2 * len(photos):
            raise UserError(
                f"root: {split} must hold images/ with photos and masks/ with one label map of the same name for each; "
                f"it has {count} files, of which {len(alone)} are without a partner: {', '.join(alone[:QUOTED])}"
            )

        left_out = {
            f"{split.name}/{kind}/{name}": other
            for kind, folder in listed.items()
            for name, other in folder.others.items()
        }
        paired = PhotoFiles(split, [*photos.values()], [0] * len(photos), self.classes, left_out)
        paired.maps = MapFiles(split, [maps[stem] for stem in photos], self.classes)
        return paired
