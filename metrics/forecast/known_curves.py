"""Learning curves of many methods on many data sets, from which forecasts are calibrated."""

from functools import cache
from pathlib import Path

import pandas as pd

SHIPPED = Path(__file__).with_name("known_curves.csv")
# What tells curves apart: targets of the same photos have the same data set.
CURVE = ["data_set", "target", "source", "method", "classes"]
ORDERING = "ordering"
DIGITS = 4


def write_curves(curves: pd.DataFrame, path: Path = SHIPPED) -> None:
    """Write curves, which `read_curves` describes; accuracies are rounded to four digits."""
    curves.round(DIGITS).to_csv(path)


def read_curves(path: Path = SHIPPED) -> pd.DataFrame:
    """Read learning curves that were measured before; by default those of the suite.

    Args:
        path: The file.

    Returns:
        Accuracies, NaN behind the end of a curve: a row for each ordering of a curve, by the keys of `CURVE` and the
        ordering's number, and a column for each number of labels, ascending.
    """
    curves = pd.read_csv(path, index_col=[*CURVE, ORDERING])
    return curves.rename(columns=int).round(DIGITS)


@cache
def shipped_curves() -> pd.DataFrame:
    """Return the curves of the suite."""
    return read_curves()
