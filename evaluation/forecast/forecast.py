"""`headstart forecast`: later accuracies and the samples that the criterion needs, from a stream's first labels."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from jsonargparse.typing import PositiveInt

from headstart.evaluation.forecast.files import FILES, print_forecast, write_forecast
from headstart.evaluation.leaderboard.read_settings import read_settings
from headstart.evaluation.leaderboard.settings import Setting
from headstart.evaluation.trace_options import LeaderboardOptions
from headstart.metrics.forecast.coverage import read_coverage
from headstart.metrics.forecast.curve_forecast import TIMES, CurveForecast, forecast_curve
from headstart.metrics.forecast.forecaster import KNOWN, MOST_CLASSES
from headstart.metrics.sample_efficiency.curves import Curves
from headstart.metrics.sample_efficiency.scores import finite
from headstart.modules.methods.catalogue import METHODS
from headstart.output.errors import UserError
from headstart.output.results_folder import FIGURE_FORMATS, FigureFormat, ResultsFolder

SCHEMA = 1


class MethodForecast(NamedTuple):
    """The forecast of a method in a setting.

    Attributes:
        name: Its name.
        met_at: Median of the samples to criterion, where it was met within the labels known.
        curve: The forecast of its accuracy.
    """

    name: str
    met_at: float | None
    curve: CurveForecast


def forecast(
    runs: str | list[str],
    labels: PositiveInt = 50,
    output: str = "runs/forecast",
    overwrite: bool = False,
    figure_formats: list[FigureFormat] = FIGURE_FORMATS,
    **options: Any,
) -> dict[str, Any]:
    """Forecast from the first labels of finished runs how accurate each method will be with more of them.

    Reads no evaluation after these labels. Writes forecast.json, forecast.csv, forecast.md and forecast.png. They have
    the accuracy at 2, 4 and 8 times the labels, and the samples at which the criterion will be met. Intervals are of 80
    % and 95 %. docs/forecast.md says how often they hold.

    Args:
        runs: Folders of runs or ledgers, folders above them, or patterns such as 'runs/fine_tuning-*'.
        labels: Number of labels that are known.
        output: Folder for the results.
        overwrite: Replace a forecast of other folders or options that lies in the folder.
        figure_formats: File formats of the figure, such as '[png, pdf, svg]'.
        **options: Options of `TraceOptions`.

    Returns:
        The content of forecast.json.

    Raises:
        UserError: There are no runs, none has an evaluation within the labels, or the folder holds another forecast.
    """
    results = ResultsFolder(output, FILES, overwrite=overwrite)
    folders = [runs] if isinstance(runs, str) else list(runs)
    selection = LeaderboardOptions(**options)
    made_from = {"folders": folders, "asked": selection.describe(), "labels": int(labels)}

    settings, left_out = read_settings(folders, selection)
    results.check_configuration(made_from)
    found = {}
    for setting in settings:
        try:
            found[setting.name] = forecast_setting(setting, int(labels))
        except UserError as error:
            left_out.append({"setting": setting.name, "reason": str(error)})
    if not found:
        raise UserError(left_out[-1]["reason"])

    described = [_describe(setting, found[setting.name]) for setting in settings if setting.name in found]
    document = {"schema": SCHEMA, **made_from, "coverage": read_coverage(), "left_out": left_out, "settings": described}
    write_forecast(results, document, found, figure_formats)
    print_forecast(document)
    results.print_written()
    return document


def forecast_setting(setting: Setting, labels: int) -> list[MethodForecast]:
    """Forecast all methods of a setting, best first by the accuracy that is known.

    Raises:
        UserError: No evaluation lies within the labels, or one was left out, or the classes are unknown.
    """
    curves, classes = setting.curves, setting.protocol.get("classes")
    first, last = int(curves.samples_seen[0]), int(curves.samples_seen[-1])
    if labels < first:
        raise UserError(f"labels: {labels} given, but the first evaluation is after {first} samples; give more")
    if labels >= last + first:
        mend = "give fewer, or run headstart train with --criterion.until=limit"
        raise UserError(f"labels: {labels} given, but traces end at {last} samples; {mend}")
    if not classes:
        raise UserError("labels: a ledger alone does not say how many classes there are; give the folder of a run, too")
    # What comes later is cut off here, so that nothing below can look ahead.
    within = curves.samples_seen <= labels
    known = replace(curves, samples_seen=curves.samples_seen[within], correct=curves.correct[..., within])
    accuracies = known.accuracy
    if np.isnan(accuracies).any():
        why, mend = "some traces end before", "until=limit"
        if known.is_lazy:
            why, mend = "lazy evaluation left evaluations out", "evaluation=every"
        raise UserError(f"labels: {labels} given, but {why}; run headstart train with --criterion.{mend}")

    forecasts = []
    for name, own, met_at in zip(known.methods, accuracies, _met_at(known), strict=True):
        shipped = _shipped_name(name, setting.method_keys[name])
        forecasts.append(MethodForecast(name, met_at, forecast_curve(known.samples_seen, own, len(classes), shipped)))
    return sorted(forecasts, key=lambda each: -each.curve.accuracy)


def _met_at(known: Curves) -> list[float | None]:
    """Return each method's median samples to criterion, None where most orderings have not met it yet."""
    return [finite(each) for each in np.median(known.samples_to_criterion()[0], axis=1)]


def _shipped_name(name: str, method_key: Mapping[str, Any]) -> str:
    """Return the name under which the suite has curves of a method: its own, else that of its class."""
    kind = str(method_key.get("class") or method_key.get("class_path")).rpartition(".")[2]
    if kind not in METHODS:
        return f"{name}, unknown"
    if kind == "GradientDescent":
        return "sgd" if "SGD" in str(method_key) else "baseline"
    return METHODS[kind].name


def _describe(setting: Setting, forecasts: list[MethodForecast]) -> dict[str, Any]:
    """Return a setting as it stands in `forecast.json`."""
    curves, classes = setting.curves, len(setting.protocol["classes"])
    return {
        "name": setting.name,
        "folders": setting.folders,
        "classes": classes,
        "orderings": len(curves.orderings),
        **curves.criterion,
        "warnings": [*setting.warnings, *_beyond_known(forecasts[0].curve.known, classes)],
        "methods": [_describe_method(each, curves) for each in forecasts],
    }


def _beyond_known(labels: int, classes: int) -> list[str]:
    """Return the warning that intervals were never measured with so few or many labels, or so many classes, if so."""
    if KNOWN[0] <= labels <= KNOWN[-1] and classes <= MOST_CLASSES:
        return []
    return [
        f"Forecasts were measured after {KNOWN[0]} to {KNOWN[-1]} labels of up to {MOST_CLASSES} classes, and not "
        f"after {labels} of {classes}: these are made as at the nearest of those."
    ]


def _describe_method(method: MethodForecast, curves: Curves) -> dict[str, Any]:
    rows, samples = [], None
    for times in TIMES:
        accuracy, ends = method.curve.at(times)
        intervals = {str(level): [*each] for level, each in ends.items()}
        rows.append(
            {"times": times, "labels": times * method.curve.known, "accuracy": accuracy, "intervals": intervals}
        )
    if method.met_at is None:
        ends_of = method.curve.meets(curves.threshold, curves.consecutive, int(curves.samples_seen[0]))
        samples = {str(level): [*ends] for level, ends in ends_of.items()}
    return {
        "name": method.name,
        "labels": method.curve.known,
        "accuracy": method.curve.accuracy,
        "is_known_method": method.curve.is_known_method,
        "later": rows,
        "met_at": method.met_at,
        "samples_to_criterion": samples,
    }
