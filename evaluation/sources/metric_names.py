"""Find the metrics that options name: metrics of the catalogue, and functions of the user by import path."""

import difflib
import inspect
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import wraps
from importlib import import_module
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from headstart.evaluation.sources.scores import Metrics
from headstart.metrics.transferability.catalogue import ARGUMENTS, METRICS, TransferabilityMetric
from headstart.modules.provenance import user_digests
from headstart.modules.running_code import SUITE, suite_digest
from headstart.output.errors import UserError, require_different

# A name of the catalogue, or an import path such as `my_metrics.spread`; with options `{gbc: {variant: released}}`.
MetricName = str | dict[str, dict[str, Any]]

DEFAULT_METRICS = tuple(name for name, metric in METRICS.items() if metric.is_default)
# The default for a selection among many targets, without the slow metrics.
SELECTION_METRICS = tuple(name for name in DEFAULT_METRICS if name not in ("n_leep", "knn", "parc", "sfda"))
# The default for segmentation, as in the paper's scenario. Pixels are so many samples that other metrics are too slow.
PIXEL_METRICS: tuple[MetricName, ...] = (
    {"gbc": {"covariance": "diagonal"}},
    *("leep", "n_leep", "log_me", "h_score"),
)


def find_metrics(names: Sequence[MetricName]) -> Metrics:
    """Find metrics by their names, in order.

    Args:
        names: Names of the catalogue, or import paths of functions of `features` and `labels`. The functions may also
            take `probabilities` and `seed`. A higher score is better. A mapping gives a metric options:
            `{gbc: {pca: 32}}`.

    Returns:
        The metrics by their names in tables, such as `gbc(pca=32)`. Names do not show options that have their default.

    Raises:
        UserError: There is no such metric, or a metric is given twice with the same options. Or an import path does
            not lead to such a function, or an option is unknown or has another type.
    """
    metrics = [_find(*_name_and_options(name)) for name in names]
    require_different("metrics", [name for name, _ in metrics])
    return dict(metrics)


def _name_and_options(name: MetricName) -> tuple[str, Mapping[str, Any]]:
    options: object = {}
    path: object = name
    if isinstance(name, Mapping) and len(name) == 1:
        [(path, options)] = name.items()
    if not isinstance(path, str) or not isinstance(options, Mapping):
        raise UserError(f"metrics: {name!r} is no metric; give a name, or {{name: {{option: value}}}}")

    if path not in METRICS and not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)+", path):
        close = difflib.get_close_matches(path, METRICS, n=1)
        closest = f" (closest: {close[0]})" if close else ""
        raise UserError(
            f"metrics: {path!r} is no metric{closest}; there are {', '.join(METRICS)}, and functions by import path, "
            "module.name"
        )
    return path, options


def _find(name: str, options: Mapping[str, Any]) -> tuple[str, TransferabilityMetric]:
    """Check the options of a metric, and return its name in tables and the metric with the options."""
    metric = METRICS.get(name) or _import_metric(name, options)
    defaults = metric.defaults
    # Options of a user's function are not checked: its annotations may be anything.
    hints = get_type_hints(metric.function) if name in METRICS else {}
    for option, value in options.items():
        if option not in defaults:
            has = f"it has {', '.join(defaults)}" if defaults else "it has no options"
            raise UserError(f"metrics: {name}: there is no option {option!r}; {has}")
        try:
            TypeAdapter(hints.get(option, Any)).validate_python(value, strict=True)
        except ValidationError as error:
            reason = " or ".join(dict.fromkeys(detail["msg"] for detail in error.errors()))
            raise UserError(f"metrics: {name}: {option} is {value!r}: {reason}") from error

    changed = {option: value for option, value in sorted(options.items()) if not _is_default(value, defaults[option])}
    if not changed:
        return name, metric
    listed = ", ".join(
        f"{option}={value if isinstance(value, str) else json.dumps(value)}" for option, value in changed.items()
    )
    return f"{name}({listed})", replace(metric, options=changed, title=f"{metric.title} ({listed})")


def _is_default(value: object, default: object) -> bool:
    # Comparing other values, such as arrays, may not give a single bool.
    return isinstance(default, str | float | int | None) and value == default


def digest_metrics(names: Iterable[str]) -> dict[str, str]:
    """Digest the code of the suite, and all modules of the user if any metric is a function of the user.

    Such functions must be imported already.

    Args:
        names: Names of the metrics in tables.
    """
    # Without options, `gbc(pca=32)` is `gbc`.
    plain = dict.fromkeys(name.partition("(")[0] for name in names)
    paths = [name.rpartition(".") for name in plain if name not in METRICS]
    functions = [getattr(sys.modules[module], function) for module, _, function in paths]
    return {SUITE: suite_digest(), **user_digests(functions)}


def _import_metric(path: str, options: Mapping[str, Any]) -> TransferabilityMetric:
    """Make a metric from a function of the user."""
    module, _, name = path.rpartition(".")
    try:
        function = getattr(import_module(module), name)
        signature = inspect.signature(function)
    except (Exception, SystemExit) as error:
        raise UserError(
            f"metrics: {path} cannot be imported ({_describe(error)}); name a function of a module in this folder"
        ) from error

    named = [each for each in signature.parameters.values() if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    required = [each.name for each in named if each.default is each.empty and each.name not in options]
    inputs = tuple(each.name for each in named if each.name in ARGUMENTS or each.name in required)
    if not inputs or not set(inputs) <= set(ARGUMENTS):
        raise UserError(
            f"metrics: {path} takes {', '.join(inputs) or 'nothing'}; a metric takes some of {', '.join(ARGUMENTS)}"
        )

    @wraps(function)
    def compute(*values: Any, **options: Any) -> float:
        # Copies, so that a function that works in place cannot change the inputs of other metrics.
        arguments = {name: copy(value) for name, value in zip(inputs, values, strict=True)}
        try:
            return float(function(**arguments, **options))
        except Exception as error:
            raise ValueError(_describe(error)) from error

    return TransferabilityMetric(path, "a function of your own", compute, inputs)


def _describe(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
