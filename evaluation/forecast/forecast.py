"""`headstart forecast`: later accuracies and the samples that the criterion needs, from a stream's first labels."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jsonargparse.typing import PositiveInt

from headstart.evaluation.leaderboard.read_settings import read_settings
from headstart.evaluation.leaderboard.settings import Setting
from headstart.evaluation.trace_options import LeaderboardOptions
from headstart.metrics.arrays import Floats
from headstart.metrics.forecast.curve_forecast import TIMES, forecast_curve, read_coverage
from headstart.metrics.forecast.forecaster import KNOWN, MOST_CLASSES
from headstart.metrics.sample_efficiency.curves import Curves
from headstart.metrics.sample_efficiency.scores import finite
from headstart.modules.methods.catalogue import METHODS
from headstart.output.errors import UserError
from headstart.output.markup import escape_markdown
from headstart.output.printable import print_lines
from headstart.output.results_folder import ResultsFolder
from headstart.output.tables import Table, markdown_tables, print_tables

SCHEMA = 1
NAME = "forecast"
FILES = [f"{NAME}.{kind}" for kind in ("json", "md")]
# The tables of more settings are only written into the files.
MOST_PRINTED = 4
# Coverage of the intervals that tables show.
SHOWN = "0.8"
CAPTION = (
    "Accuracy in %, expected and [80 % interval]; samples: when the criterion will be met, in 80 % of such forecasts."
)


def forecast(
    runs: str | list[str],
    labels: PositiveInt = 50,
    output: str = "runs/forecast",
    overwrite: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Forecast from the first labels of finished runs how accurate each method will be with more of them.

    Reads no evaluation after these labels. Writes forecast.json and forecast.md. They have the accuracy at 2, 4 and 8
    times the labels, and the samples at which the criterion will be met. Intervals are of 80 % and 95 %, in the tables
    of 80 %. docs/forecast.md says how often they hold.

    Args:
        runs: Folders of runs or ledgers, folders above them, or patterns such as 'runs/fine_tuning-*'.
        labels: Number of labels that are known.
        output: Folder for the results.
        overwrite: Replace a forecast of other folders or options that lies in the folder.
        **options: Options of `LeaderboardOptions`.

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
    described = []
    for setting in settings:
        try:
            described.append(forecast_setting(setting, int(labels)))
        except UserError as error:
            left_out.append({"setting": setting.name, "reason": str(error)})
    if not described:
        raise UserError(left_out[-1]["reason"])

    document = {"schema": SCHEMA, **made_from, "coverage": read_coverage(), "left_out": left_out, "settings": described}
    results.write(document, texts={f"{NAME}.md": _report(document)})

    is_printed = len(described) <= MOST_PRINTED
    print_tables([*map(_table, described)] if is_printed else [])
    print_lines([*([CAPTION] if is_printed else []), *_remarks(document)])
    results.print_written()
    return document


def forecast_setting(setting: Setting, labels: int) -> dict[str, Any]:
    """Forecast all methods of a setting, best first by the accuracy that is known.

    Args:
        setting: The setting.
        labels: Number of labels that are known.

    Returns:
        The setting as it stands in `forecast.json`.

    Raises:
        UserError: No evaluation lies within the labels, or one was left out, or the classes are unknown.
    """
    curves, classes = _first(setting.curves, labels), setting.protocol.get("classes")
    if not classes:
        raise UserError("labels: a ledger alone does not say how many classes there are; give the folder of a run, too")

    # None where most orderings have not met the criterion yet.
    met_at = [finite(samples) for samples in np.median(curves.samples_to_criterion()[0], axis=1)]
    methods = [
        _describe(name, met, traces, curves, len(classes), _shipped_name(name, setting.method_keys[name]))
        for name, met, traces in zip(curves.methods, met_at, curves.accuracy, strict=True)
    ]

    last, warnings = int(curves.samples_seen[-1]), []
    if not KNOWN[0] <= last <= KNOWN[-1] or len(classes) > MOST_CLASSES:
        warnings.append(
            f"Forecasts were measured after {KNOWN[0]} to {KNOWN[-1]} labels of up to {MOST_CLASSES} classes, and not "
            f"after {last} of {len(classes)}: these are made as at the nearest of those."
        )
    return {
        "name": setting.name,
        "folders": setting.folders,
        "classes": len(classes),
        "orderings": len(curves.orderings),
        **curves.criterion,
        "warnings": [*setting.warnings, *warnings],
        "methods": sorted(methods, key=lambda method: -method["accuracy"]),
    }


def _first(curves: Curves, labels: int) -> Curves:
    """Return the evaluations within the first labels, so that nothing that follows can look ahead."""
    first, last = int(curves.samples_seen[0]), int(curves.samples_seen[-1])
    if labels < first:
        raise UserError(f"labels: {labels} given, but the first evaluation is after {first} samples; give more")
    if labels >= last + first:
        mend = "give fewer, or run headstart train with --criterion.until=limit"
        raise UserError(f"labels: {labels} given, but traces end at {last} samples; {mend}")
    within = curves.samples_seen <= labels
    beginning = replace(curves, samples_seen=curves.samples_seen[within], correct=curves.correct[..., within])
    if np.isnan(beginning.accuracy).any():
        mend = "run headstart train with --criterion.until=limit and --criterion.evaluation=every"
        raise UserError(f"labels: {labels} given, but evaluations before were left out; {mend}")
    return beginning


def _shipped_name(name: str, method_key: Mapping[str, Any]) -> str:
    """Return the name under which the suite has curves of a method: its own, else that of its class."""
    kind = str(method_key.get("class") or method_key.get("class_path")).rpartition(".")[2]
    if kind not in METHODS:
        return f"{name}, unknown"
    if kind == "GradientDescent":
        return "sgd" if "SGD" in str(method_key) else "baseline"
    return METHODS[kind].name


def _describe(
    name: str, met_at: float | None, traces: Floats, curves: Curves, classes: int, shipped_name: str
) -> dict[str, Any]:
    """Return the forecast of a method from its traces `[orderings, evaluations]`."""
    curve = forecast_curve(curves.samples_seen, traces, classes, shipped_name)
    rows = []
    for times in TIMES:
        accuracy, ends = curve.at(times)
        rows.append({"times": times, "labels": times * curve.known, "accuracy": accuracy, "intervals": _as_json(ends)})
    samples = curve.meets(curves.threshold, curves.consecutive, int(curves.samples_seen[0]))
    return {
        "name": name,
        "labels": curve.known,
        "accuracy": curve.accuracy,
        "is_known_method": curve.is_known_method,
        "later": rows,
        "met_at": met_at,
        "samples_to_criterion": _as_json(samples) if met_at is None else None,
    }


def _as_json(intervals: Mapping[float, Sequence[Any]]) -> dict[str, list[Any]]:
    return {str(level): [*ends] for level, ends in intervals.items()}


def _report(document: Mapping[str, Any]) -> str:
    """Return the report in Markdown."""
    remarks = "\n".join(f"- {escape_markdown(remark)}" for remark in _remarks(document))
    tables = markdown_tables(map(_table, document["settings"]))
    return "\n\n".join(["# Forecast", escape_markdown(CAPTION), remarks, tables])


def _remarks(document: Mapping[str, Any]) -> list[str]:
    remarks = [f"left out: {entry['setting']} ({entry['reason']})" for entry in document["left_out"]]
    unknown = {
        method["name"] for part in document["settings"] for method in part["methods"] if not method["is_known_method"]
    }
    if unknown:
        names = ", ".join(sorted(unknown))
        remarks.append(f"The suite has no curves of {names}: the intervals are the widest of all methods.")
    shares = document["coverage"]
    return [
        *remarks,
        *[f"WARNING: {part['name']}: {warning}" for part in document["settings"] for warning in part["warnings"]],
        *[f"On data sets left out, {shares[level]:.0%} of {float(level):.0%} intervals held." for level in shares],
    ]


def _table(setting: Mapping[str, Any]) -> Table:
    """Return the table of a setting, with a row for each method."""
    now = setting["methods"][0]["labels"]
    later = [str(row["labels"]) for row in setting["methods"][0]["later"]]
    rows = [["method", f"at {now}", *(f"at {labels}" for labels in later), "samples"]]
    for method in setting["methods"]:
        percent = [[100 * value for value in (row["accuracy"], *row["intervals"][SHOWN])] for row in method["later"]]
        cells = [f"{value:.0f} [{low:.0f}, {high:.0f}]" for value, low, high in percent]
        rows.append([method["name"], f"{100 * method['accuracy']:.0f}", *cells, _samples(method)])

    measure = setting["measure"].replace("_", " ")
    criterion = f"{setting['threshold']:.0%} {measure} at {setting['consecutive']} consecutive evaluations"
    return Table(setting["name"], rows, about=criterion)


def _samples(method: Mapping[str, Any]) -> str:
    if method["met_at"] is not None:
        return f"met at {method['met_at']:g}"
    low, high = method["samples_to_criterion"][SHOWN]
    beyond = f"> {method['later'][-1]['labels']}"
    return beyond if low is None else f"{low} to {beyond if high is None else high}"
