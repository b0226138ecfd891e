"""A damaged picture is noted or refused, and a fault of the moment is never taken for damage."""

import contextlib
import errno
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from headstart.datamodules.photos.class_folders import ClassFolders
from headstart.datamodules.photos.photo_source import PhotoFiles, Photos
from headstart.datamodules.row_computation import RowComputer
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.output.errors import UserError
from headstart.tests.material.stored_rows import NumberedPhotos


@pytest.mark.parametrize("workers", [0, 2])
def test_unreadable_photos_are_noted_and_black(workers: int) -> None:
    photos = NumberedPhotos(70, unreadable=(3, 66))
    rows, _, remarks = RowComputer(photos, Preprocessing(8, 4), workers=workers).compute(range(70))
    assert np.flatnonzero((rows == 0).all((1, 2, 3))).tolist() == [3, 66]
    assert remarks == {3: "no more bytes", 66: "OSError"}


@pytest.mark.parametrize("content", [b"", b"not a photo", None])
def test_damaged_files_are_noted(photo_folder: Path, content: bytes | None) -> None:
    path = photo_folder / "train" / "dark" / "3.jpg"
    path.write_bytes(path.read_bytes()[:200] if content is None else content)
    photos = ClassFolders(str(photo_folder)).train()
    assert isinstance(photos, PhotoFiles)
    rows, _, remarks = RowComputer(photos, Preprocessing(8, 8), workers=0).compute(range(24))
    assert len(rows) == 24
    assert [photos.names[index] for index in remarks] == ["train/dark/3.jpg"]


FAULTS = [
    *(OSError(number, os.strerror(number)) for number in (errno.EMFILE, errno.EIO, errno.ENOMEM, errno.ESTALE)),
    PermissionError(errno.EACCES, "Permission denied"),
    MemoryError(),
]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("error", FAULTS, ids=repr)
def test_a_fault_of_the_moment_is_not_kept_as_one_of_the_photo(
    error: Exception, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Photos, index: int) -> Image.Image:
        raise error

    computer = RowComputer(NumberedPhotos(3), Preprocessing(8, 4), workers=workers)
    monkeypatch.setattr(NumberedPhotos, "read", fail)
    reason = getattr(error, "strerror", None) or "memory does not suffice for it"
    with pytest.raises(UserError, match=rf"^photo 'photo 0' cannot be read at the moment \({reason}\); try again$"):
        computer.compute(range(3))


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("error", [OSError("broken data stream"), MemoryError(), *FAULTS[:1]], ids=repr)
def test_a_photo_that_fails_once_is_read_again(
    error: Exception, workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = NumberedPhotos.read

    def fail_once(self: NumberedPhotos, index: int) -> Image.Image:
        with contextlib.suppress(FileExistsError):
            (tmp_path / str(index)).touch(exist_ok=False)
            raise error
        return read(self, index)

    computer = RowComputer(NumberedPhotos(20), Preprocessing(8, 4), workers=workers)
    monkeypatch.setattr(NumberedPhotos, "read", fail_once)
    rows, _, remarks = computer.compute(range(20))
    assert (rows[:, 0] == np.arange(1, 21)[:, None, None]).all()
    assert not remarks
