"""Data: photos, the stream of frozen features and the stream of photos."""

from datamodules.cats_and_dogs import CatsAndDogs
from datamodules.class_folders import ClassFolders
from datamodules.class_subset import ClassSubset
from datamodules.drawings import DrawnPets
from datamodules.feature_stream import FeatureStream
from datamodules.oxford_pets import OxfordPets
from datamodules.photo_stream import PhotoStream
from datamodules.sample_stream import SampleStream
from datamodules.torchvision_dataset import TorchvisionDataset
from datamodules.unsplit_class_folders import UnsplitClassFolders

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
