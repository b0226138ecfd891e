"""Write photos of a data set as files in one folder per class: `headstart write-photos FOLDER --count=200`."""

from jsonargparse.typing import PositiveInt

from headstart.datamodules import DrawnPets, PhotoSource
from headstart.output.errors import UserError
from headstart.output.files import output_folder, replacing
from headstart.output.printable import say


def write_photos(folder: str, photos: PhotoSource | None = None, count: PositiveInt = 200) -> None:
    """Write the first training photos of a data set as `FOLDER/CLASS/NUMBER.png`.

    Args:
        folder: Output folder. Files of the same names are replaced.
        photos: The data set, by default the drawn cats and dogs.
        count: Number of photos to write.

    Raises:
        UserError: The data set has fewer photos, or the folder cannot be written.
    """
    target = output_folder("folder", folder)
    source = photos or DrawnPets()
    source.prepare()
    train = source.train()
    if count > len(train):
        raise UserError(f"count: {count} photos requested, but {source.name} has {len(train)} for training")

    for index in range(count):
        path = target / train.classes[train.labels[index]] / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            train.read(index).save(partial, format="png")
    say(f"wrote {count} photos to {folder}")
