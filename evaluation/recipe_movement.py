"""Performance of one recipe for all pairs, and the agreement of its rankings with those of the chosen runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import kendalltau

from headstart.contract.tables.grouping import grouped
from headstart.evaluation.recipe_choice import Candidate, Choices, Recipe, describe
from headstart.evaluation.transfer_results import Pair
from headstart.output.markup import csv_text
from headstart.output.printable import say
from headstart.output.tables import format_number, print_table


@dataclass(frozen=True)
class Movement:
    """One recipe for all pairs, beside the chosen runs.

    Attributes:
        recipe: The recipe.
        pairs: Number of pairs that were run with it.
        accuracy: Mean accuracy over all pairs on the validation photos; None unless all were run with it.
        selection_accuracy: That on the selection photos.
        chosen_for: Number of pairs for which it was chosen.
        taus: By target, Kendall's tau-b of the ranking of the sources by the recipe with that by the chosen runs. None
            if a source was not run with it, or one of the rankings has no order.
    """

    recipe: Recipe
    pairs: int
    accuracy: float | None
    selection_accuracy: float | None
    chosen_for: int
    taus: Mapping[str, float | None]


def compare_recipes(choices: Choices) -> list[Movement]:
    """Compare each recipe with the chosen runs.

    Args:
        choices: The chosen runs.
    """
    chosen, movements = choices.chosen, []
    of_target = grouped((pair[1], pair) for pair in chosen)
    for recipe in choices.recipes:
        alone = choices.of(recipe)
        # Means over different pairs cannot be compared.
        complete = len(alone) == len(chosen)
        movements.append(
            Movement(
                recipe,
                len(alone),
                _mean([one.accuracy for one in alone.values()]) if complete else None,
                _mean([one.chosen_by for one in alone.values()]) if complete else None,
                sum(one.recipe == recipe for one in chosen.values()),
                {target: _tau(pairs, alone, chosen) for target, pairs in of_target.items()},
            )
        )
    return movements


def movement_csv(choices: Choices, movements: Sequence[Movement]) -> str:
    """Return the comparison of the recipes as CSV: a row for each recipe, and empty cells for None.

    Args:
        choices: The chosen runs.
        movements: Result of `compare_recipes` for them.
    """
    taus = [f"tau {target}" for target in movements[0].taus]
    columns = [*choices.settings, "pairs", "accuracy", "selection_accuracy", "chosen_for", *taus]
    rows = []
    for each in movements:
        numbers = each.pairs, each.accuracy, each.selection_accuracy, each.chosen_for
        rows.append([*dict(each.recipe).values(), *numbers, *each.taus.values()])
    return csv_text(columns, rows)


def print_movement(choices: Choices, movements: Sequence[Movement]) -> None:
    """Print the comparison of the recipes, or why there is none.

    Args:
        choices: The chosen runs.
        movements: Result of `compare_recipes` for them.
    """
    chosen = choices.chosen
    if len(movements) == 1:
        say("All runs have one recipe, so that nothing was chosen and no ranking can move.")
        return
    if len(movements[0].taus) == len(chosen):
        say("Each target has one source, so that the choice of a recipe can move no ranking.")
        return

    rows = [["recipe for all", "pairs", "accuracy", "chosen for", *(f"tau, {target}" for target in movements[0].taus)]]
    for each in movements:
        counts = str(each.pairs), format_number(each.accuracy), str(each.chosen_for)
        rows.append([describe(each.recipe), *counts, *(format_number(tau, ".2f") for tau in each.taus.values())])

    mean = _mean([one.accuracy for one in chosen.values()])
    captions = [f"chosen for each pair: accuracy {format_number(mean)}"]
    complete = [each for each in movements if each.selection_accuracy is not None]
    if complete:
        best = max(complete, key=lambda each: each.selection_accuracy or 0.0)
        name, number = describe(best.recipe), format_number(best.accuracy)
        captions.append(f"the best recipe for all by the selection photos, {name}: {number}")
    if any(None in (each.accuracy, *each.taus.values()) for each in movements):
        captions.append("–: not all pairs were run with the recipe, or a ranking has no order")
    captions.append("tau: Kendall's, of the rankings of the sources by the recipe and by the chosen runs")
    print_table("One recipe for all pairs, and the chosen runs", rows, "; ".join(captions))


def _tau(pairs: Sequence[Pair], alone: Mapping[Pair, Candidate], chosen: Mapping[Pair, Candidate]) -> float | None:
    if not all(pair in alone for pair in pairs) or len(pairs) == 1:
        return None
    tau = kendalltau(*([each[pair].accuracy for pair in pairs] for each in (alone, chosen))).statistic
    return None if np.isnan(tau) else float(tau)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
