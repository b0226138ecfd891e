"""How pictures are decoded and prepared: in small batches, side by side, and ahead of their use."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from headstart.datamodules.photos.photo_source import Pictures
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


class PreparedPictures(Dataset[list[tuple[int, Fault]]]):
    """Pictures decoded, resized and cropped, as bytes, batch by batch.

    A batch is written to one of a few places in memory, which its processes share, in turn: new memory for every batch
    takes a fifth of the time of decoding.

    Args:
        pictures: The pictures.
        indices: Which of them, in order.
        preprocessing: Size and interpolation.
    """

    def __init__(self, pictures: Pictures, indices: Sequence[int], preprocessing: Preprocessing) -> None:
        self.pictures = pictures
        self.indices = indices
        self.preprocessing = preprocessing
        self.places = torch.empty(0)

    def __len__(self) -> int:
        """Return the number of batches."""
        return -(-len(self.indices) // batch_size(self.preprocessing.crop))

    def __getitem__(self, batch: int) -> list[tuple[int, Fault]]:
        """Decode a batch, and return the positions of unreadable pictures among all, which are black, and why."""
        faults = []
        for position, pixels in zip(self.positions(batch), self.place(batch), strict=True):
            fault = self.decode(position, pixels)
            if fault is not None:
                faults.append((position, fault))
        return faults

    def positions(self, batch: int) -> range:
        """Return the positions of a batch's pictures among all."""
        size = batch_size(self.preprocessing.crop)
        return range(batch * size, min((batch + 1) * size, len(self.indices)))

    def place(self, batch: int) -> Tensor:
        """Return the pixels of a batch, uint8 `[pictures, crop, crop, 3]`."""
        return self.places[batch % len(self.places)][: len(self.positions(batch))]

    def decode(self, position: int, pixels: Tensor) -> Fault | None:
        """Write a picture's pixels, black ones if it is unreadable, and return why it is."""
        try:
            pixels.numpy()[:] = self.preprocessing.prepare(self.pictures.read(self.indices[position]))
            return None
        except MemoryError:
            fault = Fault("memory does not suffice for it", lasting=False)
        except OSError as error:
            # The operating system's errors have a number, those of decoders have none.
            fault = Fault(error.strerror or str(error) or type(error).__name__, lasting=error.errno is None)
        pixels.zero_()
        return fault


def decode_batches(
    prepared: PreparedPictures, workers: int, device: torch.device, chunk: int
) -> Iterator[tuple[Tensor, dict[int, Fault]]]:
    """Decode pictures in small batches, in processes of their own.

    Args:
        prepared: The pictures.
        workers: Processes, of which fewer are used where shared memory is short.
        device: Where the pixels are moved to.
        chunk: Pictures that the caller holds at once.

    Yields:
        Pixels, uint8 `[batch, 3, crop, crop]` in the channels-last layout, in which pictures are decoded and backbones
        take them, and why some of them are black, by position among all pictures. On a processor, the pixels are
        overwritten once the caller has taken `chunk` further pictures.
    """
    side = prepared.preprocessing.crop
    size = batch_size(side)
    held = 1 if device.type == "cuda" else -(-chunk // size) + 1  # a device has memory of its own
    workers, ahead = share_memory(workers, 3 * side**2 * size, held)
    prepared.places = torch.empty(workers * ahead + held, size, side, side, 3, dtype=torch.uint8)
    if workers:
        prepared.places.share_memory_()

    loader = DataLoader(
        prepared,
        batch_size=None,
        num_workers=workers,
        collate_fn=_keep,
        worker_init_fn=_silence_lost_connections,
        prefetch_factor=ahead if workers else None,
        generator=torch.Generator(),  # the default generator is shared with other code
    )
    for batch, faults in enumerate(loader):
        pixels, first, black = prepared.place(batch), prepared.positions(batch)[0], {}
        for position, _ in faults:
            # Decode it again alone: memory that was short beside other pictures may suffice now.
            fault = prepared.decode(position, pixels[position - first])
            if fault is not None:
                black[position] = fault
        yield pixels.permute(0, 3, 1, 2).to(device), black


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
