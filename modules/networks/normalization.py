"""The last step of a photo's preparation, batch by batch on the device of the network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from headstart.modules.networks.preprocessing import Preprocessing


class Normalization(nn.Module):
    """Turns bytes into what a network takes; mean and standard deviation go to the device with the module.

    Args:
        preprocessing: What says them.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, preprocessing: Preprocessing) -> None:
        super().__init__()
        for name in ("mean", "std"):
            values = torch.tensor(getattr(preprocessing, name))
            self.register_buffer(name, values[:, None, None], persistent=False)

    def forward(self, photos: Tensor) -> Tensor:
        """Normalise a batch.

        Args:
            photos: uint8, `[samples, 3, height, width]`.

        Returns:
            float32, same shape.
        """
        return photos.to(torch.float32).div_(255).sub_(self.mean).div_(self.std)
