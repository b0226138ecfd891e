"""Tests of the differences between methods, of all settings together: those of as many orderings share their draws."""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from headstart.contract.tables.grouping import grouped
from headstart.evaluation.leaderboard.settings import Setting
from headstart.metrics.arrays import Floats
from headstart.metrics.sample_efficiency.resolution import AllPairs, compare_all_pairs, orderings_needed
from headstart.metrics.sample_efficiency.scores import sign_flip_p_values

# Settings whose differences are stacked, so that signs and resamples are read from memory once for all of them.
AT_ONCE = 8


class Tests(NamedTuple):
    """Tests of the differences between the methods of one setting, in the order of the leaderboard.

    Attributes:
        all_pairs: Tests of all pairs.
        neighbours: p value of each method and the next one, `[methods - 1]`.
        baseline: p value of the baseline and each method, 1 for the baseline itself, `[methods]`; empty without one.
        orderings_needed: Orderings that each method and the next one need, as `orderings_needed` returns them.
    """

    all_pairs: AllPairs
    neighbours: list[float]
    baseline: list[float]
    orderings_needed: list[int | None]


def compare_methods(settings: Sequence[Setting]) -> list[Tests]:
    """Test the differences between the methods of each setting."""
    tables = [each.restricted for each in settings]
    all_pairs = compare_all_pairs(tables)
    neighbours = [np.diff(table, axis=0).T for table in tables]
    baselines = [_from_baseline(setting, table) for setting, table in zip(settings, tables, strict=True)]

    both = [np.hstack(pair) for pair in zip(neighbours, baselines, strict=True)]
    p_values = _by_columns(lambda differences: sign_flip_p_values(differences).tolist(), both)
    needed = _by_columns(orderings_needed, neighbours, [each.levels for each in all_pairs])
    return [
        Tests(pairs, own[: len(orderings)], own[len(orderings) :], orderings)
        for pairs, own, orderings in zip(all_pairs, p_values, needed, strict=True)
    ]


def _from_baseline(setting: Setting, table: Floats) -> Floats:
    """Return the differences of all methods from the baseline, `[orderings, methods]`; no columns without one."""
    if setting.baseline is None:
        return np.empty((table.shape[1], 0))
    return np.asarray(table[setting.names.index(setting.baseline)] - table).T


def _by_columns(function: Callable[..., Sequence[Any]], *arguments: Sequence[Floats]) -> list[list[Any]]:
    """Call a function of columns for several settings, and return the results of each setting's columns.

    Args:
        function: The function; it returns a result for each column.
        arguments: For each argument of the function its columns in all settings, the first `[orderings, columns]`.
    """
    columns = arguments[0]
    results: list[list[Any]] = [[] for _ in columns]
    for indices in grouped((len(each), index) for index, each in enumerate(columns)).values():
        for start in range(0, len(indices), AT_ONCE):
            some = indices[start : start + AT_ONCE]
            found = iter(function(*(np.concatenate([each[index] for index in some], axis=-1) for each in arguments)))
            for index in some:
                results[index] = [*islice(found, columns[index].shape[1])]
    return results
