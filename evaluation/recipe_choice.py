"""The run of each source on each target that its accuracy on the selection photos chooses among several recipes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headstart.contract.tables.grouping import grouped
from headstart.evaluation.protocol_differences import shorten
from headstart.evaluation.transfer_results import (
    Pair,
    TransferResult,
    join_orderings,
    pair_warnings,
    require_comparable,
    show_setting,
)
from headstart.output.errors import UserError
from headstart.output.printable import say

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
        """Return where the chosen value of a setting is the lowest or highest that was tried on a pair.

        Of recipes that are equal to the chosen one, none has a value of the setting between these.
        """
        edges, equal = [], self.equal(pair)
        for index, (name, value) in enumerate(self.chosen[pair].recipe):
            values = {one.recipe[index][1] for one in self.candidates[pair]}
            if len(values) < 2 or not all(map(_is_number, values)):
                continue
            # Nothing lies below no weight decay.
            ends = {max(values): "highest"} | ({min(values): "lowest"} if min(values) != 0 else {})
            if all(one.recipe[index][1] in ends for one in equal):
                advice = "; widen the grid" if name.startswith("optimizer.") else ""
                edges.append(f"The chosen {name} {value} is the {ends[value]} that was tried{advice}.")
        return edges

    def equal(self, pair: Pair) -> list[Candidate]:
        """Return the chosen candidate of a pair, and those that the selection photos find as good."""
        return [one for one in self.candidates[pair] if one.chosen_by == self.chosen[pair].chosen_by]

    def warnings(self, pair: Pair) -> list[str]:
        """Return what readers of the accuracy of a pair should know: values at an edge, and recipes without a run."""
        there, most = len(self.candidates[pair]), len(self.recipes)
        few = [f"It was chosen from {there} of {most} recipes."] * (there < most)
        return [*self.chosen[pair].warnings, *self.edges(pair), *few]

    @property
    def ties(self) -> int:
        """Number of pairs for which another recipe is equal to the chosen one by the selection photos."""
        return sum(len(self.equal(pair)) > 1 for pair in self.candidates)


def choose_recipes(results: Sequence[TransferResult]) -> Choices:
    """Find the candidates of each pair.

    Args:
        results: Accuracies of several recipes, each also on selection photos.

    Raises:
        UserError: There are no accuracies on selection photos, or results differ in more than the recipe.
    """
    without = dict.fromkeys(str(each) for each in results if not each.selection)
    results = [each for each in results if each.selection]
    if not results:
        raise UserError(
            f"best: no accuracy on selection photos is there of {', '.join(without)}; run headstart train with "
            "--data.selection_share=0.2"
        )
    if without:
        say(f"WARNING: Left out, without an accuracy on selection photos: {', '.join(without)}.")
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


def describe(recipe: Recipe) -> str:
    """Return a recipe as text."""
    return ", ".join(f"{name} {show_setting(value)}" for name, value in recipe)


def _varied(recipes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the settings in which recipes differ, sorted."""
    keys = {key for recipe in recipes for key in recipe}
    return sorted(key for key in keys if len({recipe.get(key) for recipe in recipes}) > 1)


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
