"""Decoding in processes of its own, within the shared memory that is free."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from headstart.datamodules import decoding
from headstart.datamodules.decoding import AHEAD, batch_size, share_memory


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
