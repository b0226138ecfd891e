"""How pictures are decoded and prepared: in small batches, side by side, and ahead of their use."""

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from headstart.datamodules.photos.picture_decoding import without_size_warnings
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

    A batch is written to one of a few places in memory, which processes share, in turn: new memory for every batch
    takes a fifth of the time of decoding.

    Args:
        preprocessing: Size and interpolation.
        places: Number of places.
        pictures: The pictures where they do not come with the work.
        shared: Whether the places are shared with other processes.
    """

    def __init__(self, preprocessing: Preprocessing, places: int, pictures: Pictures | None, shared: bool) -> None:
        self.preprocessing, self.pictures = preprocessing, pictures
        side = preprocessing.crop
        self.places = torch.empty(places, batch_size(side), side, side, 3, dtype=torch.uint8)
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
        with without_size_warnings():
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


class DecodingProcesses:
    """Decodes batches in processes of their own, which can stay for further pictures: to start them takes long.

    Args:
        preprocessing: Size and interpolation.
        workers: Processes, of which fewer are used where shared memory is short.
        held: Batches that the caller holds at once.
        pictures: The pictures where the processes are for them alone.
    """

    def __init__(self, preprocessing: Preprocessing, workers: int, held: int, pictures: Pictures | None) -> None:
        side = preprocessing.crop
        workers, ahead = share_memory(workers, 3 * side**2 * batch_size(side), held)
        self.decoder = Decoder(preprocessing, workers * ahead + held, pictures, shared=workers > 0)
        self.queue = Queue()
        self.loader = DataLoader(
            self.decoder,
            batch_size=None,
            sampler=self.queue,
            num_workers=workers,
            collate_fn=_keep,
            worker_init_fn=_silence_lost_connections,
            prefetch_factor=ahead if workers else None,
            persistent_workers=workers > 0 and pictures is None,
            generator=torch.Generator(),  # the default generator is shared with other code
        )


# The processes of the last pictures, by what they were started for.
_processes: dict[tuple[Preprocessing, int, int, int], DecodingProcesses] = {}


def decode_batches(
    pictures: Pictures,
    indices: Sequence[int],
    preprocessing: Preprocessing,
    workers: int,
    device: torch.device,
    chunk: int,
) -> Iterator[tuple[Tensor, dict[int, Fault]]]:
    """Decode pictures in small batches, in processes of their own.

    The processes stay until `end_decoding` where each batch can be sent to them with its pictures alone.

    Args:
        pictures: The pictures.
        indices: Which of them, in order.
        preprocessing: Size and interpolation.
        workers: Processes, of which fewer are used where shared memory is short.
        device: Where the pixels are moved to.
        chunk: Pictures that the caller holds at once.

    Yields:
        Pixels, uint8 `[batch, 3, crop, crop]` in the channels-last layout, in which pictures are decoded and backbones
        take them, and why some of them are black, by position among all pictures. On a processor, the pixels are
        overwritten once the caller has taken `chunk` further pictures.
    """
    size = batch_size(preprocessing.crop)
    held = 1 if device.type == "cuda" else -(-chunk // size) + 1  # a device has memory of its own
    stay = workers > 0 and pictures.has_small_parts
    processes = (
        _stay(preprocessing, workers, held) if stay else DecodingProcesses(preprocessing, workers, held, pictures)
    )
    decoder, batches = processes.decoder, [indices[first : first + size] for first in range(0, len(indices), size)]

    def work(batch: int) -> Work:
        return Work(pictures, batches[batch], batch % len(decoder.places))

    def send(batch: int) -> Work:
        chosen, place = batches[batch], batch % len(decoder.places)
        return Work(pictures.part(np.asarray(chosen)), range(len(chosen)), place) if stay else Work(None, chosen, place)

    processes.queue.work = map(send, range(len(batches)))
    try:
        for batch, faults in enumerate(processes.loader):
            # Decode them again alone: memory that was short beside other pictures may suffice now.
            again = decoder.decode(work(batch), [position for position, _ in faults])
            black = {batch * size + position: fault for position, fault in again}
            yield decoder.pixels(work(batch)).permute(0, 3, 1, 2).to(device), black
    except BaseException:
        # Batches that nobody has taken, or a lost process, must not meet the next pictures.
        end_decoding()
        raise


def end_decoding() -> None:
    """End the processes that have stayed."""
    _processes.clear()


def _stay(preprocessing: Preprocessing, workers: int, held: int) -> DecodingProcesses:
    """Return the processes of the last pictures, or start others where these need others."""
    # A forked process has its parent's list, but not its children.
    key = preprocessing, workers, held, os.getpid()
    if key not in _processes:
        end_decoding()
        _processes[key] = DecodingProcesses(preprocessing, workers, held, None)
    return _processes[key]


def batch_size(side: int) -> int:
    """Return how many pictures a process decodes at once: few, because they wait in shared memory, which is scarce.

    Args:
        side: Side of the pictures in pixels.

    Returns:
        A number of pictures, from 1 to 64.
    """
    return min(64, max(1, BATCH_PIXELS // side**2))


def share_memory(workers: int, batch: int, held: int) -> tuple[int, int]:
    """Choose how many processes decode and how far ahead, so that waiting batches fill half of free shared memory.

    Args:
        workers: Number of processes that is asked for.
        batch: Bytes of a batch.
        held: Batches in the caller's memory at once.

    Returns:
        Processes, 0 where shared memory has room for none, and batches that each decodes ahead.
    """
    try:
        room = max(0, shutil.disk_usage(SHARED_MEMORY).free // 2 // batch - held)
    except OSError:  # systems without that folder share memory in another way
        return workers, AHEAD
    workers = min(workers, room)
    return workers, min(AHEAD, room // workers) if workers else AHEAD


def _keep(faults: list[tuple[int, Fault]]) -> list[tuple[int, Fault]]:
    """Pass on what a process returns as it is."""
    return faults


def _silence_lost_connections(worker: int) -> None:
    """Suppress tracebacks in the threads of a decoding process whose parent has ended."""
    print_error = sys.excepthook

    def print_others(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not issubclass(kind, ConnectionError | EOFError):
            print_error(kind, error, trace)

    sys.excepthook = print_others
