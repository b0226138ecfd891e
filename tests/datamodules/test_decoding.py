"""Decoding in processes of its own, within the shared memory that is free."""

import sys
from collections import deque
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from PIL import Image
from torch import Tensor

from headstart.datamodules import decoding
from headstart.datamodules.decoding import AHEAD, Fault, PreparedPictures, batch_size, decode_batches, share_memory
from headstart.datamodules.photos.photo_source import Pictures
from headstart.modules.networks.preprocessing import Preprocessing


@pytest.mark.parametrize("free", [0, 2**20, 8 * 2**20, 64 * 2**20, 2**30])
@pytest.mark.parametrize("workers", [0, 1, 2, 8, 96])
@pytest.mark.parametrize(("batch", "held"), [(16 * 3 * 224**2, 5), (16 * 3 * 224**2, 1), (75_000_000, 65)])
def test_photos_decoded_ahead_fit_into_shared_memory(
    monkeypatch: pytest.MonkeyPatch, free: int, workers: int, batch: int, held: int
) -> None:
    monkeypatch.setattr("headstart.datamodules.decoding.shutil.disk_usage", lambda folder: SimpleNamespace(free=free))
    chosen, ahead = share_memory(workers, batch, held)
    assert 0 <= chosen <= workers
    assert 1 <= ahead <= AHEAD
    assert not chosen or (chosen * ahead + held) * batch <= free / 2
    # No more could be taken.
    assert chosen == workers or ((chosen + 1) + held) * batch > free / 2
    assert ahead == AHEAD or (chosen * (ahead + 1) + held) * batch > free / 2


def test_systems_without_a_folder_of_shared_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(decoding, "SHARED_MEMORY", str(tmp_path / "none"))
    assert share_memory(8, 2**30, 5) == (8, AHEAD)


@pytest.mark.parametrize("side", [8, 32, 224, 518, 5000])
def test_waiting_photos_in_shared_memory_are_bounded(side: int) -> None:
    assert 1 <= batch_size(side) <= 64
    assert batch_size(side) * side**2 <= 16 * 224**2 or batch_size(side) == 1


def test_decoding_processes_print_no_lost_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, trace: kinds.append(kind))
    decoding._silence_lost_connections(0)
    for error in (BrokenPipeError(), ConnectionResetError(), EOFError(), ValueError()):
        sys.excepthook(type(error), error, None)
    assert kinds == [ValueError]


class Greys(Pictures):
    """Pictures of one grey each, their index, of which some cannot be decoded."""

    def __init__(self, count: int, broken: set[int]) -> None:
        self.names = [str(index) for index in range(count)]
        self.broken = broken

    def read(self, index: int) -> Image.Image:
        if index in self.broken:
            raise OSError("broken")
        return Image.new("RGB", (9, 8), (index, index, index))

    def digest(self, index: int) -> str:
        return str(index)


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("count", [1, 4, 61])
def test_pixels_last_until_as_many_follow_as_the_caller_holds(
    workers: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding, "batch_size", lambda side: 4)
    prepared = PreparedPictures(Greys(count, {1, 60}), range(count), Preprocessing(8, 8))
    held: deque[tuple[int, Tensor]] = deque(maxlen=3)
    first = 0
    reasons: dict[int, Fault] = {}
    for pixels, faults in decode_batches(prepared, workers, torch.device("cpu"), chunk=10):
        held.append((first, pixels))
        reasons |= faults
        first += len(pixels)
        for start, batch in held:
            greys = [0 if start + row in {1, 60} else start + row for row in range(len(batch))]
            expected = torch.tensor(greys, dtype=torch.uint8)[:, None, None, None].expand(-1, 3, 8, 8)
            assert torch.equal(batch, expected)
    assert first == count
    assert reasons == {index: Fault("broken", lasting=True) for index in (1, 60) if index < count}
