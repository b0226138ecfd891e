"""The parameters of a sweep file: their values in each run."""

import itertools
import json
import math
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from headstart.output.errors import UserError

# Options that a sweep sets for its runs itself, and the options of the sweep that replace them.
OWN = {"trainer.default_root_dir": "--output", "results.ledger": "--ledger"}
# The table of runs is written at the end of each run, which takes ever longer with more runs.
MOST_RUNS = 10_000
# The keys that give a parameter its values.
VALUE_KEYS = ("parameters", "value", "values")
# Keys of a file and of its parameters that agents of Weights & Biases understand.
OF_AGENTS = ("distribution", "early_terminate", "max", "min", "mu", "probabilities", "q", "sigma")
AGENTS = "agents of Weights & Biases run that: wandb sweep FILE, then wandb agent"


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
            raise UserError(f"file: parameter {name} is {parameter!r}; give value or values")
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
    """Return whether an option that comes after a parameter replaces its value.

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
    if given := sorted(parameter.keys() & set(OF_AGENTS)):
        raise UserError(f"file: parameter {name} has {', '.join(given)}; {AGENTS}")
    ways = [way for way in VALUE_KEYS if way in parameter]
    if not ways or parameter.get("parameters", True) in (None, {}):
        raise UserError(f"file: parameter {name} has neither value nor values")

    way = ways[0]
    if others := sorted(map(str, parameter.keys() - {way})):
        raise UserError(f"file: parameter {name} has {', '.join(others)} beside its {way}; leave one of them out")
    content = parameter[way]
    if way == "parameters" and not isinstance(content, dict):
        raise UserError(f"file: parameters of {name} are {content!r}; give a mapping")
    if way == "values" and not (isinstance(content, list) and content):
        raise UserError(f"file: values of parameter {name} are {content!r}; give a list")
    return way


def list_points(parameters: Mapping[str, dict[str, Any]], cap: int | None) -> Iterator[dict[str, Any]]:
    """Return the values of all runs, each by the names of the parameters; the last parameter varies fastest.

    Args:
        parameters: The parameters, as `flatten` returns them.
        cap: Highest number of runs.

    Raises:
        UserError: There are too many runs.
    """
    choices = [[options["value"]] if "value" in options else options["values"] for options in parameters.values()]
    count = math.prod(map(len, choices))
    count = min(count, cap or count)
    if count > MOST_RUNS:
        raise UserError(
            f"file: there are {count:,} runs, but a sweep has at most {MOST_RUNS:,}; give fewer values, or run_cap"
        )
    points = (dict(zip(parameters, point, strict=True)) for point in itertools.product(*choices))
    return itertools.islice(points, count)


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
