"""The honest choice of hyperparameters: on other data sets than the one that the choice is scored on."""

from __future__ import annotations

from collections.abc import Mapping


def choose_on_others(scores: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    """Choose, for each data set, the variant of a method with the lowest mean score over the others.

    Source: leave-one-data-set-out: M. Stone, "Cross-Validatory Choice and Assessment of Statistical Predictions",
    Journal of the Royal Statistical Society, Series B, 1974, section 2, with data sets in place of samples.

    Args:
        scores: By data set and variant, lower is better, the same variants for all of two data sets or more; of scores
            on different scales logarithms are to be given.

    Returns:
        The variant by data set, of equal ones the first.
    """
    return {
        held_out: min(
            variants, key=lambda variant: sum(each[variant] for other, each in scores.items() if other != held_out)
        )
        for held_out, variants in scores.items()
    }
