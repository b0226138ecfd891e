"""A damaged picture is noted or refused, and a fault of the moment is never taken for damage."""

import contextlib
import errno
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from torch import Tensor

from headstart.datamodules.photos.class_folders import ClassFolders
from headstart.datamodules.photos.photo_source import PhotoFiles, Photos
from headstart.datamodules.photos.stimuli import Stimuli
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.output.errors import UserError
from headstart.tests.material.computed_rows import MakeRows, NumberedPhotos, pixel_rows, stack


@pytest.mark.parametrize("workers", [0, 2])
def test_unreadable_photos_are_noted_and_black(workers: int) -> None:
    rows = pixel_rows(NumberedPhotos(70, unreadable=(3, 66)), Preprocessing(resize=8, crop=4), workers)
    pixels = stack(rows)
    assert np.flatnonzero((pixels == 0).all((1, 2, 3))).tolist() == [3, 66]
    assert rows.remarks == {3: "no more bytes", 66: "OSError"}


@pytest.mark.parametrize("content", [b"", b"not a photo", None])
def test_damaged_files_are_noted(photo_folder: Path, content: bytes | None) -> None:
    path = photo_folder / "train" / "dark" / "3.jpg"
    path.write_bytes(path.read_bytes()[:200] if content is None else content)
    photos = ClassFolders(str(photo_folder)).train()
    assert isinstance(photos, PhotoFiles)
    rows = pixel_rows(photos, Preprocessing(resize=8, crop=8))
    assert len(stack(rows)) == 24
    assert [photos.names[index] for index in rows.remarks] == ["train/dark/3.jpg"]


def test_unreadable_stimulus_is_refused(pictures: Stimuli, make_rows: MakeRows) -> None:
    pictures.paths[3].write_bytes(pictures.paths[3].read_bytes()[:60])
    with pytest.raises(UserError, match=r"'some/3\.png' cannot be decoded"):
        stack(make_rows())


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

    rows = pixel_rows(NumberedPhotos(3), Preprocessing(resize=8, crop=4), workers)
    monkeypatch.setattr(NumberedPhotos, "read", fail)
    reason = getattr(error, "strerror", None) or "memory does not suffice for it"
    with pytest.raises(UserError, match=rf"^photo 'photo 0' cannot be read at the moment \({reason}\); try again$"):
        stack(rows)
    assert not rows.remarks


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

    rows = pixel_rows(NumberedPhotos(20), Preprocessing(resize=8, crop=4), workers)
    monkeypatch.setattr(NumberedPhotos, "read", fail_once)
    assert (stack(rows) == np.arange(1, 21)[:, None, None, None]).all()
    assert not rows.remarks


def test_lack_of_memory_is_reported_for_a_refused_stimulus(
    make_rows: MakeRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(photo: Image.Image) -> Tensor:
        raise MemoryError

    rows = make_rows()
    monkeypatch.setattr(Preprocessing, "prepare", lambda self, photo: fail(photo))
    with pytest.raises(UserError, match=r"'some/0\.png' cannot be decoded: memory does not suffice"):
        stack(rows)
