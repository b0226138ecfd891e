"""Decoding in processes of its own: every picture once, in order, whatever the chunks."""

from types import SimpleNamespace

import pytest
import torch

from headstart.datamodules import decoding
from headstart.datamodules.decoding import AHEAD, Decoder, Fault
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.tests.material.stored_rows import NumberedPhotos

TINY = Preprocessing(resize=8, crop=4)


@pytest.mark.parametrize(("workers", "ahead"), [(0, False), (2, True), (2, False)])
def test_every_picture_once_and_in_order(workers: int, ahead: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "BATCH_PIXELS", 3 * 4**2)
    decoder = Decoder(NumberedPhotos(90, unreadable=(7, 60)), TINY, workers, 20, ahead)
    # The processes stay for further pictures.
    for indices in (range(90), range(65, 40, -1), [60], range(3)):
        found, faults = list[int](), dict[int, Fault]()
        for pixels, black in decoder.decode(list(indices), torch.device("cpu")):
            assert pixels.is_contiguous(memory_format=torch.channels_last) or len(pixels) == 1
            faults |= {len(found) + position: fault for position, fault in black.items()}
            found += pixels[:, 0, 0, 0].tolist()
        assert found == [0 if index in (7, 60) else index + 1 for index in indices]
        assert [indices[position] for position in faults] == [index for index in indices if index in (7, 60)]
        assert {fault.lasting for fault in faults.values()} <= {True}


@pytest.mark.parametrize(("free", "workers"), [(2**30, 8), (2 * 3 * 16 * 224**2 * AHEAD * 3, 3), (2**20, 0), (0, 0)])
def test_waiting_pictures_fit_into_shared_memory(free: int, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headstart.datamodules.decoding.shutil.disk_usage", lambda folder: SimpleNamespace(free=free))
    decoder = Decoder(NumberedPhotos(1), Preprocessing(), 8, 64, ahead=True)
    assert decoder._loader.num_workers == workers
