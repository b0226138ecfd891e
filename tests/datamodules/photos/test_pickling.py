"""Pictures of every kind travel to the processes that decode them."""

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
from torchvision.datasets import FakeData

from headstart.datamodules import ClassFolders, ClassSubset, DrawnPets, DrawnScenes
from headstart.datamodules.photos.dataset_photos import DatasetPhotos
from headstart.datamodules.photos.photo_source import Photos
from headstart.datamodules.photos.pictures import Pictures
from headstart.datamodules.photos.stimuli import Stimuli

MAKERS: dict[str, Callable[[Path], Pictures]] = {
    "files": lambda root: ClassFolders(str(root)).train(),
    "classes of a set": lambda root: ClassSubset(ClassFolders(str(root)), ["light", "dark"]).train(),
    "torchvision": lambda root: DatasetPhotos(FakeData(4, (3, 8, 8), 2)),
    "drawn pets": lambda root: DrawnPets(4, 4).train(),
    "drawn scenes": lambda root: DrawnScenes(["fish"], train_size=4).train(),
    "stimuli": lambda root: Stimuli(["a", "b", "c"], sorted(root.glob("*/*/*.jpg"))[:3]),
}


def test_pictures_are_the_same_on_the_other_side(photo_folder: Path) -> None:
    some = np.array([2, 0])
    for kind, make in MAKERS.items():
        pictures = make(photo_folder)
        for sent in (pictures, pictures.part(some), *([pictures.subset(some)] if isinstance(pictures, Photos) else [])):
            come = pickle.loads(pickle.dumps(sent))
            assert (come.names, come.digest(1), come.read(1)) == (sent.names, sent.digest(1), sent.read(1)), kind
