"""How often forecasts hold on a data set left out, and how simpler laws compare: the tables of docs/forecast.md."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headstart.benchmarks.coverage.forecast_curves import ORDERINGS, STREAK, SUITE
from headstart.benchmarks.coverage.laws import laws
from headstart.metrics.arrays import Flags, Floats
from headstart.metrics.forecast.coverage import SHIPPED, Judged, leave_data_sets_out
from headstart.metrics.forecast.curve_forecast import TIMES, CurveForecast, forecast_curve
from headstart.metrics.forecast.forecaster import KNOWN, LEVELS, Forecaster, data_set_weights, known_cases
from headstart.metrics.forecast.known_curves import KnownCurves, shipped_curves

# The threshold of each data set that is judged beside all thresholds.
CRITERIA = {"cats and dogs": 0.75, "ants and bees": 0.8, "flowers": 0.45, "drawn pets": 0.65}
# So much less often than promised may a group hold.
TOLERANCE = 0.03


def judged_cases(judged: Judged) -> Flags:
    """Return which cases are judged: 10, 20, 50 and 100 labels, and about 2, 4 and 8 times as many, `[cases]`."""
    near = np.abs(judged.cases.ratios[:, None] / np.array(TIMES) - 1) < 0.15
    return np.asarray(near.any(1))


@dataclass(frozen=True)
class Meetings:
    """Criteria that were not met within the labels known, and between which samples forecasts expect that.

    Attributes:
        curves: Index of the known curve, `[meetings]`.
        known: Number of labels known, `[meetings]`.
        thresholds: Threshold of the criterion, `[meetings]`.
        samples: Median of the samples to criterion, infinite where that is beyond 8 times the labels, `[meetings]`.
        intervals: Lower and upper ends by the coverage promised, infinite likewise, `[2, meetings]`.
    """

    curves: NDArray[np.int64]
    known: NDArray[np.int64]
    thresholds: Floats
    samples: Floats
    intervals: Mapping[float, Floats]


def find_meetings(curves: KnownCurves, orderings: int) -> Meetings:
    """Forecast when all curves meet each criterion, by the curves of other data sets alone.

    Criteria that are met within the known labels are left out. So are those of curves that end before it is known
    whether they are met within 8 times the labels.

    Args:
        curves: The curves.
        orderings: Number of orderings that are seen.
    """
    rows: list[tuple[float, ...]] = []
    ends = curves.labels[(~np.isnan(curves.accuracies[:, 0])).sum(-1) - 1]
    for data_set in np.unique(curves.data_sets):
        forecaster = Forecaster(known_cases(curves.where(curves.data_sets != data_set)))
        for index, known in product(np.flatnonzero(curves.data_sets == data_set), KNOWN):
            method, classes = str(curves.methods[index]), int(curves.classes[index])
            seen = curves.accuracies[index, :orderings]
            found = forecast_curve(curves.labels, seen, classes, method, known, forecaster)
            medians = np.median(curves.samples[index, :orderings], axis=0)
            for threshold, samples in zip(curves.thresholds, medians, strict=True):
                if samples > known and (np.isfinite(samples) or ends[index] >= found.labels[-1]):
                    rows.append((int(index), known, threshold, *_limited(found, threshold, samples)))

    columns = np.array(rows).T
    intervals = {level: columns[4 + 2 * row : 6 + 2 * row] for row, level in enumerate(LEVELS)}
    return Meetings(columns[0].astype(int), columns[1].astype(int), columns[2], columns[3], intervals)


def _limited(found: CurveForecast, threshold: float, samples: float) -> list[float]:
    """Return samples to criterion and the ends of both intervals, infinite beyond what is forecast."""
    sides = found.meets(threshold, STREAK, 1)
    numbers = [samples, *(np.inf if end is None else end for level in LEVELS for end in sides[level])]
    return [each if each <= found.labels[-1] else np.inf for each in numbers]


def of_each(values: NDArray[np.generic], chosen: Flags) -> dict[str, Flags]:
    """Return which of the chosen cases have each value, by the value."""
    return {str(each): chosen & (values == each) for each in np.unique(values[chosen])}


def percent(share: float, digits: int = 1) -> str:
    """Return a share in percent."""
    return f"{100 * share:.{digits}f} %"


def print_row(*cells: str) -> None:
    """Print a row of a table in Markdown."""
    print(f"| {' | '.join(cells)} |")


def print_header(title: str, *columns: str) -> None:
    """Print the first two lines of a table in Markdown."""
    print()
    print_row(title, *columns)
    print_row("---", *["---:"] * len(columns))


def print_shares(title: str, judged: Judged, groups: Mapping[str, Flags]) -> None:
    """Print errors, of the naive rule as well, and coverage and width of both intervals in groups of cases."""
    columns = [each for level in LEVELS for each in (f"{percent(level, 0)} held", "width")]
    print_header(title, "RMSE", "halving", *columns)
    halving = 1 - np.exp(judged.cases.observed.level) / judged.cases.ratios
    for name, chosen in groups.items():
        errors = [judged.root_mean_square(each, chosen) for each in (judged.forecasts.accuracies, halving)]
        cells = [f"{100 * each:.1f}" for each in errors]
        for level in LEVELS:
            cells += [percent(judged.coverage(level, chosen)), f"{100 * judged.width(level, chosen):.1f}"]
        print_row(name, *cells)


def print_grid(
    title: str, judged: Judged, level: float, rows: Mapping[str, Flags], columns: Mapping[str, Flags]
) -> None:
    """Print coverage and width of an interval for all pairs of groups."""
    print_header(f"{title}, {percent(level, 0)}", *columns)
    for name, chosen in rows.items():
        shares = [(judged.coverage(level, chosen & own), judged.width(level, chosen & own)) for own in columns.values()]
        print_row(name, *(f"{percent(share, 0)} ({100 * width:.0f})" for share, width in shares))


def print_meetings(title: str, meetings: Meetings, data_sets: NDArray[np.str_], groups: Mapping[str, Flags]) -> None:
    """Print how often intervals hold the samples to criterion, how often they are open, and how wide the others are."""
    columns = ("held", "held where met", "open", "upper / lower")
    print_header(title, "cases", *(f"{percent(level, 0)} {each}" for level in LEVELS for each in columns))
    for name, chosen in groups.items():
        cells = [str(chosen.sum())]
        for level in LEVELS:
            low, high = meetings.intervals[level]
            held, is_open = (low <= meetings.samples) & (meetings.samples <= high), np.isinf(high)
            for values, own in ((held, chosen), (held, chosen & np.isfinite(meetings.samples)), (is_open, chosen)):
                cells.append(percent(float(np.average(values[own], weights=data_set_weights(data_sets[own])))))
            closed = chosen & ~is_open
            cells.append(f"{np.median(high[closed] / low[closed]):.1f}")
        print_row(name, *cells)


def main(curves: str | None = None, write: bool = False) -> None:
    """Print errors of all laws, and coverage and width of intervals; every data set is left out once.

    Args:
        curves: File of curves; by default those of the suite.
        write: Write the coverage beside the curves of the suite, where `headstart forecast` reads it.
    """
    known = shipped_curves() if curves is None else KnownCurves.load(Path(curves))
    judged = leave_data_sets_out(known_cases(known))
    chosen = judged_cases(judged)
    if write:
        shares = {str(level): round(judged.coverage(level, chosen), 3) for level in LEVELS}
        SHIPPED.write_text(json.dumps(shares) + "\n")

    print(f"{len(np.unique(known.data_sets))} data sets, {len(known.methods)} curves, {chosen.sum()} forecasts")
    print_laws(judged, known, chosen)
    print_coverage(judged, known, chosen)
    print_drawings(known)
    print_samples(known)


def print_laws(judged: Judged, known: KnownCurves, chosen: Flags) -> None:
    """Print the errors of this forecast and other laws."""
    every = {**laws(judged.cases, known), "**this forecast**": judged.forecasts.accuracies}
    of_times = [chosen & (abs(judged.cases.ratios / times - 1) < 0.15) for times in TIMES]
    print_header("law", *(f"{times} times" for times in TIMES))
    for name, accuracies in every.items():
        print_row(name, *(f"{100 * judged.root_mean_square(accuracies, own):.1f}" for own in of_times))


def print_coverage(judged: Judged, known: KnownCurves, chosen: Flags) -> None:
    """Print coverage and width in all groups that a user can name."""
    cases = judged.cases
    of = {name: getattr(known, name)[cases.curves] for name in ("methods", "sources", "data_sets", "targets")}
    settings = np.array([f"{target}, {source}" for target, source in zip(of["targets"], of["sources"], strict=True)])
    of_known = {f"{each} labels": chosen & (cases.observed.labels == each) for each in KNOWN}
    of_times = {f"{each} times": chosen & (abs(cases.ratios / each - 1) < 0.15) for each in TIMES}
    methods, sources = of_each(of["methods"], chosen), of_each(of["sources"], chosen)
    groups = {
        "forecasts": {"all": chosen, **of_times, **of_known},
        "orderings": of_each(cases.observed.orderings.astype(int), chosen),
        "method": methods,
        "source": sources,
        "data set left out": of_each(of["data_sets"], chosen),
        "setting": of_each(settings, chosen & np.isin(of["sources"], [*SUITE])),
    }
    for title, rows in groups.items():
        print_shares(title, judged, rows)

    crossed: dict[str, Flags] = {}
    for title, rows in (("method", methods), ("source", sources)):
        for level in LEVELS:
            print_grid(title, judged, level, rows, of_known)
        crossed |= {f"{row}, {column}": rows[row] & of_known[column] for row in rows for column in of_known}
    print_short(judged, {name: own for rows in (*groups.values(), crossed) for name, own in rows.items()})


def print_short(judged: Judged, groups: Mapping[str, Flags]) -> None:
    """Print the groups that hold more than 3 points less often than promised, and how wide they would have to be."""
    print_header("group that holds too rarely", "promised", "held", "width", "as wide as would hold")
    for level in LEVELS:
        for name, own in groups.items():
            if (share := judged.coverage(level, own)) < level - TOLERANCE:
                print_row(
                    name,
                    percent(level, 0),
                    percent(share),
                    f"{100 * judged.width(level, own):.1f}",
                    f"{judged.factor(level, own):.2f} times",
                )


def print_drawings(known: KnownCurves) -> None:
    """Print the coverage where all drawings count as one data set."""
    drawn = np.char.startswith(known.data_sets, "drawn")
    together = leave_data_sets_out(known_cases(replace(known, data_sets=np.where(drawn, "drawings", known.data_sets))))
    own = judged_cases(together) & (together.cases.data_sets == "drawings")
    print_shares("left out together", together, {"all drawings": own})


def print_samples(known: KnownCurves) -> None:
    """Print coverage and width of the samples to criterion."""
    meetings = find_meetings(known, ORDERINGS)
    of = {name: getattr(known, name)[meetings.curves] for name in ("methods", "sources", "data_sets")}
    every = np.full(len(meetings.curves), True)
    of_known = {f"{each} labels": meetings.known == each for each in KNOWN}
    own = np.isin(of["sources"], [*SUITE]) & (meetings.thresholds == [CRITERIA.get(each) for each in of["data_sets"]])
    first = {"all": every, "one threshold for each data set": own, **of_known}
    for title, groups in (("criteria", first), *((name, of_each(values, every)) for name, values in of.items())):
        print_meetings(title, meetings, of["data_sets"], groups)

    single = find_meetings(known, 1)
    print_meetings("one ordering", single, known.data_sets[single.curves], {"all": single.known > 0})
