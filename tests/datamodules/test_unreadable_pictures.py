"""A damaged picture is noted, and a fault of the moment is never taken for damage."""

import contextlib
import errno
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from headstart.datamodules.row_computation import RowComputer
from headstart.datamodules.row_request import RowRequest
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.output.errors import UserError
from headstart.tests.material.stored_rows import NumberedPhotos

TINY = Preprocessing(resize=8, crop=4)
FAULTS = [
    *(OSError(number, os.strerror(number)) for number in (errno.EMFILE, errno.EIO, errno.ENOMEM, errno.ESTALE)),
    PermissionError(errno.EACCES, "Permission denied"),
    MemoryError(),
]


def test_unreadable_photos_are_noted_and_black() -> None:
    for workers in (0, 2):
        rows, notes, remarks = RowComputer(RowRequest(NumberedPhotos(70, (3, 66)), TINY), workers).compute(range(70))
        expected = [0 if index in (3, 66) else index + 1 for index in range(70)]
        assert (rows[:, 0] == np.array(expected)[:, None, None]).all()
        assert (notes, remarks) == ({}, {3: "no more bytes", 66: "OSError"})


def test_a_fault_of_the_moment_is_not_kept_as_one_of_the_photo(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: NumberedPhotos, index: int) -> Image.Image:
        raise error

    monkeypatch.setattr(NumberedPhotos, "read", fail)
    for error in FAULTS:
        reason = getattr(error, "strerror", None) or "memory does not suffice for it"
        with pytest.raises(UserError, match=rf"^photo 'photo 0' cannot be read at the moment \({reason}\); try again$"):
            RowComputer(RowRequest(NumberedPhotos(3), TINY), 0).compute(range(3))
    error = OSError(errno.ESTALE, "it has changed; leave random transforms out")
    with pytest.raises(UserError, match=r"moment \(it has changed\); leave random transforms out$"):
        RowComputer(RowRequest(NumberedPhotos(3), TINY), 0).compute(range(3))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_photo_that_fails_once_is_read_again(workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = NumberedPhotos.read

    def fail_once(self: NumberedPhotos, index: int) -> Image.Image:
        with contextlib.suppress(FileExistsError):
            (tmp_path / f"{error!r} {index}".replace("/", "")).touch(exist_ok=False)
            raise error
        return read(self, index)

    monkeypatch.setattr(NumberedPhotos, "read", fail_once)
    for error in (OSError("broken data stream"), MemoryError(), FAULTS[0]):  # noqa: B007 - it is raised above
        rows, _, remarks = RowComputer(RowRequest(NumberedPhotos(20), TINY), workers).compute(range(20))
        assert (rows[:, 0] == np.arange(1, 21)[:, None, None]).all()
        assert not remarks
