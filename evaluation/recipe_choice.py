"""The run of each source on each target that its accuracy on the selection photos chooses among several recipes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from headstart.evaluation.grouping import grouped
from headstart.evaluation.protocol_differences import shorten
from headstart.evaluation.transfer_results import (
    Pair,
    TransferResult,
    join_orderings,
    pair_warnings,
    require_comparable,
)
from headstart.output.errors import UserError
from headstart.output.tables import format_number, print_table

# Decimals to which means over orderings are compared: they are sums of fractions.
DECIMALS = 12

# The settings that differ between recipes, by short name, in the order of the names.
Recipe = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Candidate:
    """The runs of one recipe on one pair.

    Attributes:
        recipe: The recipe.
        accuracies: Accuracy on the validation photos by ordering.
        selection: Accuracy on the selection photos by ordering.
        warnings: Warnings of the runs.
    """

    recipe: Recipe
    accuracies: Mapping[int, float]
    selection: Mapping[int, float]
    warnings: Sequence[str]

    @property
    def accuracy(self) -> float:
        """Mean accuracy on the validation photos."""
        return float(np.mean(list(self.accuracies.values())))

    @property
    def chosen_by(self) -> float:
        """Mean accuracy on the selection photos, to so many decimals that equal ones are equal."""
        return round(float(np.mean(list(self.selection.values()))), DECIMALS)


@dataclass(frozen=True)
class Choices:
    """The chosen runs, and those that they were chosen from.

    Attributes:
        settings: Short names of the settings that differ between recipes.
        candidates: All recipes of each pair, in the order of their values.
    """

    settings: tuple[str, ...]
    candidates: Mapping[Pair, Sequence[Candidate]]

    @property
    def chosen(self) -> dict[Pair, Candidate]:
        """The best candidate of each pair by the selection photos; the first one of equal ones."""
        return {pair: max(each, key=lambda one: one.chosen_by) for pair, each in self.candidates.items()}

    @property
    def recipes(self) -> list[Recipe]:
        """All recipes, in the order of their values."""
        return sorted({one.recipe for each in self.candidates.values() for one in each}, key=_order)

    def of(self, recipe: Recipe) -> dict[Pair, Candidate]:
        """Return the runs of one recipe."""
        return {pair: one for pair, each in self.candidates.items() for one in each if one.recipe == recipe}

    def edges(self, pair: Pair) -> list[str]:
        """Return where the chosen value of a setting is the lowest or highest that was tried on a pair."""
        edges = []
        for index, (name, value) in enumerate(self.chosen[pair].recipe):
            values = {one.recipe[index][1] for one in self.candidates[pair]}
            if len(values) < 2 or not all(map(_is_number, values)):
                continue
            if value == max(values):
                edges.append(f"The chosen {name} {value} is the highest that was tried; widen the grid.")
            # Nothing lies below no weight decay.
            elif value == min(values) != 0:
                edges.append(f"The chosen {name} {value} is the lowest that was tried; widen the grid.")
        return edges

    def warnings(self, pair: Pair) -> list[str]:
        """Return what readers of the accuracy of a pair should know: values at an edge, and recipes without a run."""
        there, most = len(self.candidates[pair]), len(self.recipes)
        few = [f"It was chosen from {there} of {most} recipes."] * (there < most)
        return [*self.chosen[pair].warnings, *self.edges(pair), *few]

    @property
    def ties(self) -> int:
        """Number of pairs for which another recipe is equal to the chosen one by the selection photos."""
        return sum(
            [one.chosen_by for one in each].count(self.chosen[pair].chosen_by) > 1
            for pair, each in self.candidates.items()
        )


def choose_recipes(results: Sequence[TransferResult]) -> Choices:
    """Find the candidates of each pair.

    Args:
        results: Accuracies of several recipes, each also on selection photos.

    Raises:
        UserError: There are no accuracies on selection photos, or results differ in more than the recipe.
    """
    for each in results:
        if not each.selection:
            raise UserError(
                f"best: {str(each.folder)!r} has no accuracy on selection photos; run headstart train with "
                "--data.selection_share=0.2"
            )
    require_comparable(results)

    settings = _varied([each.recipe for each in results])
    short = {key: shorten(key) for key in settings}
    by_recipe = grouped((tuple((short[key], each.recipe.get(key)) for key in settings), each) for each in results)
    candidates: dict[Pair, list[Candidate]] = {}
    for recipe in sorted(by_recipe, key=_order):
        accuracies, selection = (join_orderings(by_recipe[recipe], kind) for kind in ("values", "selection"))
        warnings = pair_warnings(by_recipe[recipe])
        for pair, values in accuracies.items():
            candidates.setdefault(pair, []).append(Candidate(recipe, values, selection[pair], warnings[pair]))
    _require_same_orderings(candidates)
    return Choices(tuple(short.values()), candidates)


def print_movement(choices: Choices) -> None:
    """Print how well each recipe does for all pairs, and how far its rankings of the sources are from the chosen ones.

    Args:
        choices: The chosen runs.
    """
    chosen = choices.chosen
    of_target = grouped((target, (source, target)) for source, target in chosen)
    if len(choices.recipes) == 1 or max(map(len, of_target.values())) == 1:
        return

    rows = [["recipe for all", "pairs", "accuracy", "chosen for", *(f"tau, {target}" for target in of_target)]]
    for recipe in choices.recipes:
        alone = choices.of(recipe)
        taus = [_tau(pairs, alone, chosen) for pairs in of_target.values()]
        times = sum(one.recipe == recipe for one in chosen.values())
        mean = format_number(_mean(alone.values()))
        rows.append([describe(recipe), str(len(alone)), mean, str(times), *(format_number(tau, ".2f") for tau in taus)])

    captions = [f"chosen for each pair: accuracy {format_number(_mean(chosen.values()))}"]
    complete = [each for each in map(choices.of, choices.recipes) if len(each) == len(chosen)]
    if complete:
        best = max(complete, key=lambda each: sum(one.chosen_by for one in each.values()))
        name, mean = describe(next(iter(best.values())).recipe), format_number(_mean(best.values()))
        captions.append(f"the best recipe for all by the selection photos, {name}: {mean}")
    captions.append("tau: Kendall's, of the rankings of the sources by the recipe and by the chosen runs")
    print_table("One recipe for all pairs, and the chosen runs", rows, "; ".join(captions))


def describe(recipe: Recipe) -> str:
    """Return a recipe as text."""
    return ", ".join(f"{name} {value}" for name, value in recipe)


def _tau(pairs: Sequence[Pair], alone: Mapping[Pair, Candidate], chosen: Mapping[Pair, Candidate]) -> float | None:
    """Return Kendall's tau-b of two rankings of sources; None where one is missing or has no order."""
    if not all(pair in alone for pair in pairs) or len(pairs) == 1:
        return None
    tau = kendalltau(*([each[pair].accuracy for pair in pairs] for each in (alone, chosen))).statistic
    return None if np.isnan(tau) else float(tau)


def _mean(candidates: Iterable[Candidate]) -> float:
    return float(np.mean([one.accuracy for one in candidates]))


def _varied(recipes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the settings in which recipes differ, sorted."""
    keys = {key for recipe in recipes for key in recipe}
    return sorted(key for key in keys if len({str(recipe.get(key)) for recipe in recipes}) > 1)


def _order(recipe: Recipe) -> list[tuple[bool, Any]]:
    """Return a key that sorts recipes by their values: numbers by size, before texts."""
    return [(not _is_number(value), value if _is_number(value) else str(value)) for _, value in recipe]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _require_same_orderings(candidates: Mapping[Pair, Sequence[Candidate]]) -> None:
    """Raise a UserError unless all recipes of a pair were run in the same orderings."""
    for pair, (first, *others) in candidates.items():
        for other in others:
            if first.accuracies.keys() != other.accuracies.keys():
                one, two = (", ".join(map(str, sorted(each.accuracies))) for each in (first, other))
                raise UserError(
                    f"best: {' on '.join(pair)} has orderings {one} of {describe(first.recipe)}, but {two} of "
                    f"{describe(other.recipe)}; run the missing ones, or leave the others out"
                )
