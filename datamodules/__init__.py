"""Data: photos, the stream of frozen features and the stream of photos."""

from datamodules.drawings.drawn_photos import DrawnObjects, DrawnPets
from datamodules.feature_stream import FeatureStream
from datamodules.photo_stream import PhotoStream
from datamodules.photos.cats_and_dogs import CatsAndDogs
from datamodules.photos.class_folders import ClassFolders
from datamodules.photos.class_subset import ClassSubset
from datamodules.photos.csv_photos import CsvPhotos
from datamodules.photos.hugging_face_dataset import HuggingFaceDataset
from datamodules.photos.oxford_pets import OxfordPets
from datamodules.photos.photo_source import PhotoFiles, Photos, PhotoSource
from datamodules.photos.torchvision_dataset import TorchvisionDataset
from datamodules.photos.unsplit_class_folders import UnsplitClassFolders
from datamodules.sample_stream import SampleStream

__all__ = [
    "CatsAndDogs",
    "ClassFolders",
    "ClassSubset",
    "CsvPhotos",
    "DrawnObjects",
    "DrawnPets",
    "FeatureStream",
    "HuggingFaceDataset",
    "OxfordPets",
    "PhotoFiles",
    "PhotoSource",
    "PhotoStream",
    "Photos",
    "SampleStream",
    "TorchvisionDataset",
    "UnsplitClassFolders",
]
