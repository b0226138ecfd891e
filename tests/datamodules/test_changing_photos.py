"""Photos are decoded from the bytes that were digested: one that is swapped meanwhile leaves no row."""

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

VICTIM = "train/dark/1.jpg"


def test_photos_are_decoded_from_the_bytes_that_were_digested(photo_folder: Path, tmp_path: Path) -> None:
    victim, another = photo_folder / VICTIM, photo_folder / "another.jpg"
    Image.effect_noise((40, 40), 90).convert("RGB").save(another)
    intact = victim.read_bytes()
    faults: list[Callable[[], object]] = [
        lambda: victim.write_bytes(another.read_bytes()),
        lambda: Path(shutil.copy(another, tmp_path / "copy.jpg")).replace(victim),
        lambda: os.truncate(victim, len(intact) // 2),
    ]
    for fault in faults:
        photos = ClassFolders(str(photo_folder)).train()
        index = list(photos.names).index(VICTIM)
        for some in (photos.subset(np.array([index])), photos):
            some.digests()
            fault()
            with pytest.raises(OSError, match="its bytes have changed since they were digested") as raised:
                photos.read(index)
            assert raised.value.errno == errno.ESTALE  # which is never stored as a remark
            with pytest.raises(UserError, match=rf"'{VICTIM}' cannot be read at the moment \(its bytes have changed"):
                find_in(tmp_path, features_of(some))
            assert not parts_in(tmp_path)
            victim.write_bytes(intact)
            photos.read(index)
