"""What torch computes with, settled before anything is computed."""

from __future__ import annotations

import torch

from output.processors import count_processors

# Whether a GPU may round the factors of products to 10 bits (TensorFloat-32). Part of what a trace is found by.
TENSOR_FLOAT_32 = False


def settle_arithmetic() -> None:
    """Let float32 mean float32 on every device, and torch take no more threads than there are processors for it."""
    # By these switches rather than by the newer `fp32_precision`: torch refuses to read the ones once the others were
    # set, and its own `cudnn.flags` reads these.
    torch.backends.cuda.matmul.allow_tf32 = TENSOR_FLOAT_32
    torch.backends.cudnn.allow_tf32 = TENSOR_FLOAT_32
    # torch knows of the process's affinity and OMP_NUM_THREADS, not of a container's quota.
    torch.set_num_threads(min(torch.get_num_threads(), count_processors()))
