"""A target in batches: its photos, or their features by a frozen source."""

from __future__ import annotations

from typing import Any, Literal

import torch
from jsonargparse.typing import NonNegativeInt, PositiveInt

from headstart.datamodules.draws import draw_seed
from headstart.datamodules.photo_batches import PhotoBatches
from headstart.datamodules.row_computation import best_precision
from headstart.datamodules.row_policy import Policy, Precision
from headstart.datamodules.rows import rows
from headstart.modules.networks.spec import NetworkSpec


class TargetBatches(PhotoBatches):
    """Feeds a target's training photos, or their features, in batches, and its validation photos.

    Args:
        orderings: How often training is repeated, from heads and in orders of their own.
        first_ordering: Number of the first of them. Ordering k is the same whichever others there are.
        precision: Arithmetic of the frozen source where the head alone is trained; `auto` takes bfloat16 where the
            processor or GPU gains from it.
    """

    def __init__(
        self,
        orderings: PositiveInt = 1,
        first_ordering: NonNegativeInt = 0,
        precision: Literal["auto", "float32", "bfloat16"] = "auto",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.orderings = range(first_ordering, first_ordering + orderings)
        self.precision = precision

    def choose(self, ordering: int) -> int:
        """Choose the ordering that is fed.

        Args:
            ordering: Its number.

        Returns:
            The seed of all that training in it draws.
        """
        self.order_seed = draw_seed(ordering, self.seed)
        return self.order_seed

    def arithmetic(self, device: torch.device) -> Precision:
        """Give the arithmetic of the frozen source on a device."""
        return best_precision(device) if self.precision == "auto" else self.precision

    def load_features(self, source: NetworkSpec, width: int, device: torch.device) -> None:
        """Compute or find the features, float32 `[photos, features]`, the rows that a comparison is fed.

        Where every pixel has a class, they are of pixels, `[photos, height, width, features]`.

        Args:
            source: The source, with its preprocessing.
            width: Number of features.
            device: Where it runs.
        """
        precision, with_thumbnails = self.arithmetic(device), not self.of_pixels
        policy = Policy(precision, True, unreadable="remark", device=str(device), thumbnails=with_thumbnails)
        assert source.preprocessing is not None
        self.load(lambda photos, resources: rows(source, [], photos, policy, resources), source.preprocessing, device)
        if with_thumbnails:
            # They follow.
            self.train_inputs, self.validation_inputs = self.train_inputs[:, :width], self.validation_inputs[:, :width]
