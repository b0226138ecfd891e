"""Metrics as options name them: those of the catalogue, and the user's own by import path."""

import difflib
import inspect
import json
import re
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from importlib import import_module
from typing import Any, get_type_hints

import numpy as np
from jsonargparse.typing import register_type
from pydantic import TypeAdapter, ValidationError

from headstart.evaluation.sources.scores import Metrics
from headstart.metrics.transferability.catalogue import (
    ARGUMENTS,
    METRICS,
    TransferabilityMetric,
    title_with_options,
)
from headstart.modules.provenance import own_digests
from headstart.modules.running_code import SUITE, suite_digest
from headstart.output.errors import UserError, require_different

DEFAULT_METRICS = tuple(name for name, metric in METRICS.items() if metric.is_default)
# Of many targets, metrics that take long are left out by default.
SELECTION_METRICS = tuple(name for name in DEFAULT_METRICS if name not in ("n_leep", "knn", "parc", "sfda"))
# Those of the paper's segmentation scenario; on as many samples as there are pixels, some others would take very long.
PIXEL_METRICS: tuple[str | dict[str, Any], ...] = (
    {"gbc": {"covariance": "diagonal"}},
    *("leep", "n_leep", "log_me", "h_score"),
)


class MetricName(str):
    """The name of a metric in tables: a name of the catalogue, or an import path such as `my_metrics.spread`.

    With options it is `{gbc: {variant: released}}`, whose name is `gbc(variant=released)`. Headers of reports have the
    variant in any case.

    Attributes:
        name: The name or path alone.
        options: Options by name.
    """

    name: str
    options: dict[str, Any]


def _with_name(name: str, options: Mapping[str, Any]) -> MetricName:
    """Return the name of a metric with options."""
    metric = MetricName(f"{name}({_describe_options(options)})" if options else name)
    metric.name, metric.options = name, dict(sorted(options.items()))
    return metric


def _read(value: object) -> MetricName:
    """Read a metric, with or without options."""
    if isinstance(value, MetricName):
        return value
    name: object = value
    options: object = {}
    if isinstance(value, Mapping) and len(value) == 1:
        [(name, options)] = value.items()
    if not isinstance(name, str) or not isinstance(options, Mapping):
        raise ValueError(f"{value!r} is no metric; give a name, or {{name: {{option: value}}}}")

    if name not in METRICS and not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)+", name):
        close = difflib.get_close_matches(name, METRICS, n=1)
        closest = f" (closest: {close[0]})" if close else ""
        raise ValueError(
            f"{name!r} is no metric{closest}; there are {', '.join(METRICS)}, and functions by import path, module.name"
        )

    return _with_name(name, options)


def _write(metric: MetricName) -> str | dict[str, dict[str, Any]]:
    return {metric.name: metric.options} if metric.options else metric.name


def _describe_options(options: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in sorted(options.items())
    )


register_type(MetricName, _write, _read)


def find_metrics(names: Sequence[str | Mapping[str, Any]]) -> Metrics:
    """Find metrics by their names, in order.

    Args:
        names: Names of the catalogue, or the import paths of functions of `features` and `labels`. They may also take
            `probabilities` and `seed`. A higher score is better. With options it is a mapping, `{gbc: {pca: 32}}`.

    Raises:
        UserError: There is none, or one comes twice with the same options. Or an import path is not that of such a
            function, or an option is unknown or of another type. Options that are given their default do not count.
    """
    try:
        chosen = [_read(name) for name in names]
    except ValueError as error:
        raise UserError(f"metrics: {error}") from error
    found = [_with_options(METRICS.get(name.name) or _import_metric(name), name) for name in chosen]
    different = [_with_name(name.name, metric.options) for name, metric in zip(chosen, found, strict=True)]
    require_different("metrics", different)
    return dict(zip(different, found, strict=True))


def _with_options(metric: TransferabilityMetric, name: MetricName) -> TransferabilityMetric:
    """Set the options of a metric, after checking them, and add them and its variant to its title."""
    defaults = metric.defaults
    # A user's own annotations may be of any kind.
    hints = get_type_hints(metric.function) if name.name in METRICS else {}
    for option, value in name.options.items():
        if option not in defaults:
            has = f"it has {', '.join(defaults)}" if defaults else "it has no options"
            raise UserError(f"metrics: {name.name}: there is no option {option!r}; {has}")
        try:
            TypeAdapter(hints.get(option, Any)).validate_python(value, strict=True)
        except ValidationError as error:
            reason = " or ".join(dict.fromkeys(each["msg"] for each in error.errors()))
            raise UserError(f"metrics: {name.name}: {option} is {value!r}: {reason}") from error

    # Defaults make no other metric, nor does a variant that has no effect.
    options = {option: value for option, value in name.options.items() if not _is_default(value, defaults[option])}
    chosen = replace(metric, options=options)
    if chosen.variant is None and name.name in METRICS:
        options.pop("variant", None)
    return replace(chosen, title=_title(chosen, name.name))


def _is_default(value: object, default: object) -> bool:
    """Return whether an option has its default value; true and 1 differ."""
    if not isinstance(default, str | float | int | None):
        return False
    return value == default and isinstance(value, bool) == isinstance(default, bool)


def _title(metric: TransferabilityMetric, name: str) -> str:
    """Return the title of a metric with its options and its variant; that of the user's own function is its name."""
    if name not in METRICS:
        return str(_with_name(name, metric.options))
    shown = metric.options or ({} if metric.variant is None else {"variant": metric.variant})
    return title_with_options(metric.title, _describe_options(shown)) if shown else metric.title


def digest_metrics(names: Iterable[str]) -> dict[str, str]:
    """Digest the suite and, where metrics are the user's own functions, which are imported, all own modules."""
    own = [name.rpartition(".") for name in dict.fromkeys(_read(name).name for name in names) if name not in METRICS]
    functions = [getattr(sys.modules[module], name) for module, _, name in own]
    return {SUITE: suite_digest(), **own_digests(functions)}


def _import_metric(metric: MetricName) -> TransferabilityMetric:
    """Make a metric of a function of the user's own."""
    path = metric.name
    module, _, name = path.rpartition(".")
    try:
        function = getattr(import_module(module), name)
        signature = inspect.signature(function)
    except (Exception, SystemExit) as error:
        raise UserError(
            f"metrics: {path} cannot be imported ({_describe(error)}); name a function of a module in this folder"
        ) from error

    named = [each for each in signature.parameters.values() if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    required = [each.name for each in named if each.default is each.empty and each.name not in metric.options]
    data = tuple(each.name for each in named if each.name in ARGUMENTS or each.name in required)
    if not data or not set(data) <= set(ARGUMENTS):
        raise UserError(
            f"metrics: {path} takes {', '.join(data) or 'nothing'}; a metric takes some of {', '.join(ARGUMENTS)}"
        )

    @wraps(function)
    def compute(*values: Any, **options: Any) -> float:
        arguments = {argument: _protected(value) for argument, value in zip(data, values, strict=True)}
        try:
            return float(function(**arguments, **options))
        except Exception as error:
            # The first frame is this one, the second the function's.
            line = traceback.extract_tb(error.__traceback__)[:2][-1].lineno
            raise ValueError(f"line {line}: {_describe(error)}") from error

    return TransferabilityMetric(path, "a function of your own", compute, data)


def _protected(value: Any) -> Any:  # noqa: ANN401 - an array, or the seed
    """Return a read-only view of an array, so that no metric changes the data of the others."""
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


def _describe(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
