"""Metrics as options name them: those of the catalogue, and the user's own by import path."""

from __future__ import annotations

import difflib
import inspect
import json
import re
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any, get_type_hints

import numpy as np
from jsonargparse.typing import register_type
from pydantic import TypeAdapter, ValidationError

from headstart.evaluation.sources.scores import Metrics
from headstart.metrics.transferability.catalogue import METRICS, TransferabilityMetric
from headstart.metrics.transferability.inputs import Inputs
from headstart.modules.provenance import source_digests
from headstart.output.errors import UserError, require_different

DEFAULT_METRICS = tuple(name for name, metric in METRICS.items() if metric.is_default)
# What takes as long on every target of a pool as if it were the only one is left out by default.
SELECTION_METRICS = tuple(name for name in DEFAULT_METRICS if not METRICS[name].is_single)
# Those of the paper's segmentation scenario; of as many samples as there are pixels, some others would take very long.
PIXEL_METRICS: tuple[str | dict[str, Any], ...] = (
    {"gbc": {"covariance": "diagonal"}},
    *("leep", "n_leep", "log_me", "h_score"),
)
# What a function of the user's own can ask for, by the names of its arguments.
ARGUMENTS = ("features", "labels", "probabilities", "seed")


class MetricName(str):
    """A metric, as tables call it: a name of the catalogue, or an import path such as `my_metrics.spread`.

    With options it is `{gbc: {variant: released}}`, which tables call `gbc(variant=released)`.

    Attributes:
        name: The name or path alone.
        options: Options by name.
    """

    name: str
    options: dict[str, Any]


def _read(given: object) -> MetricName:
    """Read a metric, with or without options."""
    if isinstance(given, MetricName):
        return given
    name: object = given
    options: object = {}
    if isinstance(given, Mapping) and len(given) == 1:
        [(name, options)] = given.items()
    if not isinstance(name, str) or not isinstance(options, Mapping):
        raise ValueError(f"{given!r} is no metric; give a name, or {{name: {{option: value}}}}")
    if name not in METRICS and not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)+", name):
        close = difflib.get_close_matches(name, METRICS, n=1)
        closest = f" (closest: {close[0]})" if close else ""
        raise ValueError(
            f"{name!r} is no metric{closest}; there are {', '.join(METRICS)}, and functions by import path, module.name"
        )
    found = MetricName(name + (f"({_describe_options(options)})" if options else ""))
    found.name, found.options = name, dict(sorted(options.items()))
    return found


def _write(metric: MetricName) -> str | dict[str, dict[str, Any]]:
    return {metric.name: metric.options} if metric.options else metric.name


def _describe_options(options: Mapping[str, Any]) -> str:
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in options.items()}
    return ", ".join(f"{name}={texts[name]}" for name in sorted(texts))


register_type(MetricName, _write, _read)


def find_metrics(names: Sequence[str | Mapping[str, Any]]) -> Metrics:
    """Find metrics by their names, in order.

    Args:
        names: Of the catalogue, or the import paths of functions of `features`, `labels` and, where they name them,
            `probabilities` and `seed`; a higher score is better. With options it is a mapping, `{gbc: {pca: 32}}`.

    Raises:
        UserError: There is none, one comes twice with the same options, what an import path names is no such function,
            or an option is unknown or of another type.
    """
    try:
        chosen = [_read(name) for name in names]
    except ValueError as error:
        raise UserError(f"metrics: {error}") from error
    require_different("metrics", chosen)
    return {name: _with_options(METRICS.get(name.name) or _import_metric(name), name) for name in chosen}


def _with_options(metric: TransferabilityMetric, name: MetricName) -> TransferabilityMetric:
    """Set the options of a metric, once they are known to be such."""
    if not name.options:
        return metric
    function = metric.function
    named = inspect.signature(function).parameters if function else ()
    allowed = [each for each in named if each not in ARGUMENTS]
    # A user's own annotations may be of any kind.
    hints = get_type_hints(function) if function and name.name in METRICS else {}
    for option, value in name.options.items():
        if option not in allowed:
            has = f"it has {', '.join(allowed)}" if allowed else "it has no options"
            raise UserError(f"metrics: {name.name}: there is no option {option!r}; {has}")
        try:
            TypeAdapter(hints.get(option, Any)).validate_python(value, strict=True)
        except ValidationError as error:
            reason = " or ".join(dict.fromkeys(each["msg"] for each in error.errors()))
            raise UserError(f"metrics: {name.name}: {option} is {value!r}: {reason}") from error
    title = f"{metric.title} ({_describe_options(name.options)})"
    compute = partial(metric.compute, **name.options)
    prepare = partial(metric.prepare, **name.options) if metric.prepare else None
    # What is computed for a whole pool has no options.
    return replace(metric, title=title, compute=compute, prepare=prepare, pooled=None)


def digest_metrics(names: Iterable[str]) -> dict[str, str]:
    """Digest the source files of those metrics that are functions of the user's own, found before, by their modules."""
    own = [name.rpartition(".") for name in dict.fromkeys(_read(name).name for name in names) if name not in METRICS]
    return source_digests(getattr(sys.modules[module], name) for module, _, name in own)


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
    needed = [each.name for each in named if each.default is each.empty and each.name not in metric.options]
    asked = [each.name for each in named if each.name in ARGUMENTS or each.name in needed]
    if not asked or not set(asked) <= set(ARGUMENTS):
        raise UserError(
            f"metrics: {path} takes {', '.join(asked) or 'nothing'}; a metric takes some of {', '.join(ARGUMENTS)}"
        )

    def compute(given: Inputs, **options: Any) -> float:
        values = {argument: _protected(getattr(given, argument)) for argument in asked}
        try:
            return float(function(**values, **options))
        except Exception as error:
            # The first frame is this one, the second the function's.
            line = traceback.extract_tb(error.__traceback__)[:2][-1].lineno
            raise ValueError(f"line {line}: {_describe(error)}") from error

    return TransferabilityMetric(path, "a function of your own", compute, function, needs_head="probabilities" in asked)


def _protected(value: Any) -> Any:  # noqa: ANN401 - an array, or the seed
    """Give a view that cannot be written to, so that no metric changes what the others are given."""
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


def _describe(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
