"""Prepared pictures as a backbone takes them."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def stack(pictures: Sequence[NDArray[np.uint8]]) -> Tensor:
    """Return prepared pictures, `[crop, crop, 3]` each, as `[pictures, 3, crop, crop]`."""
    return torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2)
