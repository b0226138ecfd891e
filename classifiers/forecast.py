"""The forecast of the learning curve."""

from collections.abc import Sequence
from typing import Any

from headstart.metrics.arrays import Floats


def forecast_rows(
    sizes: Sequence[int], accuracies: Sequence[Floats], classes: int, method: str
) -> list[dict[str, Any]]:
    """Return the forecast accuracies at 2, 4 and 8 times the labels; none where there is no model of curves.

    Args:
        sizes: Labels at each point of the curve.
        accuracies: Accuracies at each point, `[orderings]` each.
        classes: Number of classes.
        method: Name of the method.

    Returns:
        Rows with `labels`, `estimate` and `interval`.
    """
    return []
