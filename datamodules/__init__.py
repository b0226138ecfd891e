"""Data: photos, the stream of frozen features and the stream of photos.

What is exported is imported when it is asked for: to name a data set takes no torch, to feed a stream does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headstart.datamodules.drawings.drawn_photos import DrawnObjects as DrawnObjects
    from headstart.datamodules.drawings.drawn_photos import DrawnPets as DrawnPets
    from headstart.datamodules.drawings.drawn_scenes import DrawnScenes as DrawnScenes
    from headstart.datamodules.feature_stream import FeatureStream as FeatureStream
    from headstart.datamodules.photo_stream import PhotoStream as PhotoStream
    from headstart.datamodules.photos.ants_and_bees import AntsAndBees as AntsAndBees
    from headstart.datamodules.photos.cats_and_dogs import CatsAndDogs as CatsAndDogs
    from headstart.datamodules.photos.class_folders import ClassFolders as ClassFolders
    from headstart.datamodules.photos.class_subset import ClassSubset as ClassSubset
    from headstart.datamodules.photos.csv_photos import CsvPhotos as CsvPhotos
    from headstart.datamodules.photos.hugging_face_dataset import HuggingFaceDataset as HuggingFaceDataset
    from headstart.datamodules.photos.label_maps import MapFolders as MapFolders
    from headstart.datamodules.photos.label_maps import TorchvisionSegmentation as TorchvisionSegmentation
    from headstart.datamodules.photos.oxford_pets import OxfordPets as OxfordPets
    from headstart.datamodules.photos.photo_source import PhotoFiles as PhotoFiles
    from headstart.datamodules.photos.photo_source import Photos as Photos
    from headstart.datamodules.photos.photo_source import PhotoSource as PhotoSource
    from headstart.datamodules.photos.torchvision_dataset import TorchvisionDataset as TorchvisionDataset
    from headstart.datamodules.photos.unsplit_class_folders import UnsplitClassFolders as UnsplitClassFolders
    from headstart.datamodules.sample_stream import SampleStream as SampleStream

HOMES = {
    "AntsAndBees": "photos.ants_and_bees",
    "CatsAndDogs": "photos.cats_and_dogs",
    "ClassFolders": "photos.class_folders",
    "ClassSubset": "photos.class_subset",
    "CsvPhotos": "photos.csv_photos",
    "DrawnObjects": "drawings.drawn_photos",
    "DrawnPets": "drawings.drawn_photos",
    "DrawnScenes": "drawings.drawn_scenes",
    "FeatureStream": "feature_stream",
    "HuggingFaceDataset": "photos.hugging_face_dataset",
    "MapFolders": "photos.label_maps",
    "OxfordPets": "photos.oxford_pets",
    "PhotoFiles": "photos.photo_source",
    "PhotoSource": "photos.photo_source",
    "PhotoStream": "photo_stream",
    "Photos": "photos.photo_source",
    "SampleStream": "sample_stream",
    "TorchvisionDataset": "photos.torchvision_dataset",
    "TorchvisionSegmentation": "photos.label_maps",
    "UnsplitClassFolders": "photos.unsplit_class_folders",
}

__all__ = list(HOMES)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever is exported under the name
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)


def import_photo_sources() -> None:
    """Import every source of photos that is exported: a class is known by its bare name once it is imported."""
    for home in sorted({home for home in HOMES.values() if home.startswith(("photos.", "drawings."))}):
        import_module(f"{__name__}.{home}")
