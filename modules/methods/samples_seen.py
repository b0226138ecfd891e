"""All samples that the orderings have seen."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class SamplesSeen(nn.Module):
    """Features and labels of all samples seen, by ordering, in the order in which they came.

    The space for all samples is set aside once, so that a new batch copies nothing but itself. It is no part of
    the state dict: a checkpoint would hold the whole stream.

    Args:
        orderings: Number of orderings.
        max_samples: The most samples of one ordering.
        features: Width of the features.
    """

    _features: Tensor
    _labels: Tensor

    def __init__(self, orderings: int, max_samples: int, features: int) -> None:
        super().__init__()
        self.count = 0
        self.register_buffer("_features", torch.empty(orderings, max_samples, features), persistent=False)
        self.register_buffer("_labels", torch.empty(orderings, max_samples, dtype=torch.int64), persistent=False)

    @torch.no_grad()
    def append(self, features: Tensor, labels: Tensor) -> None:
        """Add a batch.

        Args:
            features: `[orderings, batch, features]`.
            labels: `[orderings, batch]`.
        """
        end = self.count + labels.shape[1]
        self._features[:, self.count : end] = features
        self._labels[:, self.count : end] = labels
        self.count = end

    @property
    def features(self) -> Tensor:
        """A view of the features of all samples seen, `[orderings, count, features]`."""
        return self._features[:, : self.count]

    @property
    def labels(self) -> Tensor:
        """A view of the labels of all samples seen, `[orderings, count]`."""
        return self._labels[:, : self.count]
