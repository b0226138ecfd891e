"""Write a stimuli catalog of the pictures in a folder: `headstart write-catalog FOLDER --output FILE`."""

import json
import random
from pathlib import Path

from jsonargparse.typing import PositiveInt

from headstart.contract.documents import read_catalog
from headstart.contract.problems import ContractError
from headstart.output.errors import UserError
from headstart.output.files import replacing
from headstart.output.printable import say

SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm"}


def write_catalog(
    folder: str,
    output: str = "stimuli.jsonl",
    dataset_name: str | None = None,
    count: PositiveInt | None = None,
    seed: int = 0,
) -> None:
    """Write a stimuli catalog of the pictures in a folder, one JSON line each, in the order of their paths.

    Files with a backslash in their names and links that lead out of the folder are left out.

    Args:
        folder: Root of the data set.
        output: JSON lines file to write.
        dataset_name: Name of the data set in the catalog. The default is the name of the folder. Set
            HACKATHON_DATASET_ROOT to the folder above it.
        count: Number of pictures, sampled at random. All are used by default.
        seed: Seed of the sample.

    Raises:
        UserError: The folder holds too few pictures, the catalog would break the contract, or it cannot be written.
    """
    root = Path(folder)
    found = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if _is_picture_of(path, root))
    if not found or (count or 0) > len(found):
        raise UserError(f"folder: {folder!r} holds {len(found)} pictures, but {count or 'some'} are needed")
    if count is not None:
        found = sorted(random.Random(seed).sample(found, int(count)))
    name = dataset_name or root.resolve().name
    lines = [json.dumps({"dataset_name": name, "image_identifier": path}) for path in found]
    try:
        with replacing(Path(output)) as partial:
            partial.write_text("\n".join(lines) + "\n")
            read_catalog(partial, partial.stat().st_size)
    except ContractError as error:
        document = f"stimuli catalog {output}"
        raise ContractError(document, error.problems) from error
    except OSError as error:
        raise UserError(f"output: {output!r} cannot be written: {error.strerror}") from error
    say(f"wrote {output}: {len(lines)} stimuli")


def _is_picture_of(path: Path, root: Path) -> bool:
    """Whether a path is a picture in the folder, links followed, with a name that the contract allows."""
    named = path.suffix.lower() in SUFFIXES and "\\" not in path.relative_to(root).as_posix()
    return named and path.is_file() and path.resolve().is_relative_to(root.resolve())
