"""How often forecasts of accuracy hold on a data set that was left out, and how simpler laws compare."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headstart.benchmarks.coverage.laws import GaussianProcess, linear_quantile, own_exponential, own_power_law
from headstart.metrics.arrays import Flags, Floats
from headstart.metrics.forecast.coverage import SHIPPED, Judged, leave_data_sets_out
from headstart.metrics.forecast.curve_forecast import TIMES, CurveForecast, forecast_curve
from headstart.metrics.forecast.forecaster import (
    LEVELS,
    Cases,
    Forecaster,
    data_set_weights,
    design_of,
    known_cases,
)
from headstart.metrics.forecast.known_curves import KnownCurves, shipped_curves
from headstart.metrics.forecast.observations import log_error

KNOWN = (10, 20, 50, 100)
THRESHOLDS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


def by_curves(cases: Cases, curves: KnownCurves, law: Callable[..., Floats]) -> Floats:
    """Return accuracies by a law that is fitted to each curve's own beginning, `[cases]`."""
    forecasts = np.empty(len(cases.ratios))
    for chosen, known, later, accuracies in _groups(cases, curves):
        labels = curves.labels[:known]
        forecasts[chosen] = law(labels, accuracies[:, :known], curves.labels[later])
    return forecasts


def _groups(cases: Cases, curves: KnownCurves) -> list[tuple[Flags, int, int, Floats]]:
    """Return cases of one number of labels, later number and number of orderings, with their mean curves."""
    seen = cases.observed
    keys = np.column_stack([seen.orderings, seen.labels, np.round(seen.labels * cases.ratios)])
    groups = []
    for orderings, labels, later in np.unique(keys, axis=0):
        chosen = (keys == (orderings, labels, later)).all(1)
        accuracies = curves.accuracies[cases.curves[chosen], : int(orderings)].mean(1)
        known, end = (int(np.searchsorted(curves.labels, each)) for each in (labels, later))
        groups.append((chosen, known + 1, end, accuracies))
    return groups


def by_gaussian_process(cases: Cases, curves: KnownCurves) -> Floats:
    """Return accuracies by a Gaussian process on the curves of other data sets, `[cases]`."""
    forecasts = np.empty(len(cases.ratios))
    errors = log_error(np.where(np.isnan(curves.accuracies), 1, curves.accuracies).mean(1))
    errors[np.isnan(curves.accuracies).any(1)] = np.nan
    for data_set in np.unique(cases.data_sets):
        others = curves.data_sets != data_set
        whole = others & ~np.isnan(errors).any(1)
        of = {name: np.nanmean(errors[others & (curves.methods == name)], axis=0) for name in np.unique(curves.methods)}
        means = np.stack([of[name] for name in curves.methods])
        weights = np.full(whole.sum(), 1 / len(of))
        process = GaussianProcess(curves.labels, 1 - np.exp(errors[whole]), weights, means[whole])
        own = np.flatnonzero(cases.data_sets == data_set)
        part = cases.where(cases.data_sets == data_set)
        for chosen, known, later, accuracies in _groups(part, curves):
            rows = part.curves[chosen]
            forecasts[own[chosen]] = process.forecast(known, later, accuracies, means[rows])[0]
    return forecasts


def by_one_exponent(cases: Cases) -> Floats:
    """Return accuracies by one exponent for all curves, which is fitted to other data sets, `[cases]`."""
    change, distance = log_error(cases.accuracies) - cases.observed.level, np.log(cases.ratios)
    found = np.empty(len(distance))
    for data_set in np.unique(cases.data_sets):
        own = cases.data_sets == data_set
        weights = data_set_weights(cases.where(~own))
        exponent = (weights * change[~own] * distance[~own]).sum() / (weights * distance[~own] ** 2).sum()
        found[own] = 1 - np.exp(np.minimum(cases.observed.level[own] + exponent * distance[own], 0))
    return found


def by_quantiles(cases: Cases, level: float = 0.8) -> tuple[Floats, Floats]:
    """Return medians, `[cases]`, and intervals, `[2, cases]`, by quantile regression on other data sets."""
    methods, found = np.unique(cases.methods), np.empty((3, len(cases.ratios)))
    for data_set in np.unique(cases.data_sets):
        own = cases.data_sets == data_set
        others, left_out = cases.where(~own), cases.where(own)
        values = log_error(others.accuracies) - others.observed.level
        design, new = design_of(others, methods), design_of(left_out, methods)
        penalty = np.full(design.shape[1], 0.1)
        for row, quantile in enumerate((0.5, (1 + level) / 2, (1 - level) / 2)):
            change = new @ linear_quantile(design, values, quantile, data_set_weights(others), penalty)
            found[row, own] = 1 - np.exp(np.minimum(left_out.observed.level + change, 0))
    return found[0], found[1:]


def laws(cases: Cases, curves: KnownCurves) -> dict[str, Floats]:
    """Return the accuracies that other laws and models forecast, by their names."""
    error = np.exp(cases.observed.level)
    return {
        "as accurate as now": 1 - error,
        "twice the labels halve the error": 1 - error / cases.ratios,
        "error x n^-0.25": 1 - error * cases.ratios**-0.25,
        "one exponent of other data sets": by_one_exponent(cases),
        "own power law": by_curves(cases, curves, own_power_law),
        "own piecewise power law": by_curves(cases, curves, partial(own_power_law, piecewise=True)),
        "own exponential": by_curves(cases, curves, own_exponential),
        "Gaussian process": by_gaussian_process(cases, curves),
        "quantile regression": by_quantiles(cases)[0],
    }


def judged_cases(judged: Judged) -> Flags:
    """Return which cases are judged: 10, 20, 50 and 100 labels, and about 2, 4 and 8 times as many, `[cases]`."""
    cases = judged.cases
    near = np.abs(cases.ratios[:, None] / np.array(TIMES) - 1) < 0.15
    return np.asarray(np.isin(cases.observed.labels, KNOWN) & near.any(1))


def reached(curves: KnownCurves) -> dict[str, list[list[bool]]]:
    """Return whether both intervals of the labels at which a threshold is reached hold, by method.

    The mean of all orderings reaches a threshold where its line between two evaluations does. Of a curve all
    thresholds count that it has not reached before, where it is known when it does, or that it does not within
    8 times the labels.
    """
    held: dict[str, list[list[bool]]] = {}
    for data_set in np.unique(curves.data_sets):
        forecaster = Forecaster(known_cases(curves.where(curves.data_sets != data_set)))
        for index in np.flatnonzero(curves.data_sets == data_set):
            accuracies, classes = curves.accuracies[index], int(curves.classes[index])
            for known in KNOWN:
                method = str(curves.methods[index])
                found = forecast_curve(curves.labels, accuracies, classes, method, known, forecaster)
                for threshold in THRESHOLDS:
                    truth = _first_reached(curves.labels, accuracies.mean(0), threshold)
                    if truth <= known or np.isnan(truth):
                        continue
                    ends = found.reaches(threshold)
                    held.setdefault(method, []).append([_holds(ends[level], truth, found) for level in LEVELS])
    return held


def _first_reached(labels: NDArray[np.int64], accuracies: Floats, threshold: float) -> float:
    """Return where a line first reaches a threshold: infinite where it never does, NaN where that is unknown."""
    above = accuracies >= threshold
    if not above.any():
        return np.nan if np.isnan(accuracies).any() else np.inf
    column = int(above.argmax())
    if column == 0:
        return float(labels[0])
    return float(np.interp(threshold, accuracies[column - 1 : column + 1], labels[column - 1 : column + 1]))


def _holds(ends: tuple[float | None, float | None], truth: float, found: CurveForecast) -> bool:
    """Return whether an interval holds the truth; behind what is forecast, its ends and the truth are infinite."""
    low, high = (np.inf if end is None else end for end in ends)
    limited = np.inf if truth > found.labels[-1] else truth
    return bool(low <= limited <= high)


def print_shares(judged: Judged, groups: Mapping[str, Flags]) -> None:
    """Print coverage and width of both intervals in groups of cases."""
    print(f"\n{'':34}{'RMSE':>6}" + "".join(f"{f'{level:.0%} held':>10}{'width':>7}" for level in LEVELS))
    for name, chosen in groups.items():
        cells = f"{100 * judged.root_mean_square(judged.forecasts.accuracies, chosen):6.1f}"
        for level in LEVELS:
            cells += f"{judged.coverage(level, chosen):10.1%}{100 * judged.width(level, chosen):7.1f}"
        print(f"{name:34}{cells}")


def main(curves: str | None = None, write: bool = False) -> None:
    """Print errors of all laws, and coverage and width of intervals; every data set is left out once.

    Args:
        curves: File of curves; by default those of the suite.
        write: Write the coverage beside the curves of the suite, where `headstart forecast` reads it.
    """
    known = shipped_curves() if curves is None else KnownCurves.load(Path(curves))
    judged = leave_data_sets_out(known_cases(known))
    cases, chosen = judged.cases, judged_cases(judged)
    print(f"{len(np.unique(cases.data_sets))} data sets, {len(known.methods)} curves, {chosen.sum()} forecasts")

    every = {**laws(cases, known), "this forecast": judged.forecasts.accuracies}
    of_times = [chosen & (abs(cases.ratios / times - 1) < 0.15) for times in TIMES]
    print(f"\n{'root mean square error, points':34}" + "".join(f"{f'{times} times':>9}" for times in TIMES))
    for name, accuracies in every.items():
        print(f"{name:34}" + "".join(f"{100 * judged.root_mean_square(accuracies, own):9.1f}" for own in of_times))

    seen = cases.observed
    print_shares(judged, {"all": chosen, **{f"{t} times": own for t, own in zip(TIMES, of_times, strict=True)}})
    print_shares(judged, {f"{each} labels": chosen & (seen.labels == each) for each in KNOWN})
    print_shares(
        judged, {f"{each:g} orderings": chosen & (seen.orderings == each) for each in np.unique(seen.orderings)}
    )
    for key in ("methods", "data_sets"):
        values = getattr(cases, key)
        print_shares(judged, {each: chosen & (values == each) for each in np.unique(values)})

    drawn = np.char.startswith(known.data_sets, "drawn")
    together = leave_data_sets_out(
        known_cases(replace(known, data_sets=np.where(drawn, "all drawings", known.data_sets)))
    )
    own = together.cases.data_sets == "all drawings"
    print_shares(together, {"all drawings left out together": judged_cases(together) & own})

    held = reached(known)
    print(
        f"\n{'labels to reach a threshold':34}"
        + "".join(f"{f'{level:.0%} held':>10}" for level in LEVELS)
        + f"{'cases':>8}"
    )
    for name, cases_of in {"all": [each for of in held.values() for each in of], **held}.items():
        print(f"{name:34}" + "".join(f"{share:10.1%}" for share in np.mean(cases_of, axis=0)) + f"{len(cases_of):8}")

    if write:
        shares = {str(level): round(judged.coverage(level, chosen), 3) for level in LEVELS}
        SHIPPED.write_text(json.dumps(shares) + "\n")
