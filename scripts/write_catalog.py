"""Write a stimuli catalog of the pictures in a folder: `headstart write-catalog FOLDER --output FILE`."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from headstart.contract.documents import read_catalog
from headstart.contract.names import IDENTIFIER_PATTERN
from headstart.contract.problems import ContractError
from headstart.datamodules.photos.folder_listing import LOOP, join, read_folder, report_left_out
from headstart.output.errors import UserError, prefix_errors
from headstart.output.files import replacing
from headstart.output.printable import say


def write_catalog(folder: str, output: str = "stimuli.jsonl", dataset_name: str | None = None) -> None:
    """Write a stimuli catalog of the pictures in a folder and all folders below it, in the order of their paths.

    Hidden files are ignored. Files without the suffix of a picture, files with names that the contract refuses, broken
    links, and links out of the folder or to a parent folder are left out and counted. Other links are followed.

    Args:
        folder: Root of the data set.
        output: JSON lines file to write.
        dataset_name: Name of the data set in the catalog. The default is the name of the folder. Commands find the
            pictures if HACKATHON_DATASET_ROOT is the parent of the folder.

    Raises:
        UserError: The folder holds no pictures, the catalog would violate the contract, or the file cannot be written.
    """
    root = Path(folder)
    left_out: dict[str, str] = {}
    with prefix_errors("folder"):
        pictures = sorted(_pictures(root, "", left_out) if root.is_dir() else ())
    report_left_out(left_out, "folder")

    if not pictures:
        raise UserError(f"folder: {folder!r} holds no pictures")
    name = dataset_name or root.resolve().name
    lines = [json.dumps({"dataset_name": name, "image_identifier": path}) for path in pictures]

    try:
        with replacing(Path(output)) as partial:
            partial.write_text("\n".join(lines) + "\n")
            read_catalog(partial)
    except ContractError as error:
        # Name the output in the message, not the temporary file.
        document = f"stimuli catalog {output}"
        raise ContractError(document, error.problems) from error
    except OSError as error:
        raise UserError(f"output: {output!r} cannot be written: {error.strerror}") from error
    say(f"wrote {output}: {len(lines)} stimuli")


def _pictures(root: Path, folder: str, left_out: dict[str, str], ancestors: tuple[Path, ...] = ()) -> Iterator[str]:
    """Yield the pictures in a folder and all folders below it, and note why other files are left out."""
    path = (root / folder).resolve()
    if path in ancestors:
        left_out[folder] = LOOP
        return
    photos, folders, others = read_folder(root / folder, root)
    left_out |= {join(folder, name): reason for name, reason in others.items()}
    for name in (join(folder, photo) for photo in photos):
        # Bytes that are not UTF-8 are surrogates in the name, which `errors="ignore"` drops.
        if re.fullmatch(IDENTIFIER_PATTERN, name) and name.encode(errors="ignore").decode() == name:
            yield name
        else:
            left_out[name] = "name that the contract refuses"
    for subfolder in folders:
        yield from _pictures(root, join(folder, subfolder), left_out, (*ancestors, path))
