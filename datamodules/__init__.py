"""Data: photos, the stream of frozen features and the stream of photos."""

from datamodules.drawings.drawn_photos import DrawnPets
from datamodules.feature_stream import FeatureStream
from datamodules.photo_stream import PhotoStream
from datamodules.photos.cats_and_dogs import CatsAndDogs
from datamodules.photos.class_folders import ClassFolders
from datamodules.photos.class_subset import ClassSubset
from datamodules.photos.oxford_pets import OxfordPets
from datamodules.photos.torchvision_dataset import TorchvisionDataset
from datamodules.photos.unsplit_class_folders import UnsplitClassFolders
from datamodules.sample_stream import SampleStream

__all__ = [
    "CatsAndDogs",
    "ClassFolders",
    "ClassSubset",
    "DrawnPets",
    "FeatureStream",
    "OxfordPets",
    "PhotoStream",
    "SampleStream",
    "TorchvisionDataset",
    "UnsplitClassFolders",
]
