"""Data: photos, the stream of frozen features and the stream of photos."""

from datamodules.cats_and_dogs import CatsAndDogs
from datamodules.class_folders import ClassFolders
from datamodules.drawings import DrawnPets
from datamodules.feature_stream import FeatureStream
from datamodules.oxford_pets import OxfordPets
from datamodules.photo_stream import PhotoStream
from datamodules.sample_stream import SampleStream

__all__ = [
    "CatsAndDogs",
    "ClassFolders",
    "DrawnPets",
    "FeatureStream",
    "OxfordPets",
    "PhotoStream",
    "SampleStream",
]
