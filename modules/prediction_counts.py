"""Correct predictions of a method in one evaluation."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class PredictionCounts:
    """One evaluation of a method.

    Attributes:
        counts: Correct predictions, predictions whose greatest logit is not finite, and the correct ones of each class
            if these are counted. The shape is `[2, orderings]` or `[2 + classes, orderings]`. NaN and minus infinity
            are wrong; plus infinity of one class is a prediction without a probability, which may be correct.
    """

    counts: Tensor

    def add(self, logits: Tensor, labels: Tensor, class_weights: Tensor | None) -> None:
        """Count the predictions of one chunk of the validation set.

        Args:
            logits: `[orderings, samples, classes]`.
            labels: `[samples]`.
            class_weights: The weight of a correct prediction by its class, `[classes]`; 1 by default.
        """
        # A class without a sample may have -inf; the greatest is NaN where any is.
        greatest, predicted = logits.max(-1)
        # Of a network that has overflowed, several are +inf.
        is_one = (logits == torch.inf).sum(-1) <= 1
        is_correct = (predicted == labels) & (greatest > -torch.inf) & is_one
        correct = is_correct if class_weights is None else is_correct * class_weights[labels]
        counts = torch.stack([correct.sum(-1), (~greatest.isfinite()).sum(-1)])
        if classes := len(self.counts) - 2:
            of_class = counts.new_zeros(len(is_correct), classes)
            of_class.index_add_(1, labels, is_correct.long())
            counts = torch.cat([counts, of_class.T])

        self.counts = self.counts + counts
