"""Metrics as options name them: those of the catalogue, and the user's own by import path."""

from __future__ import annotations

import difflib
import inspect
import re
import sys
import traceback
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from jsonargparse.typing import register_type

from evaluation.sources.scores import Metrics
from metrics.transferability.catalogue import METRICS, TransferabilityMetric
from metrics.transferability.inputs import Inputs
from modules.provenance import source_digests
from output.errors import UserError, require_different

DEFAULT_METRICS = tuple(name for name, metric in METRICS.items() if metric.is_default)
# What takes as long on every target of a pool as if it were the only one is left out by default.
SELECTION_METRICS = tuple(name for name in DEFAULT_METRICS if not METRICS[name].is_single)
# What a function of the user's own can ask for, by the names of its arguments.
ARGUMENTS = ("features", "labels", "probabilities", "seed")


class MetricName(str):
    """A metric: a name of the catalogue, or an import path such as `my_metrics.spread`."""


def _check_name(name: str) -> MetricName:
    if name in METRICS or re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)+", str(name)):
        return MetricName(name)
    close = difflib.get_close_matches(str(name), METRICS, n=1)
    closest = f" (closest: {close[0]})" if close else ""
    raise ValueError(
        f"{name!r} is no metric{closest}; there are {', '.join(METRICS)}, and functions by import path, module.name"
    )


register_type(MetricName, str, _check_name)


def find_metrics(names: Sequence[str]) -> Metrics:
    """Find metrics by their names, in order.

    Args:
        names: Of the catalogue, or the import paths of functions of `features`, `labels` and, where they name them,
            `probabilities` and `seed`; a higher score is better.

    Raises:
        UserError: There is none, one comes twice, or what an import path names is no such function.
    """
    require_different("metrics", names)
    return {str(name): METRICS.get(name) or _import_metric(name) for name in names}


def digest_metrics(names: Iterable[str]) -> dict[str, str]:
    """Digest the source files of those metrics that are functions of the user's own, found before, by their modules."""
    own = [name.rpartition(".") for name in names if name not in METRICS]
    return source_digests(getattr(sys.modules[module], name) for module, _, name in own)


def _import_metric(path: str) -> TransferabilityMetric:
    """Make a metric of a function of the user's own."""
    module, _, name = path.rpartition(".")
    try:
        function = getattr(import_module(module), name)
        signature = inspect.signature(function)
    except (Exception, SystemExit) as error:
        raise UserError(
            f"metrics: {path} cannot be imported ({_describe(error)}); name a function of a module in this folder"
        ) from error
    named = [each for each in signature.parameters.values() if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    asked = [each.name for each in named if each.default is each.empty or each.name in ARGUMENTS]
    if not asked or not set(asked) <= set(ARGUMENTS):
        raise UserError(
            f"metrics: {path} takes {', '.join(asked) or 'nothing'}; a metric takes some of {', '.join(ARGUMENTS)}"
        )

    def compute(given: Inputs) -> float:
        values = {argument: _protected(getattr(given, argument)) for argument in asked}
        try:
            return float(function(**values))
        except Exception as error:
            # The first frame is this one, the second the function's.
            line = traceback.extract_tb(error.__traceback__)[:2][-1].lineno
            raise ValueError(f"line {line}: {_describe(error)}") from error

    return TransferabilityMetric(path, "a function of your own", compute, needs_head="probabilities" in asked)


def _protected(value: Any) -> Any:  # noqa: ANN401 - an array, or the seed
    """Give a view that cannot be written to, so that no metric changes what the others are given."""
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


def _describe(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
