"""Write a stimuli catalog of the pictures in a folder: `headstart write-catalog FOLDER --output FILE`."""

import json
import random
import re
from pathlib import Path

from jsonargparse.typing import PositiveInt

from headstart.contract.documents import read_catalog
from headstart.contract.names import IDENTIFIER_PATTERN
from headstart.contract.problems import ContractError
from headstart.datamodules.photos.folder_listing import DANGLING, OUTSIDE, other_kind, report_left_out
from headstart.output.errors import UserError
from headstart.output.files import replacing
from headstart.output.printable import say


def write_catalog(
    folder: str,
    output: str = "stimuli.jsonl",
    dataset_name: str | None = None,
    count: PositiveInt | None = None,
    seed: int = 0,
) -> None:
    """Write a stimuli catalog of the pictures in a folder and all folders below it, in the order of their paths.

    Hidden files are passed over. Other files that are no pictures by their ending, links that lead out of the folder,
    and files whose names the contract refuses are left out and counted.

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
    listed = {path.relative_to(root).as_posix(): _reason(path, root) for path in root.rglob("*") if not path.is_dir()}
    listed = {name: reason for name, reason in listed.items() if not name.startswith(".") and "/." not in name}
    report_left_out({name: reason for name, reason in listed.items() if reason}, "folder")

    pictures = sorted(name for name, reason in listed.items() if not reason)
    if not pictures or (count or 0) > len(pictures):
        raise UserError(f"folder: {folder!r} holds {len(pictures)} pictures, but {count or 'some'} are needed")
    if count is not None:
        pictures = sorted(random.Random(seed).sample(pictures, int(count)))
    name = dataset_name or root.resolve().name
    lines = [json.dumps({"dataset_name": name, "image_identifier": path}) for path in pictures]
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


def _reason(path: Path, root: Path) -> str:
    """Return why a file is left out; an empty text for a picture with a name that the contract allows."""
    if not path.is_file():
        return DANGLING
    if not path.resolve().is_relative_to(root.resolve()):
        return OUTSIDE
    is_allowed = re.fullmatch(IDENTIFIER_PATTERN, path.relative_to(root).as_posix())
    return other_kind(path.name) or ("" if is_allowed else "name that the contract refuses")
