"""How pictures are decoded and prepared: in small batches, side by side, and ahead of their use."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, get_worker_info

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


class PreparedPictures(Dataset[tuple[int, Tensor, Fault | None]]):
    """Pictures decoded, resized and cropped, as bytes, for the loader's workers.

    Args:
        pictures: The pictures.
        indices: Which of them, in order.
        preprocessing: Size and interpolation.
    """

    def __init__(self, pictures: Pictures, indices: Sequence[int], preprocessing: Preprocessing) -> None:
        self.pictures = pictures
        self.indices = indices
        self.preprocessing = preprocessing

    def __len__(self) -> int:
        """Return the number of pictures."""
        return len(self.indices)

    def __getitem__(self, position: int) -> tuple[int, Tensor, Fault | None]:
        """Return the position, the pixels `[3, crop, crop]`, and why they are black if the picture is unreadable."""
        try:
            picture = self.pictures.read(self.indices[position])
            return position, self.preprocessing.prepare(picture), None
        except MemoryError:
            fault = Fault("memory does not suffice for it", lasting=False)
        except OSError as error:
            # The operating system's errors have a number, those of decoders have none.
            fault = Fault(error.strerror or str(error) or type(error).__name__, lasting=error.errno is None)
        side = self.preprocessing.crop
        return position, torch.zeros(3, side, side, dtype=torch.uint8), fault


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
        Pixels, uint8 `[batch, 3, crop, crop]`, and why some of them are black, by position among all pictures.
    """
    side = prepared.preprocessing.crop
    size, pinned = batch_size(side), device.type == "cuda"
    # Pinned memory and that of a device are no shared memory.
    held = 1 if pinned else -(-chunk // size) + 1
    workers, ahead = share_memory(workers, 3 * side**2 * size, held)

    loader = DataLoader(
        prepared,
        size,
        num_workers=workers,
        collate_fn=_collate,
        worker_init_fn=_silence_lost_connections,
        prefetch_factor=ahead if workers else None,
        pin_memory=pinned,
        generator=torch.Generator(),  # the default generator is shared with other code
    )
    for positions, pixels, faults in loader:
        black = {}
        for row, (position, fault) in enumerate(zip(positions, faults, strict=True)):
            if fault is not None:
                # Decode it again alone: memory that was short beside other pictures may suffice now.
                _, pixels[row], fault = prepared[position]
            if fault is not None:
                black[position] = fault
        yield pixels.to(device, non_blocking=True), black


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


def _collate(samples: list[tuple[int, Tensor, Fault | None]]) -> tuple[list[int], Tensor, list[Fault | None]]:
    """Stack pictures in the channels-last layout, in which they are decoded and in which backbones take them."""
    positions, pixels, faults = zip(*samples, strict=True)
    batch = torch.stack([each.permute(1, 2, 0) for each in pixels])
    if get_worker_info() is not None:
        # Torch would do this later in a thread, whose error about missing shared memory would reach nobody.
        batch.share_memory_()
    return list(positions), batch.permute(0, 3, 1, 2), list(faults)


def _silence_lost_connections(worker: int) -> None:
    """Suppress tracebacks in the threads of a decoding process whose parent has ended."""
    print_error = sys.excepthook

    def print_others(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not issubclass(kind, ConnectionError | EOFError):
            print_error(kind, error, trace)

    sys.excepthook = print_others
