"""The preparation of photos for a network; it can be defined without torch, numpy and Pillow."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from headstart.output.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image
    from torch import Tensor

# Label of a pixel without a class, in label maps.
NO_CLASS = 255


@dataclass(frozen=True)
class Preprocessing:
    """Resize, crop and normalisation; the defaults are the usual ones of ImageNet.

    Decoding, resizing and cropping happen photo by photo and return bytes. The normalisation (`Normalization`) happens
    batch by batch on the backbone's device, so only a quarter of the memory is copied.

    Args:
        resize: Length in pixels that the photo's short side is scaled to.
        crop: Side in pixels of the square cut from the centre.
        mean: Mean of the three colours, on the scale from 0 to 1.
        std: Standard deviation of the three colours, on the same scale.
        interpolation: Interpolation of pixels when the photo is scaled; `nearest` is for label maps.
    """

    resize: int = 256
    crop: int = 224
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)
    interpolation: Literal["bilinear", "bicubic", "nearest"] = "bilinear"

    def check(self) -> None:
        """Check the numbers; the caller adds the option that they come from.

        Raises:
            UserError: The crop is larger than the photo, or a mean or standard deviation is not possible.
        """
        if not 1 <= self.crop <= self.resize:
            raise UserError(f"crop: {self.crop} is given; 1 or more is allowed, and at most resize, {self.resize}")
        if not all(math.isfinite(value) for value in self.mean):
            raise UserError(f"mean: {list(self.mean)} is given; finite numbers are allowed")
        if not all(0 < value < math.inf for value in self.std):
            raise UserError(f"std: {list(self.std)} is given; finite numbers above 0 are allowed")

    @classmethod
    def from_torchvision(cls, preset: Any) -> "Preprocessing":  # noqa: ANN401 - torchvision has no public type for it
        """Return the preparation of torchvision's weights.

        Args:
            preset: The preset, `weights.transforms()`.

        Returns:
            The same preparation.
        """
        (resize,), (crop,) = preset.resize_size, preset.crop_size
        return cls(resize, crop, tuple(preset.mean), tuple(preset.std), preset.interpolation.value)

    @classmethod
    def from_timm(cls, config: dict[str, Any]) -> "Preprocessing | None":
        """Return the preparation of timm's data configuration.

        Args:
            config: The result of `timm.data.resolve_model_data_config`.

        Returns:
            The same preparation; None where the model needs something else than a square centre crop.
        """
        _, height, width = config["input_size"]
        if height != width or config["crop_mode"] != "center" or config["interpolation"] not in {"bilinear", "bicubic"}:
            return None
        resize = math.floor(height / config["crop_pct"])
        return cls(resize, height, config["mean"], config["std"], config["interpolation"])

    def noise_photo(self) -> "Tensor":
        """Return a prepared photo of noise, uint8 `[1, 3, crop, crop]`, always the same."""
        import torch

        generator = torch.Generator().manual_seed(0)
        return torch.randint(256, (1, 3, self.crop, self.crop), generator=generator, dtype=torch.uint8)

    def prepare(self, photo: "Image.Image") -> "NDArray[np.uint8]":
        """Resize and crop one photo to the pixels of torchvision's `Resize(resize)` and `CenterCrop(crop)`.

        Args:
            photo: The photo in RGB, of any size.

        Returns:
            `[crop, crop, 3]`, read-only.
        """
        import numpy as np
        from PIL import Image

        short = min(photo.size)
        if short != self.resize:
            width, height = (self.resize * side // short for side in photo.size)
            photo = photo.resize((width, height), Image.Resampling[self.interpolation.upper()])

        if photo.size != (self.crop, self.crop):
            left, top = (round((side - self.crop) / 2) for side in photo.size)
            photo = photo.crop((left, top, left + self.crop, top + self.crop))
        return np.frombuffer(photo.tobytes(), np.uint8).reshape(self.crop, self.crop, 3)
