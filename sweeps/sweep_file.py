"""Sweep files, in the format of Weights & Biases: https://docs.wandb.ai/models/sweeps/sweep-config-keys."""

import hashlib
import itertools
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from headstart.output.errors import UsageError, UserError, broken_yaml, reason_of

PROGRAM = "train.py"
KEYS = {"program", "method", "name", "description", "project", "entity", "metric", "parameters", "command", "run_cap"}
# Options that a sweep sets for its runs itself, and the options of the sweep that replace them.
OWN = {"trainer.default_root_dir": "--output", "results.ledger": "--ledger"}
# First parts of the options of headstart train, which runs have from the file.
OF_RUNS = ("criterion", "data", "model", "results", "seed_everything", "task", "trainer")
IN_THE_FILE = "write it into the command of the sweep file or, where it varies, into its parameters"
# The position of the parameters in a command.
ARGUMENTS = "${args}"
IGNORED = {"${env}", "${interpreter}", "${program}"}
LONGEST_NAME = 80


@dataclass(frozen=True)
class Run:
    """One run of a sweep.

    Attributes:
        name: Made of its values, and a digest of its options.
        options: Options of headstart train.
    """

    name: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class Sweep:
    """The content of a sweep file.

    Attributes:
        name: Name of the group of its runs.
        runs: The runs, in the order of the grid or of sampling.
        dashboard: `group` of the runs in the dashboard, and `project` and `entity` if the file has them.
    """

    name: str
    runs: list[Run]
    dashboard: dict[str, str]


def require_no_run_options(args: Sequence[str]) -> None:
    """Raise an error for options of headstart train, which belong into the sweep file.

    Args:
        args: Arguments of the command.

    Raises:
        UsageError: One of them is an option of headstart train.
    """
    for arg in args:
        name = arg.removeprefix("--").partition("=")[0]
        if arg.startswith("--") and name.partition(".")[0] in OF_RUNS:
            instead = f"give {OWN[name]} instead" if name in OWN else IN_THE_FILE
            raise UsageError(f"{name}: it is an option of the runs; {instead}")


def read_sweep(path: Path, seed: int) -> Sweep:
    """Read a sweep file.

    Args:
        path: The file.
        seed: Seed of a random search.

    Raises:
        UserError: It cannot be read, or needs an account of Weights & Biases.
    """
    content = read_mapping("file", path, "name a sweep file, as in configs/sweep")
    _check_keys(content)
    parameters = _flatten(content["parameters"])
    points = _grid(parameters) if content["method"] == "grid" else _sample(parameters, content["run_cap"], seed)
    if content["method"] == "grid" and "run_cap" in content:
        points = itertools.islice(points, content["run_cap"])

    before, after = _options(content.get("command", [ARGUMENTS]))
    varied = [key for key, parameter in parameters.items() if "value" not in parameter]
    runs: dict[str, Run] = {}
    for point in points:
        options = (*before, *(f"--{key}={_write(value)}" for key, value in point.items()), *after)
        run = Run(_name([point[key] for key in varied], options), options)
        runs.setdefault(run.name, run)

    name = str(content.get("name") or path.stem)
    dashboard = {key: str(content[key]) for key in ("project", "entity") if content.get(key) is not None}
    return Sweep(name, list(runs.values()), {"group": name, **dashboard})


def read_mapping(option: str, path: Path, advice: str) -> dict[str, Any]:
    """Read a YAML file with a mapping.

    Args:
        option: The option that names the file, for messages.
        path: The file.
        advice: What the user can do if it is wrong.

    Raises:
        UserError: It cannot be read, or holds something else.
    """
    try:
        content = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{option}: {str(path)!r} cannot be read ({reason_of(error)}); {advice}") from error
    except yaml.YAMLError as error:
        raise UserError(f"{option}: {str(path)!r} is no YAML ({broken_yaml(error)}); {advice}") from error
    if not isinstance(content, dict):
        raise UserError(f"{option}: {str(path)!r} holds no mapping; {advice}")
    return content


def _check_keys(content: Mapping[str, Any]) -> None:
    unknown = sorted(map(str, content.keys() - KEYS))
    if unknown:
        raise UserError(
            f"file: {', '.join(unknown)} is none of the keys that a sweep is run by here: {', '.join(sorted(KEYS))}"
        )
    if Path(str(content.get("program", ""))).name != PROGRAM:
        raise UserError(f"file: program is {content.get('program')!r}; only {PROGRAM} can be swept")
    if content.get("method") not in ("grid", "random"):
        raise UserError(
            f"file: method is {content.get('method')!r}; here it is grid or random, others need an agent of W&B"
        )
    if not isinstance(content.get("parameters"), dict) or not content["parameters"]:
        raise UserError("file: there are no parameters; give each of them values")
    cap = content.get("run_cap")
    if (content["method"] == "random" or cap is not None) and (type(cap) is not int or cap < 1):
        raise UserError(f"file: run_cap is {cap!r}; say how many runs there are to be, as a number from 1")


def _flatten(parameters: Mapping[str, Any], prefix: str = "") -> dict[str, dict[str, Any]]:
    """Return each parameter by its dotted name."""
    flat: dict[str, dict[str, Any]] = {}
    for key, parameter in parameters.items():
        name = f"{prefix}{key}"
        if not isinstance(parameter, dict):
            raise UserError(f"file: parameter {name} is {parameter!r}; give it value, values or a distribution")
        if name in OWN:
            raise UserError(f"file: parameter {name} is the sweep's own; give {OWN[name]} instead")
        if isinstance(parameter.get("parameters"), dict) and parameter["parameters"]:
            flat |= _flatten(parameter["parameters"], f"{name}.")
        elif "values" in parameter and not (isinstance(parameter["values"], list) and parameter["values"]):
            raise UserError(f"file: values of parameter {name} are {parameter['values']!r}; give a list")
        elif parameter.keys() & {"value", "values", "distribution", "min", "max", "mu"}:
            flat[name] = parameter
        else:
            raise UserError(f"file: parameter {name} has neither value nor values nor a distribution")
    return flat


def _grid(parameters: Mapping[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Return all combinations; the last parameter varies fastest."""
    choices = []
    for name, parameter in parameters.items():
        if not parameter.keys() & {"value", "values"}:
            raise UserError(f"file: parameter {name} has no values; a grid needs them, or take method: random")
        choices.append([parameter["value"]] if "value" in parameter else parameter["values"])
    return (dict(zip(parameters, point, strict=True)) for point in itertools.product(*choices))


def _sample(parameters: Mapping[str, dict[str, Any]], count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Sample points, each by a generator of its own, so that a higher cap adds points to those of a lower one."""
    for number in range(count):
        generator = np.random.default_rng([seed, number])
        yield {name: _sample_value(name, parameter, generator) for name, parameter in parameters.items()}


def _sample_value(name: str, parameter: Mapping[str, Any], generator: np.random.Generator) -> Any:  # noqa: ANN401 - YAML
    """Sample one value from a distribution that Weights & Biases documents."""
    if "value" in parameter:
        return parameter["value"]
    whole = all(type(parameter.get(key)) is int for key in ("min", "max"))
    kind = str(parameter.get("distribution", "int_uniform" if whole else "uniform"))
    try:
        if "values" in parameter:
            return parameter["values"][generator.choice(len(parameter["values"]), p=parameter.get("probabilities"))]
        value = _distributions(parameter, generator)[kind.removeprefix("q_")]()
        if kind.startswith("q_"):
            step = parameter.get("q", 1)
            value = type(step)(round(value / step) * step)
        return value
    except KeyError as error:
        raise UserError(
            f"file: parameter {name} has distribution {kind!r} without its {error}, or it is none that is known here"
        ) from error
    except (TypeError, ValueError, ArithmeticError) as error:
        raise UserError(f"file: parameter {name} cannot be sampled ({error})") from error


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


def _options(command: Any) -> tuple[list[str], list[str]]:  # noqa: ANN401 - YAML
    """Return the options of a command before the parameters, and after them."""
    if not isinstance(command, list) or not all(isinstance(part, str) for part in command):
        raise UserError(f"file: command is {command!r}; give a list of its parts")
    parts = _join([part for part in command if part not in IGNORED])
    if parts.count(ARGUMENTS) != 1:
        raise UserError(
            f"file: {ARGUMENTS} stands {parts.count(ARGUMENTS)} times in the command; give it once, for the parameters"
        )

    options = [part if part == ARGUMENTS else _expand(part) for part in parts]
    # With an agent of W&B, `null` gives every run a folder of its own, as here.
    options = [part for part in options if part.partition("=")[0] != "--trainer.default_root_dir"]
    for part in options:
        if not part.startswith("--") and part != ARGUMENTS:
            raise UserError(f"file: {part!r} of the command is no option of {PROGRAM}, such as --data.batch_size=8")
        if (name := part.partition("=")[0].removeprefix("--")) in OWN:
            raise UserError(f"file: {name} in the command is the sweep's own; give {OWN[name]} instead")
    index = options.index(ARGUMENTS)
    return options[:index], options[index + 1 :]


def _join(parts: list[str]) -> list[str]:
    """Join options and values that are separate parts."""
    joined: list[str] = []
    for part in parts:
        is_own = part.startswith("--") or (part.startswith("$") and not part.startswith("${envvar:"))
        is_value = joined and joined[-1].startswith("--") and "=" not in joined[-1] and not is_own
        joined[-1:] = [f"{joined[-1]}={part}"] if is_value else [*joined[-1:], part]
    return joined


def _expand(part: str) -> str:
    """Replace environment variables; a UserError is raised for other macros of Weights & Biases."""

    def value(match: re.Match[str]) -> str:
        name = match[1].removeprefix("envvar:")
        if name == match[1]:
            raise UserError(f"file: {match[0]} of the command cannot be given here; take {ARGUMENTS}")
        if name not in os.environ:
            raise UserError(f"file: the environment variable {name} of the command is not set")
        return os.environ[name]

    return re.sub(r"\$\{([^}]*)\}", value, part)


def _write(value: Any) -> str:  # noqa: ANN401 - YAML
    """Return a value as YAML in one line, as options are read."""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _name(values: list[Any], options: tuple[str, ...]) -> str:
    """Return a run's name: its values, of paths the last part, and a digest that makes it unique."""
    digest = hashlib.sha256(json.dumps(options).encode()).hexdigest()[:8]
    shown = [Path(value).stem if isinstance(value, str) else _write(value) for value in values]
    text = re.sub(r"[^\w.+-]+", "-", "-".join(shown), flags=re.ASCII)[:LONGEST_NAME].strip("-.")
    return f"{text}-{digest}" if text else digest
