"""Photos are decoded from the bytes that were digested: a file that changes in between gets no cached row."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from headstart.datamodules import ClassFolders
from headstart.output.errors import UserError
from headstart.tests.material.stored_rows import features_of, find_in, parts_in

CHANGED = "train/dark/1.jpg"


def test_photos_are_decoded_from_the_bytes_that_were_digested(photo_folder: Path, tmp_path: Path) -> None:
    changed, another = photo_folder / CHANGED, photo_folder / "another.jpg"
    Image.effect_noise((40, 40), 90).convert("RGB").save(another)
    intact = changed.read_bytes()
    changes: list[Callable[[], object]] = [
        lambda: changed.write_bytes(another.read_bytes()),
        lambda: Path(shutil.copy(another, tmp_path / "copy.jpg")).replace(changed),
        lambda: os.truncate(changed, len(intact) // 2),
    ]
    for change in changes:
        photos = ClassFolders(str(photo_folder)).train()
        index = list(photos.names).index(CHANGED)
        for chosen in (photos.subset(np.array([index])), photos):
            chosen.digests()
            change()
            with pytest.raises(OSError, match="its bytes have changed since they were digested") as raised:
                photos.read(index)
            # Unlike a decoding error, this is never stored as a remark on the photo.
            assert raised.value.errno == errno.ESTALE
            with pytest.raises(UserError, match=rf"'{CHANGED}' cannot be read at the moment \(its bytes have changed"):
                find_in(tmp_path, features_of(chosen))
            assert not parts_in(tmp_path)
            changed.write_bytes(intact)
            photos.read(index)
