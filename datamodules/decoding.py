"""How pictures are decoded and prepared: by a DataLoader, in small batches, ahead of a device or between its passes."""

import math
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from headstart.datamodules.photos.picture_decoding import without_warnings
from headstart.datamodules.photos.pictures import Pictures
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.output.errors import UserError

# Pixels that a process decodes at once, 2.4 MB, and batches that it decodes ahead.
BATCH_PIXELS, AHEAD = 16 * 224**2, 4
# Folder of shared memory in which decoded batches wait, and of which half may be filled.
SHARED_MEMORY = "/dev/shm"
# Messages of torch's loader, at any moment, on a process that was killed or found no shared memory.
ENDED = re.compile(r"DataLoader worker .*(is killed by|exited unexpectedly)|unable to .* shared memory")


class Fault(NamedTuple):
    """Why a picture is black, and whether its bytes are at fault rather than the present state of the system."""

    reason: str
    lasting: bool


# Pixels of a batch, uint8 `[pictures, side, side, 3]`, and why some of it are black, by position.
Batch = tuple[Tensor, dict[int, Fault]]


class PictureBatches(Dataset[Batch]):
    """Decodes, resizes and crops pictures, as bytes, batch by batch.

    Args:
        pictures: The pictures.
        preprocessing: Size and interpolation.
    """

    def __init__(self, pictures: Pictures, preprocessing: Preprocessing) -> None:
        self.pictures, self.preprocessing = pictures, preprocessing

    def __getitem__(self, indices: Sequence[int]) -> Batch:
        """Decode the pictures with some indices."""
        side, faults = self.preprocessing.crop, {}
        pixels = torch.zeros(len(indices), side, side, 3, dtype=torch.uint8)
        array = pixels.numpy()
        with without_warnings():
            for position, index in enumerate(indices):
                try:
                    array[position] = self.preprocessing.prepare(self.pictures.read(index))
                except MemoryError:
                    faults[position] = Fault("memory does not suffice for it", lasting=False)
                except OSError as error:
                    # The operating system's errors have a number, those of decoders have none.
                    reason = error.strerror or str(error) or type(error).__name__
                    faults[position] = Fault(reason, lasting=error.errno is None)
        return pixels, faults


class Decoder:
    """Decodes pictures in processes, which stay for all of them.

    Args:
        pictures: The pictures.
        preprocessing: Size and interpolation.
        workers: Processes; 0 for this one. Fewer are used where shared memory is short.
        chunk: Pictures of a chunk.
        ahead: Whether further chunks are decoded while the caller computes. Where it computes on all processors,
            processes that decode beside it cost more time than they save.
    """

    def __init__(self, pictures: Pictures, preprocessing: Preprocessing, workers: int, chunk: int, ahead: bool) -> None:
        self.chunk, self.ahead = chunk, ahead
        side, each = preprocessing.crop, 1 if ahead else max(1, workers)
        # The processes get the same number of batches of a chunk.
        turns = math.ceil(chunk / (each * max(1, BATCH_PIXELS // side**2)))
        self.size, factor = math.ceil(chunk / (each * turns)), AHEAD if ahead else turns
        workers = min(workers, _room() // (3 * side**2 * self.size * factor))
        self.batches = PictureBatches(pictures, preprocessing)
        self._queue: list[Sequence[int]] = []
        self._loader = DataLoader(
            self.batches,
            batch_size=None,
            sampler=self._queue,
            num_workers=workers,
            collate_fn=_keep,
            worker_init_fn=_stand_apart,
            prefetch_factor=factor if workers else None,
            persistent_workers=workers > 0,
            generator=torch.Generator(),  # the default generator is shared with other code
        )

    def decode(self, indices: Sequence[int], device: torch.device) -> Iterator[Batch]:
        """Decode some pictures.

        Args:
            indices: Their indices, in order.
            device: Where the pixels are moved to.

        Yields:
            Chunks: pixels, uint8 `[chunk, 3, side, side]`, fewer in the last one. Their layout is channels-last, as
            pictures are decoded and as backbones take them. And why some of them are black.
        """
        chunks = [indices[first : first + self.chunk] for first in range(0, len(indices), self.chunk)]
        cut = [[chunk[first : first + self.size] for first in range(0, len(chunk), self.size)] for chunk in chunks]
        loaded = self._load(chain(*cut)) if self.ahead else None
        for batches in cut:
            pixels, faults, first = list[Tensor](), dict[int, Fault](), 0
            for batch, (part, black) in zip(batches, loaded or self._load(batches), strict=False):
                if black:
                    # Once more and alone: memory that was short beside other pictures may suffice now.
                    part, black = self.batches[batch]
                pixels.append(part.to(device))
                faults |= {first + position: fault for position, fault in black.items()}
                first += len(batch)
            yield torch.cat(pixels).permute(0, 3, 1, 2), faults

    def _load(self, batches: Iterable[Sequence[int]]) -> Iterator[Batch]:
        self._queue[:] = batches
        return iter(self._loader)


def _room() -> int:
    """Return how many bytes of shared memory decoded pictures may fill."""
    with suppress(OSError):
        return shutil.disk_usage(SHARED_MEMORY).free // 2
    # Systems without that folder share memory in another way.
    return 2**40


def _keep(batch: Any) -> Any:  # noqa: ANN401 - as the loader declares it
    """Pass on what a process returns as it is."""
    return batch


def _stand_apart(worker: int) -> None:
    """Leave the end of a decoding process to the command: Ctrl-C and `timeout` send their signal to its whole group."""
    os.setpgrp()


@contextmanager
def explain_decoding_errors() -> Iterator[None]:
    """Raise the end of a decoding process as the user's error, which names the option."""
    try:
        yield
    except RuntimeError as error:
        if not ENDED.search(str(error)):
            raise
        *_, reason = str(error).strip().splitlines()
        raise UserError(
            f"num_workers: a process that decodes pictures stopped ({reason}); computed rows are kept, so "
            "try again, with fewer processes or more memory"
        ) from error
