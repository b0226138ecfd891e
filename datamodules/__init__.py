"""Data: photos, the stream of frozen features and the stream of photos.

Exported names are imported when they are first used: naming a data set needs no torch, feeding a stream does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from headstart.output.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from headstart.datamodules.feature_stream import FeatureStream as FeatureStream
    from headstart.datamodules.photo_stream import PhotoStream as PhotoStream
    from headstart.datamodules.photos.class_folders import ClassFolders as ClassFolders
    from headstart.datamodules.photos.class_folders import UnsplitClassFolders as UnsplitClassFolders
    from headstart.datamodules.photos.class_subset import ClassSubset as ClassSubset
    from headstart.datamodules.photos.csv_photos import CsvPhotos as CsvPhotos
    from headstart.datamodules.photos.dataset_photos import OwnDataset as OwnDataset
    from headstart.datamodules.photos.drawn_photos import DrawnObjects as DrawnObjects
    from headstart.datamodules.photos.drawn_photos import DrawnPets as DrawnPets
    from headstart.datamodules.photos.drawn_photos import DrawnScenes as DrawnScenes
    from headstart.datamodules.photos.hugging_face_dataset import HuggingFaceDataset as HuggingFaceDataset
    from headstart.datamodules.photos.label_maps import MapFolders as MapFolders
    from headstart.datamodules.photos.photo_source import PhotoFiles as PhotoFiles
    from headstart.datamodules.photos.photo_source import Photos as Photos
    from headstart.datamodules.photos.photo_source import PhotoSource as PhotoSource
    from headstart.datamodules.photos.public_archives import AntsAndBees as AntsAndBees
    from headstart.datamodules.photos.public_archives import CatsAndDogs as CatsAndDogs
    from headstart.datamodules.photos.torchvision_dataset import OxfordPets as OxfordPets
    from headstart.datamodules.photos.torchvision_dataset import TorchvisionDataset as TorchvisionDataset
    from headstart.datamodules.sample_stream import SampleStream as SampleStream

EXPORTS, __getattr__ = lazy_exports(__name__)
__all__ = list(EXPORTS)


def import_photo_sources() -> None:
    """Import every exported source of photos: options know a class by its bare name once it is imported."""
    for home in sorted(set(EXPORTS.values())):
        if home.startswith(f"{__name__}.photos."):
            import_module(home)
