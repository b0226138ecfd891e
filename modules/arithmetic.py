"""The arithmetic of torch, settled before anything is computed, and features that it could not tell apart."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from headstart.output.processors import count_processors

# Whether a GPU may round the factors of products to 10 bits (TensorFloat-32). It is part of a trace's identity.
TENSOR_FLOAT_32 = False
# Length of the mean relative to the spread from which it is an offset. Of usual networks it is below 10, and methods
# lose their last correct digits in float32 at 1,000.
LARGE_OFFSET = 100.0
# Samples that are looked at, evenly spaced, at most.
SEEN_AT_MOST = 1024


def set_float32_arithmetic() -> None:
    """Set full precision of float32 on every device, and no more threads of torch than available processors.

    It may be called at any time and takes microseconds: code of users that has run before may have changed both.
    """
    backends: Any = torch.backends  # its types know nothing of the newer switches
    # A setting of all operations, or of all of a library's, holds for those without a setting of their own.
    backends.fp32_precision = "none"
    backends.cudnn.fp32_precision = "none"
    backends.mkldnn.conv.fp32_precision = backends.mkldnn.rnn.fp32_precision = "ieee"
    # The older switches come last: `cudnn.flags` of torch reads them, which raises an error while the newer ones
    # contradict them.
    torch.set_float32_matmul_precision("highest")
    backends.cuda.matmul.allow_tf32 = TENSOR_FLOAT_32
    backends.cudnn.allow_tf32 = TENSOR_FLOAT_32
    # torch knows of the process's affinity and OMP_NUM_THREADS, not of a container's quota.
    torch.set_num_threads(min(torch.get_num_threads(), count_processors()))


@contextmanager
def deterministic() -> Iterator[None]:
    """Compute within with settled arithmetic, which is the same in every run."""
    set_float32_arithmetic()
    cudnn = torch.backends.cudnn
    with cudnn.flags(enabled=cudnn.enabled, benchmark=False, deterministic=True, allow_tf32=False):
        yield


def seen_rows(count: int) -> slice:
    """Return which of so many samples are looked at for the offset."""
    return slice(None, None, -(-count // SEEN_AT_MOST))


def common_offset(features: Tensor) -> Tensor | None:
    """Return the mean of features if it is more than 100 times as large as their spread.

    Squared norms and products then cancel in float32: nearest class mean predicts by chance from about 10,000 on.
    Less the mean, the same features have all their digits. No label is used, and no usual feature changes.

    Args:
        features: Features of some training samples, `[samples, features]`.

    Returns:
        `[features]` in float32; None where features are used as they are.
    """
    mean = features.double().mean(0)
    spread = (features - mean).square().sum(1).mean().sqrt()
    return mean.float() if 0 < LARGE_OFFSET * spread < mean.norm() else None
