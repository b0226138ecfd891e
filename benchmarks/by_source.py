"""How the ranking of the methods depends on the source, and how far it holds for other targets."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pandas

BOOTSTRAPS = 10_000


def source_rows(document: Mapping[str, Any], sources: Mapping[str, Any]) -> list[list[str]]:
    """Return a table of the methods by source, with an interval over targets.

    Args:
        document: The content of `leaderboard.json`.
        sources: `over_settings` of the leaderboard of each source alone, by the source's name.
    """
    ranked = {
        source: {each["name"]: (rank, each) for rank, each in enumerate(over["methods"], 1)}
        for source, over in sources.items()
    }
    rows = [["method", *ranked, "over targets"]]
    for name, (mean, low, high) in over_targets(document).items():
        cells = []
        for methods in ranked.values():
            rank, each = methods[name]
            cells.append(f"{each['interquartile_mean']:.2f} ({rank})")
        rows.append([name, *cells, f"{mean:.2f} [{low:.2f}, {high:.2f}]"])
    return rows


def over_targets(document: Mapping[str, Any]) -> dict[str, tuple[float, float, float]]:
    """Return the geometric mean of each method's relative samples over settings, and its interval over targets.

    Args:
        document: The content of `leaderboard.json`.
    """
    names = [each["name"] for each in document["over_settings"]["methods"]]
    settings = [each for each in document["settings"] if each["name"] in document["over_settings"]["settings"]]
    means = [{each["name"]: each["restricted_mean"] for each in setting["methods"]} for setting in settings]
    logarithms = np.log([[each[name] for name in names] for each in means])
    logarithms -= logarithms.mean(1, keepdims=True)

    targets = np.array([each["dataset"] for each in settings])
    of_targets = np.array([logarithms[targets == target].mean(0) for target in dict.fromkeys(targets)])
    drawn = np.random.default_rng(0).integers(len(of_targets), size=(BOOTSTRAPS, len(of_targets)))
    ends = np.percentile(of_targets[drawn].mean(1), (2.5, 97.5), axis=0)
    means_and_ends = np.exp([of_targets.mean(0), *ends]).T
    return dict(zip(names, map(tuple, means_and_ends.tolist()), strict=True))


def source_sentences(sources: Mapping[str, Any]) -> str:
    """Return which methods are below or above the mean of all methods with every source, and how alike the orders are.

    Args:
        sources: As for `source_rows`.
    """
    means = {
        source: {each["name"]: each["interquartile_mean"] for each in over["methods"]}
        for source, over in sources.items()
    }
    frame = pandas.DataFrame(means)
    below = [f"`{name}`" for name in frame.index[(frame < 1).all(axis=1)]]
    above = [f"`{name}`" for name in frame.index[(frame > 1).all(axis=1)]]
    tau = frame.corr(method="kendall")
    pairs = [f"{one} and {other} {tau.loc[one, other]:.2f}" for one, other in combinations(means, 2)]
    return (
        f"Fewer samples than the mean of all methods with every source: {', '.join(below) or 'none'}. More with every "
        f"source: {', '.join(above) or 'none'}. Kendall's tau between the orders of two sources: "
        f"{', '.join(pairs) or 'there is one'}."
    )
