"""Choice of hyperparameters on other data sets than the one that the choice is scored on."""

from collections.abc import Mapping


def choose_on_others(scores: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    """Choose, for each data set, the variant of a method with the lowest mean score over the others.

    Source: leave-one-data-set-out: M. Stone, "Cross-Validatory Choice and Assessment of Statistical Predictions",
    Journal of the Royal Statistical Society, Series B, 1974, section 2, with data sets in place of samples.

    Args:
        scores: Scores by data set and variant; lower is better. There are at least two data sets, all with the same
            variants. Pass logarithms if scales differ.

    Returns:
        The variant by data set, the first of equal ones.
    """
    return {
        held_out: min(
            variants, key=lambda variant: sum(each[variant] for other, each in scores.items() if other != held_out)
        )
        for held_out, variants in scores.items()
    }
