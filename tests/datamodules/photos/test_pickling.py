"""Pictures of every kind travel to the processes that decode them."""

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from torchvision.datasets import FakeData

from headstart.datamodules import DrawnObjects, DrawnPets, UnsplitClassFolders
from headstart.datamodules.photos.class_folders import ClassFolders
from headstart.datamodules.photos.class_subset import ClassSubset
from headstart.datamodules.photos.csv_photos import CsvPhotos
from headstart.datamodules.photos.dataset_photos import DatasetPhotos
from headstart.datamodules.photos.photo_source import PhotoFiles, Photos
from headstart.datamodules.photos.pictures import Pictures
from headstart.datamodules.photos.stimuli import Stimuli


def list_in_csv(root: Path) -> Path:
    lines = [f"{path},{path.parent.name},{path.parent.parent.name}" for path in sorted(root.glob("*/*/*.jpg"))]
    (root / "photos.csv").write_text("\n".join(["path,label,split", *lines]))
    return root / "photos.csv"


MAKERS: dict[str, Callable[[Path], Pictures]] = {
    "class folders": lambda root: ClassFolders(str(root)).train(),
    "one folder, split": lambda root: UnsplitClassFolders(str(root / "train")).train(),
    "CSV": lambda root: CsvPhotos(str(list_in_csv(root))).train(),
    "classes of a set": lambda root: ClassSubset(
        ClassFolders(str(root)), list(ClassFolders(str(root)).train().classes)
    ).train(),
    "files": lambda root: PhotoFiles(
        root, [str(path.relative_to(root)) for path in root.glob("*/*/*.jpg")], [0] * 36, ["a"]
    ),
    "torchvision": lambda root: DatasetPhotos(FakeData(4, (3, 8, 8), 2)),
    "drawn pets": lambda root: DrawnPets(4, 4).train(),
    "drawn objects": lambda root: DrawnObjects(4, 4).train(),
    "stimuli": lambda root: Stimuli(["a", "b", "c"], sorted(root.glob("*/*/*.jpg"))[:3]),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_pictures_are_the_same_on_the_other_side(kind: str, photo_folder: Path) -> None:
    pictures = MAKERS[kind](photo_folder)
    some = np.array([2, 0])
    subsets = [pictures.subset(some)] if isinstance(pictures, Photos) else []
    for sent in (pictures, pictures.part(some), *subsets):
        come = pickle.loads(pickle.dumps(sent))
        assert come.names == sent.names
        assert come.digest(1) == sent.digest(1)
        assert come.read(1) == sent.read(1)
