"""The last step of the preparation of photos, batch by batch on the device of the network."""

import torch
from torch import Tensor, nn

from headstart.modules.networks.preprocessing import Preprocessing


class Normalization(nn.Module):
    """Turns bytes into inputs of a network; mean and standard deviation are converted with the module.

    Args:
        preprocessing: The preparation that defines them.
    """

    def __init__(self, preprocessing: Preprocessing) -> None:
        super().__init__()
        self.mean: Tensor = nn.Buffer(torch.tensor(preprocessing.mean)[:, None, None], persistent=False)
        self.std: Tensor = nn.Buffer(torch.tensor(preprocessing.std)[:, None, None], persistent=False)

    def forward(self, photos: Tensor) -> Tensor:
        """Normalise a batch.

        Args:
            photos: uint8, `[samples, 3, height, width]`.

        Returns:
            float32, same shape.
        """
        return photos.to(torch.float32).div_(255).sub_(self.mean).div_(self.std)
