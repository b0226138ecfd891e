"""How pictures are decoded and prepared: in small batches, side by side, and on a GPU ahead of their use."""

import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from headstart.datamodules.photos.picture_decoding import without_warnings
from headstart.datamodules.photos.pictures import Pictures
from headstart.modules.networks.preprocessing import Preprocessing

# Pixels that a process decodes at once, 2.4 MB.
BATCH_PIXELS = 16 * 224**2
# Batches that a process decodes ahead, and the folder of shared memory in which decoded ones wait.
AHEAD = 4
SHARED_MEMORY = "/dev/shm"


class Fault(NamedTuple):
    """Why a picture is black, and whether its bytes are at fault rather than the present state of the system."""

    reason: str
    lasting: bool


class Work(NamedTuple):
    """A batch to decode.

    Attributes:
        pictures: The pictures of the batch alone; None where the process has all pictures.
        indices: Their indices.
        place: Which place in memory their pixels are written to.
    """

    pictures: Pictures | None
    indices: Sequence[int]
    place: int


class Decoder(Dataset[list[tuple[int, Fault]]]):
    """Decodes, resizes and crops pictures, as bytes, batch by batch.

    A batch is written in turn to one of a few places in memory that processes share. New memory for every batch takes a
    fifth of the time of decoding.

    Args:
        preprocessing: Size and interpolation.
        size: Pictures of a batch.
        places: Number of places.
        pictures: The pictures where they do not come with the work.
        shared: Whether the places are shared with other processes.
    """

    def __init__(
        self, preprocessing: Preprocessing, size: int, places: int, pictures: Pictures | None, shared: bool
    ) -> None:
        self.preprocessing, self.pictures = preprocessing, pictures
        side = preprocessing.crop
        self.places = torch.empty(places, size, side, side, 3, dtype=torch.uint8)
        if shared:
            self.places.share_memory_()

    def __getitem__(self, work: Work) -> list[tuple[int, Fault]]:
        """Decode a batch, and return which pictures of it are unreadable, and black, and why."""
        return self.decode(work, range(len(work.indices)))

    def pixels(self, work: Work) -> Tensor:
        """Return the pixels of a batch, uint8 `[pictures, crop, crop, 3]`."""
        return self.places[work.place, : len(work.indices)]

    def decode(self, work: Work, positions: Iterable[int]) -> list[tuple[int, Fault]]:
        """Write the pixels of some pictures of a batch; return which are unreadable, and written black, and why."""
        pictures, pixels, faults = work.pictures or self.pictures, self.pixels(work).numpy(), []
        assert pictures is not None
        with without_warnings():
            for position in positions:
                try:
                    pixels[position] = self.preprocessing.prepare(pictures.read(work.indices[position]))
                    continue
                except MemoryError:
                    fault = Fault("memory does not suffice for it", lasting=False)
                except OSError as error:
                    # The operating system's errors have a number, those of decoders have none.
                    fault = Fault(error.strerror or str(error) or type(error).__name__, lasting=error.errno is None)
                pixels[position] = 0
                faults.append((position, fault))
        return faults


class Queue:
    """The batches to decode next, as a loader's sampler."""

    def __init__(self) -> None:
        self.work: Iterable[Work] = ()

    def __iter__(self) -> Iterator[Work]:
        """Iterate over the batches."""
        return iter(self.work)


class Batching(NamedTuple):
    """How pictures are decoded in batches.

    Attributes:
        preprocessing: Size and interpolation.
        size: Pictures of a batch.
        workers: Processes, of which fewer are used where shared memory is short.
        held: Batches that the caller holds at the same time.
        ahead: Whether batches are decoded while the caller computes.
    """

    preprocessing: Preprocessing
    size: int
    workers: int
    held: int
    ahead: bool


class DecodingProcesses:
    """Decodes batches in processes of its own, which can stay for further pictures: to start them takes long.

    Args:
        batching: The batches.
        pictures: The pictures where the processes are for them alone.
    """

    def __init__(self, batching: Batching, pictures: Pictures | None) -> None:
        preprocessing, size, workers, held, ahead = batching
        workers, more = share_memory(workers, 3 * preprocessing.crop**2 * size, held, AHEAD if ahead else 0)
        self.decoder = Decoder(preprocessing, size, workers * more + held, pictures, shared=workers > 0)
        self.queue = Queue()
        self.loader = DataLoader(
            self.decoder,
            batch_size=None,
            sampler=self.queue,
            num_workers=workers,
            collate_fn=_keep,
            worker_init_fn=_stand_apart,
            prefetch_factor=(more if ahead else -(-held // workers)) if workers else None,
            persistent_workers=workers > 0,
            generator=torch.Generator(),  # the default generator is shared with other code
        )


# The processes of the last pictures, by what they were started for.
_processes: dict[tuple[Batching, int], DecodingProcesses] = {}


def decode_chunks(
    pictures: Pictures,
    indices: Sequence[int],
    preprocessing: Preprocessing,
    workers: int,
    device: torch.device,
    chunk: int,
    ahead: bool,
) -> Iterator[tuple[Tensor, dict[int, Fault]]]:
    """Decode pictures in processes of their own, each of which takes a small batch at a time.

    The processes stay until `end_decoding` where each batch can be sent to them with its pictures alone.

    Args:
        pictures: The pictures.
        indices: Which of them, in order.
        preprocessing: Size and interpolation.
        workers: Processes, of which fewer are used where shared memory is short.
        device: Where the pixels are moved to.
        chunk: Pictures of a chunk.
        ahead: Whether further chunks are decoded while the caller computes. Where it computes on all processors,
            processes that decode beside it cost more time than they save.

    Yields:
        Pixels, uint8 `[chunk, 3, crop, crop]`, fewer in the last chunk. Their layout is channels-last, as pictures are
        decoded and as backbones take them. And why some of them are black, by position among all pictures. The next
        chunk may overwrite them.
    """
    size = batch_size(preprocessing.crop, chunk, 0 if ahead else workers)
    each = -(-chunk // size)  # batches of a chunk
    batches = [
        range(start, min(start + size, first + chunk, len(indices)))
        for first in range(0, len(indices), chunk)
        for start in range(first, min(first + chunk, len(indices)), size)
    ]

    # Where nothing is decoded ahead, the places hold one chunk and nothing else, and need not be copied.
    in_place = not ahead and device.type == "cpu"
    # A device has memory of its own.
    held = 1 if ahead and device.type != "cpu" else each
    stay = workers > 0 and pictures.has_small_parts
    batching = Batching(preprocessing, size, workers, held, ahead)
    processes = _stay(batching) if stay else DecodingProcesses(batching, pictures)
    decoder = processes.decoder

    def work(batch: int) -> Work:
        return Work(pictures, [indices[position] for position in batches[batch]], batch % len(decoder.places))

    def send(batch: int) -> Work:
        _, chosen, place = work(batch)
        return Work(pictures.part(np.asarray(chosen)), range(len(chosen)), place) if stay else Work(None, chosen, place)

    def decoded() -> Iterator[list[tuple[int, Fault]]]:
        step = max(1, len(batches)) if ahead else each
        for first in range(0, len(batches), step):
            processes.queue.work = map(send, range(first, min(first + step, len(batches))))
            # A process that is being started still belongs to the command's group.
            with deferred_signals():
                started = iter(processes.loader)
            yield from started

    try:
        pixels, black = list[Tensor](), dict[int, Fault]()
        for batch, faults in enumerate(decoded()):
            taken = work(batch)
            if faults:
                # Decode them again alone: memory that was short beside other pictures may suffice now.
                again = decoder.decode(taken, [position for position, _ in faults])
                black |= {batches[batch][position]: fault for position, fault in again}
            pixels.append(decoder.pixels(taken).to(device))

            if len(pixels) == each or batch == len(batches) - 1:
                count = sum(map(len, pixels))
                joined = decoder.places.flatten(0, 1)[:count] if in_place else torch.cat(pixels)
                yield joined.permute(0, 3, 1, 2), black
                pixels, black = [], {}
    except BaseException:
        # Batches that nobody has taken, or a lost process, must not meet the next pictures.
        end_decoding()
        raise


def end_decoding() -> None:
    """End the processes that have stayed."""
    _processes.clear()


def _stay(batching: Batching) -> DecodingProcesses:
    """Return the processes of the last pictures, or start others where these need others."""
    # A forked process has its parent's list, but not its children.
    key = batching, os.getpid()
    if key not in _processes:
        end_decoding()
        _processes[key] = DecodingProcesses(batching, None)
    return _processes[key]


def batch_size(side: int, chunk: int = 64, workers: int = 0) -> int:
    """Return how many pictures a process decodes at once: few, because they wait in shared memory, which is scarce.

    Args:
        side: Side of the pictures in pixels.
        chunk: Pictures that the processes decode together.
        workers: Processes, which get the same number of batches of a chunk each; 0 if the number does not matter.

    Returns:
        A number of pictures, from 1 to 64.
    """
    most = min(64, max(1, BATCH_PIXELS // side**2))
    each = -(-chunk // most)
    return -(-chunk // (-(-each // workers) * workers if workers else each))


def share_memory(workers: int, batch: int, held: int, most: int) -> tuple[int, int]:
    """Choose how many processes decode and how far ahead, so that waiting batches fill half of free shared memory.

    Where nothing is decoded ahead, all processes fill the same memory: there is room for all of them or for none.

    Args:
        workers: Number of processes that is asked for.
        batch: Bytes of a batch.
        held: Batches in the caller's memory at the same time.
        most: Batches that each process decodes ahead at most.

    Returns:
        Processes, 0 where shared memory has room for none, and batches that each decodes ahead.
    """
    try:
        room = shutil.disk_usage(SHARED_MEMORY).free // 2 // batch - held
    except OSError:  # systems without that folder share memory in another way
        return workers, most
    if not most:
        return (workers if room >= 0 else 0), 0
    workers = min(workers, max(0, room))
    return workers, min(most, room // workers) if workers else most


def _keep(faults: list[tuple[int, Fault]]) -> list[tuple[int, Fault]]:
    """Pass on what a process returns as it is."""
    return faults


def _stand_apart(worker: int) -> None:
    """Leave the end of a decoding process to the command, and suppress tracebacks of its threads after that.

    Ctrl-C and `timeout` send their signal to the whole group of the command. A decoding process that died of it would
    look lost to the loader, whose error would come before the command's own line.
    """
    os.setpgrp()
    print_error = sys.excepthook

    def print_others(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not issubclass(kind, ConnectionError | EOFError):
            print_error(kind, error, trace)

    sys.excepthook = print_others


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Defer signals that stop a command until the end of the block."""
    # Signals reach the main thread alone.
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    received: list[tuple[int, FrameType | None]] = []
    numbers = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not signal.SIG_IGN]
    handlers = {number: signal.signal(number, lambda *signaled: received.append(signaled)) for number in numbers}
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, handlers[number])
        for first, frame in received[:1]:
            handler = handlers[signal.Signals(first)]
            if callable(handler):
                handler(first, frame)
            elif handler == signal.SIG_DFL:
                signal.raise_signal(first)
