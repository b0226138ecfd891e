"""The photos of cats and dogs of the Oxford-IIIT Pet data set."""

from typing import Any

from headstart.datamodules.photos.photo_source import PhotoFiles
from headstart.datamodules.photos.torchvision_dataset import Arguments, TorchvisionSource


class OxfordPets(TorchvisionSource):
    """Oxford-IIIT Pet with two classes, cat and dog; training on `trainval`, validation on `test`.

    Args:
        root: Folder that holds torchvision's oxford-iiit-pet/. The default is a folder in the cache.
        download: Fetch the data set with torchvision, if it is missing.
    """

    name = "oxford_pets"
    subfolder = "oxford-iiit-pet"
    in_one_archive = True

    def __init__(self, root: str | None = None, download: bool = False) -> None:
        super().__init__("OxfordIIITPet", "datasets", root, download)

    def arguments(self) -> tuple[Arguments, Arguments]:
        """Return the arguments of torchvision's class for both splits."""
        train, validation = ({"split": split, "target_types": "binary-category"} for split in ("trainval", "test"))
        return train, validation

    def convert(self, dataset: Any) -> PhotoFiles:  # noqa: ANN401 - one of torchvision's classes
        """List the photos of a data set; torchvision offers the labels in public only along with decoded photos."""
        missing = [path.name for path in dataset._images if not path.is_file()]
        if missing:
            raise FileNotFoundError(f"{len(missing)} photos are missing, {missing[0]} first")
        folder = self.root / self.subfolder
        names = [path.relative_to(folder).as_posix() for path in dataset._images]
        return PhotoFiles(folder, names, dataset._bin_labels, dataset.bin_classes)
