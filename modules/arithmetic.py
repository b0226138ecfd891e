"""What torch computes with, settled before anything is computed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from headstart.output.processors import count_processors

# Whether a GPU may round the factors of products to 10 bits (TensorFloat-32). Part of what a trace is found by.
TENSOR_FLOAT_32 = False


def settle_arithmetic() -> None:
    """Let float32 mean float32 on every device, and torch take no more threads than there are processors for it.

    It may be called at any time and takes microseconds: code of users that has run before may have decided otherwise.
    """
    backends: Any = torch.backends  # its types know nothing of the newer switches
    # What was set for all operations or for all of a library's holds for those that say nothing of their own.
    backends.fp32_precision = "none"
    backends.cudnn.fp32_precision = "none"
    backends.mkldnn.conv.fp32_precision = backends.mkldnn.rnn.fp32_precision = "ieee"
    # The older switches come last, since torch refuses to read them once the newer ones contradict them, and its own
    # `cudnn.flags` reads them.
    torch.set_float32_matmul_precision("highest")
    backends.cuda.matmul.allow_tf32 = TENSOR_FLOAT_32
    backends.cudnn.allow_tf32 = TENSOR_FLOAT_32
    # torch knows of the process's affinity and OMP_NUM_THREADS, not of a container's quota.
    torch.set_num_threads(min(torch.get_num_threads(), count_processors()))


@contextmanager
def deterministic() -> Iterator[None]:
    """Compute with arithmetic that is settled, and the same in every run; float32 is meant in full."""
    settle_arithmetic()
    cudnn = torch.backends.cudnn
    with cudnn.flags(enabled=cudnn.enabled, benchmark=False, deterministic=True, allow_tf32=False):
        yield
