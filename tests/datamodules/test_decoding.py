"""Decoding in processes of its own, within the shared memory that is free."""

import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from headstart.datamodules import decoding
from headstart.datamodules.decoding import AHEAD, Fault, batch_size, decode_chunks, end_decoding, share_memory
from headstart.datamodules.photos.pictures import Pictures
from headstart.modules.networks.preprocessing import Preprocessing


@pytest.mark.parametrize("free", [0, 2**20, 8 * 2**20, 64 * 2**20, 2**30])
@pytest.mark.parametrize("workers", [0, 1, 2, 8, 96])
@pytest.mark.parametrize(("batch", "held"), [(16 * 3 * 224**2, 5), (16 * 3 * 224**2, 1), (75_000_000, 65)])
def test_photos_decoded_ahead_fit_into_shared_memory(
    monkeypatch: pytest.MonkeyPatch, free: int, workers: int, batch: int, held: int
) -> None:
    monkeypatch.setattr("headstart.datamodules.decoding.shutil.disk_usage", lambda folder: SimpleNamespace(free=free))
    chosen, ahead = share_memory(workers, batch, held, AHEAD)
    assert 0 <= chosen <= workers
    assert 1 <= ahead <= AHEAD
    assert not chosen or (chosen * ahead + held) * batch <= free / 2
    # No more could be taken.
    assert chosen == workers or ((chosen + 1) + held) * batch > free / 2
    assert ahead == AHEAD or (chosen * (ahead + 1) + held) * batch > free / 2


@pytest.mark.parametrize(("free", "chosen"), [(2**30, 8), (10 * 2**20, 8), (8 * 2**20, 0), (0, 0)])
def test_photos_that_the_network_waits_for_fit_into_shared_memory(
    monkeypatch: pytest.MonkeyPatch, free: int, chosen: int
) -> None:
    monkeypatch.setattr("headstart.datamodules.decoding.shutil.disk_usage", lambda folder: SimpleNamespace(free=free))
    assert share_memory(8, 2**20, held=5, most=0) == (chosen, 0)


def test_systems_without_a_folder_of_shared_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(decoding, "SHARED_MEMORY", str(tmp_path / "none"))
    assert share_memory(8, 2**30, 5, AHEAD) == (8, AHEAD)


@pytest.mark.parametrize("side", [8, 32, 224, 518, 5000])
def test_waiting_photos_in_shared_memory_are_bounded(side: int) -> None:
    assert 1 <= batch_size(side) <= 64
    assert batch_size(side) * side**2 <= 16 * 224**2 or batch_size(side) == 1


@pytest.mark.parametrize("side", [8, 32, 224, 518, 5000])
@pytest.mark.parametrize("chunk", [1, 64, 196, 1000])
@pytest.mark.parametrize("workers", [1, 2, 3, 64])
def test_processes_get_as_many_pictures_each(side: int, chunk: int, workers: int) -> None:
    size = batch_size(side, chunk, workers)
    assert 1 <= size <= batch_size(side)
    each = -(-chunk // size // workers)
    assert each * size < chunk / workers + each


def test_decoding_processes_print_no_lost_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, trace: kinds.append(kind))
    monkeypatch.setattr(os, "setpgrp", lambda: None)
    decoding._stand_apart(0)
    for error in (BrokenPipeError(), ConnectionResetError(), EOFError(), ValueError()):
        sys.excepthook(type(error), error, None)
    assert kinds == [ValueError]


class Greys(Pictures):
    """Pictures of one grey each, their index, of which some cannot be decoded."""

    def __init__(self, names: Sequence[int], broken: set[int], has_small_parts: bool) -> None:
        self.names = [str(name) for name in names]
        self.broken = broken
        self.has_small_parts = has_small_parts

    def part(self, indices: NDArray[np.int64]) -> "Greys":
        return Greys([int(self.names[index]) for index in indices], self.broken, True)

    def read(self, index: int) -> Image.Image:
        grey = int(self.names[index])
        if grey in self.broken:
            raise OSError("broken")
        return Image.new("RGB", (9, 8), (grey, grey, grey))

    def digest(self, index: int) -> str:
        return str(index)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(decoding, "batch_size", lambda side, chunk, workers: 4)
    yield
    end_decoding()


def check_pixels(names: range, workers: int, has_small_parts: bool, ahead: bool = False) -> None:
    """Decode pictures, and check them and the reasons of black ones."""
    pictures = Greys(names, {1, 60}, has_small_parts)
    greys = torch.tensor([0 if name in {1, 60} else name for name in names], dtype=torch.uint8)
    expected = list(greys[:, None, None, None].expand(-1, 3, 8, 8).split(10)) if len(names) else []

    chunks = [
        (pixels.tolist(), faults)
        for pixels, faults in decode_chunks(
            pictures, range(len(names)), Preprocessing(8, 8), workers, torch.device("cpu"), chunk=10, ahead=ahead
        )
    ]
    assert [pixels for pixels, _ in chunks] == [chunk.tolist() for chunk in expected]

    reasons = {names.index(grey): Fault("broken", lasting=True) for grey in (1, 60) if grey in names}
    for number, (_, faults) in enumerate(chunks):
        assert faults == {position: fault for position, fault in reasons.items() if position // 10 == number}


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("has_small_parts", [False, True])
@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("count", [0, 1, 4, 10, 61])
def test_pixels_of_every_picture(workers: int, count: int, has_small_parts: bool, ahead: bool) -> None:
    check_pixels(range(count), workers, has_small_parts, ahead)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("ahead", [False, True])
def test_pictures_are_decoded_while_the_caller_computes_where_that_saves_time(ahead: bool) -> None:
    pictures, read = Greys(range(40), set(), False), multiprocessing.get_context("fork").Value("i", 0)

    def count(index: int) -> Image.Image:
        with read.get_lock():
            read.value += 1
        return Image.new("RGB", (9, 8))

    pictures.read = count  # type: ignore[method-assign]
    chunks = decode_chunks(pictures, range(40), Preprocessing(8, 8), 2, torch.device("cpu"), chunk=10, ahead=ahead)
    next(chunks)
    time.sleep(0.5)
    assert read.value > 10 if ahead else read.value == 10
    assert sum(len(pixels) for pixels, _ in chunks) == 30


@pytest.mark.usefixtures("small_batches")
def test_processes_stay_for_further_pictures() -> None:
    started = []
    for names in (range(61), range(100, 117), range(55, 66)):
        check_pixels(names, 2, has_small_parts=True)
        started.append([each.pid for each in multiprocessing.active_children()])
    assert started[0] == started[1] == started[2]
    end_decoding()
    assert not set(started[0]) & {each.pid for each in multiprocessing.active_children()}


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("ahead", [False, True])
def test_processes_for_some_pictures_alone_end_with_them(ahead: bool) -> None:
    before = {each.pid for each in multiprocessing.active_children()}
    check_pixels(range(61), 2, has_small_parts=False, ahead=ahead)
    assert {each.pid for each in multiprocessing.active_children()} == before


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("has_small_parts", [False, True])
@pytest.mark.parametrize("ahead", [False, True])
def test_processes_that_are_killed_between_chunks(ahead: bool, has_small_parts: bool) -> None:
    pictures = Greys(range(300), set(), has_small_parts)
    before = {each.pid for each in multiprocessing.active_children()}
    chunks = decode_chunks(pictures, range(300), Preprocessing(8, 8), 2, torch.device("cpu"), 10, ahead)
    next(chunks)
    for process in multiprocessing.active_children():
        if process.pid not in before:
            process.kill()
    with pytest.raises(RuntimeError, match=r"exited unexpectedly|killed by signal"):
        list(chunks)
    assert not decoding._processes


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("ahead", [False, True])
def test_processes_do_not_stay_where_chunks_were_not_taken(ahead: bool) -> None:
    pictures = Greys(range(61), set(), True)
    chunks = decode_chunks(pictures, range(61), Preprocessing(8, 8), 2, torch.device("cpu"), 10, ahead)
    next(chunks)
    chunks.close()  # type: ignore[attr-defined]  # of a generator
    assert not decoding._processes
    check_pixels(range(100, 130), 2, has_small_parts=True)
