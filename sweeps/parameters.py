"""The parameters of a sweep file: their values in each run."""

import itertools
import json
import math
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import numpy as np

from headstart.output.errors import UserError

# Options that a sweep sets for its runs itself, and the options of the sweep that replace them.
OWN = {"trainer.default_root_dir": "--output", "results.ledger": "--ledger"}
# The table of runs is written at the start and end of each run, which takes ever longer with more runs.
MOST_RUNS = 10_000
# Keys that give a parameter its values, with the other keys and the distributions that each allows.
VALUE_KEYS: dict[str, tuple[set[str], set[str]]] = {
    "parameters": (set(), set()),
    "value": ({"distribution"}, {"constant"}),
    "values": ({"distribution", "probabilities"}, {"categorical", "categorical_w_probabilities"}),
    "distribution": ({"min", "max", "mu", "sigma", "q"}, set()),
}
# Distributions with `mu` and `sigma`; the others have `min` and `max`.
AROUND_A_MEAN = {"normal", "log_normal"}


def flatten(parameters: Mapping[str, Any], prefix: str = "") -> dict[str, dict[str, Any]]:
    """Return the parameters by their dotted names.

    Args:
        parameters: The parameters of a sweep file, some of which have `parameters` of their own.
        prefix: The beginning of the names.

    Raises:
        UserError: One has no values or several kinds of them, belongs to the sweep, or replaces another one.
    """
    flat: dict[str, dict[str, Any]] = {}
    for key, parameter in parameters.items():
        name = f"{prefix}{key}"
        if not isinstance(parameter, dict):
            raise UserError(f"file: parameter {name} is {parameter!r}; give value, values or a distribution")
        if name in OWN:
            raise UserError(f"file: parameter {name} is the sweep's own; give {OWN[name]} instead")

        is_group = _find_way(name, parameter) == "parameters"
        added = flatten(parameter["parameters"], f"{name}.") if is_group else {name: parameter}
        for new, other in itertools.product(added, flat):
            if overrides(new, other, flat[other]):
                advice = "" if overrides(other, new, added[new]) else f", or put {new} first"
                raise UserError(f"file: parameter {new} replaces {other}; leave one of them out{advice}")
        flat |= added
    return flat


def overrides(option: str, parameter: str, values: Mapping[str, Any]) -> bool:
    """Whether an option that comes after a parameter replaces its value.

    Args:
        option: Name of the option.
        parameter: Name of the parameter.
        values: The parameter, as `flatten` returns it.
    """
    # An option of a class may be written with its full name, and the class itself, too.
    later, earlier = (name.replace(".init_args", "").removesuffix(".class_path") for name in (option, parameter))
    if later in ("config", earlier) or earlier.startswith(f"{later}."):
        return True
    # An option of a class that is chosen by its name does not replace the class.
    is_mapping = any(isinstance(value, dict) for value in [values.get("value"), *values.get("values", [])])
    return later.startswith(f"{earlier}.") and is_mapping


def _find_way(name: str, parameter: Mapping[str, Any]) -> str:
    """Return which key gives a parameter its values; raise a UserError for other keys beside it."""
    ways = [way for way in ("parameters", "value", "values") if way in parameter]
    if not ways and parameter.keys() & {"distribution", "min", "max", "mu", "sigma"}:
        ways = ["distribution"]
    if not ways or parameter.get("parameters", True) in (None, {}):
        raise UserError(f"file: parameter {name} has neither value nor values nor a distribution")

    way = ways[0]
    others, kinds = VALUE_KEYS[way]
    if unknown := sorted(map(str, parameter.keys() - {way, *others})):
        raise UserError(f"file: parameter {name} has {', '.join(unknown)} beside its {way}; leave one of them out")
    if "distribution" in parameter and way != "distribution" and parameter["distribution"] not in kinds:
        raise UserError(
            f"file: parameter {name} has {way}, and distribution {parameter['distribution']!r}; leave one of them out"
        )
    content = parameter.get(way)
    if way == "parameters" and not isinstance(content, dict):
        raise UserError(f"file: parameters of {name} are {content!r}; give a mapping")
    if way == "values" and not (isinstance(content, list) and content):
        raise UserError(f"file: values of parameter {name} are {content!r}; give a list")
    return way


def list_points(
    method: str, parameters: Mapping[str, dict[str, Any]], cap: int | None, seed: int
) -> Iterator[dict[str, Any]]:
    """Return the values of all runs, each by the names of the parameters.

    Args:
        method: `grid` or `random`.
        parameters: The parameters, as `flatten` returns them.
        cap: Number of runs of a random search, highest number of those of a grid.
        seed: Seed of a random search.

    Raises:
        UserError: There are too many runs, or a value cannot be sampled.
    """
    choices = _list_choices(parameters) if method == "grid" else []
    count = cap if method == "random" and cap else math.prod(map(len, choices))
    count = min(count, cap or count)
    if count > MOST_RUNS:
        raise UserError(
            f"file: there are {count:,} runs, but a sweep has at most {MOST_RUNS:,}; give fewer values, or run_cap"
        )
    if method == "random":
        return _sample(parameters, count, seed)
    # The last parameter varies fastest.
    points = (dict(zip(parameters, point, strict=True)) for point in itertools.product(*choices))
    return itertools.islice(points, count)


def _list_choices(parameters: Mapping[str, dict[str, Any]]) -> list[list[Any]]:
    for name, parameter in parameters.items():
        if not parameter.keys() & {"value", "values"}:
            raise UserError(f"file: parameter {name} has no values; a grid needs them, or take method: random")
        if "probabilities" in parameter:
            raise UserError(f"file: parameter {name} has probabilities; a grid has none, or take method: random")
    return [[each["value"]] if "value" in each else each["values"] for each in parameters.values()]


def _sample(parameters: Mapping[str, dict[str, Any]], count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Sample points, each by a generator of its own, so that a higher cap adds points to those of a lower one."""
    for number in range(count):
        generator = np.random.default_rng([seed, number])
        yield {name: _sample_value(name, parameter, generator) for name, parameter in parameters.items()}


def _sample_value(name: str, parameter: Mapping[str, Any], generator: np.random.Generator) -> Any:  # noqa: ANN401 - YAML
    """Sample one value from a distribution that Weights & Biases documents."""
    if "value" in parameter:
        return parameter["value"]
    are_integers = all(type(parameter.get(key)) is int for key in ("min", "max"))
    kind = parameter.get("distribution", "int_uniform" if are_integers else "uniform")

    try:
        if "values" in parameter:
            return parameter["values"][generator.choice(len(parameter["values"]), p=parameter.get("probabilities"))]

        distributions = _distributions(parameter, generator)
        if (basic := str(kind).removeprefix("q_")) not in distributions:
            raise UserError(
                f"file: parameter {name} has distribution {kind!r}; give one of {', '.join(distributions)}, "
                "perhaps with q_ before it"
            )

        _require_used(name, parameter, kind)
        value = distributions[basic]()
        if basic != kind:
            step = parameter.get("q", 1)
            value = type(step)(round(value / step) * step)
        return value

    except KeyError as error:
        raise UserError(f"file: parameter {name} has distribution {kind!r} without its {error}") from error
    except (TypeError, ValueError, ArithmeticError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"file: parameter {name} cannot be sampled ({error})") from error


def _require_used(name: str, parameter: Mapping[str, Any], kind: str) -> None:
    """Raise a UserError for keys of a parameter that its distribution does not have."""
    basic = kind.removeprefix("q_")
    used = {"distribution", *(("mu", "sigma") if basic in AROUND_A_MEAN else ("min", "max")), *["q"] * (basic != kind)}
    if unused := sorted(parameter.keys() - used):
        raise UserError(
            f"file: parameter {name} has {', '.join(unused)} beside distribution {kind!r}; leave "
            f"{'it' if len(unused) == 1 else 'them'} out, or give another distribution"
        )


def _distributions(parameter: Mapping[str, Any], generator: np.random.Generator) -> dict[str, Any]:
    def between(low: float, high: float) -> float:
        return float(generator.uniform(low, high))

    return {
        "int_uniform": lambda: int(generator.integers(parameter["min"], parameter["max"], endpoint=True)),
        "uniform": lambda: between(parameter["min"], parameter["max"]),
        "log_uniform": lambda: math.exp(between(parameter["min"], parameter["max"])),
        "log_uniform_values": lambda: math.exp(between(math.log(parameter["min"]), math.log(parameter["max"]))),
        "inv_log_uniform_values": lambda: (
            1 / math.exp(between(math.log(1 / parameter["max"]), math.log(1 / parameter["min"])))
        ),
        "normal": lambda: float(generator.normal(parameter.get("mu", 0), parameter.get("sigma", 1))),
        "log_normal": lambda: float(generator.lognormal(parameter.get("mu", 0), parameter.get("sigma", 1))),
    }


def short_name(value: Any) -> str:  # noqa: ANN401 - YAML
    """Return a short name of a value: the last part of an import path, a file's name without its suffix.

    Args:
        value: A value of YAML; a class with arguments is a mapping with `class_path`.
    """
    if isinstance(value, dict) and isinstance(value.get("class_path"), str):
        value = value["class_path"]
    if not isinstance(value, str):
        return in_one_line(value)
    module, _, name = value.rpartition(".")
    if module and all(part.isidentifier() for part in value.split(".")):
        is_importable = PathFinder.find_spec(module.partition(".")[0], [str(Path.cwd()), *sys.path]) is not None
        if is_importable or name[:1].isupper():
            return name
    return Path(value).stem


def in_one_line(value: Any) -> str:  # noqa: ANN401 - YAML
    """Return a value as YAML in one line, as options are read.

    Args:
        value: The value.
    """
    return value if isinstance(value, str) else json.dumps(value, default=str)
