"""Sweep files, in the format of Weights & Biases: https://docs.wandb.ai/models/sweeps/sweep-config-keys."""

import hashlib
import itertools
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from headstart.contract.unique_keys import UniqueKeyLoader
from headstart.output.errors import UserError, broken_yaml, reason_of

PROGRAM = "train.py"
# A key of the suite's own: options of headstart train for the runs from which thresholds follow.
REFERENCE = "reference"
# Agents of Weights & Biases read `metric`, and people `description`.
KEYS = (
    *("command", "description", "entity", "method", "metric", "name", "parameters", "program", "project"),
    *(REFERENCE, "run_cap"),
)
# Keys of a file and of its parameters that agents of Weights & Biases understand.
OF_AGENTS = {"distribution", "early_terminate", "max", "min", "mu", "probabilities", "q", "sigma"}
AGENTS = "agents of Weights & Biases run that: wandb sweep FILE, then wandb agent"
# Options that a sweep sets for its runs itself, and the options of the sweep that replace them.
SET_BY_SWEEPS = {"trainer.default_root_dir": "--output", "results.ledger": "--ledger"}
# The position of the parameters in a command.
ARGUMENTS = "${args}"
IGNORED = {"${env}", "${interpreter}", "${program}"}
# The beginning of a command for an installed suite.
INSTALLED = ["headstart", "train"]
# The table of runs is written at the end of each run, which takes ever longer with more runs.
MOST_RUNS = 10_000
LONGEST_NAME = 80


@dataclass(frozen=True)
class Run:
    """One run of a sweep.

    Attributes:
        name: Made of its values, and a digest of its options.
        options: Options of headstart train.
        parameters: The values of its parameters.
    """

    name: str
    options: tuple[str, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Sweep:
    """The content of a sweep file.

    Attributes:
        name: Its name.
        runs: The runs, in the order of the grid.
        dashboard: Name of the `sweep`, and `project` and `entity` in the dashboard if the file has them.
        reference: Options of the runs from which thresholds follow; none where the targets state theirs.
    """

    name: str
    runs: list[Run]
    dashboard: dict[str, str]
    reference: tuple[str, ...] = ()


def read_sweep(path: Path) -> Sweep:
    """Read a sweep file.

    Args:
        path: The file.

    Raises:
        UserError: It cannot be read, or needs agents of Weights & Biases.
    """
    content = read_mapping("file", path, "name a sweep file, as in configs/sweep")
    _check_keys(content)
    _require_quotes(content.get("command"), path.read_text())
    parameters = flatten(content["parameters"])
    before, after = _options(content.get("command", [ARGUMENTS]))
    for option, parameter in itertools.product(after, parameters):
        name = option.partition("=")[0].removeprefix("--")
        if _replaces(name, parameter, parameters[parameter]):
            raise UserError(f"file: {name} after {ARGUMENTS} replaces parameter {parameter}; put it before {ARGUMENTS}")

    count = math.prod(map(len, parameters.values()))
    count = min(count, content.get("run_cap") or count)
    if count > MOST_RUNS:
        raise UserError(
            f"file: there are {count:,} runs, but a sweep has at most {MOST_RUNS:,}; give fewer values, or run_cap"
        )

    runs: dict[str, Run] = {}
    for values in itertools.islice(itertools.product(*parameters.values()), count):
        point = dict(zip(parameters, values, strict=True))
        options = (*before, *(f"--{key}={_in_one_line(value)}" for key, value in point.items()), *after)
        run = Run(name_run([point[key] for key in parameters if len(parameters[key]) > 1], options), options, point)
        runs.setdefault(run.name, run)

    name = str(content.get("name") or path.stem)
    dashboard = {key: str(content[key]) for key in ("project", "entity") if content.get(key) is not None}
    return Sweep(name, list(runs.values()), {"sweep": name, **dashboard}, tuple(content.get(REFERENCE, ())))


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
        content = yaml.load(path.read_text(), UniqueKeyLoader)
        # An anchor may contain itself.
        json.dumps(content, default=str, skipkeys=True)
    except OSError as error:
        raise UserError(f"{option}: {str(path)!r} cannot be read ({reason_of(error)}); {advice}") from error
    # A date that does not exist is a ValueError, and so are bytes that are no text.
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        quotes = "quote a value with a colon or braces, or " if isinstance(error, yaml.MarkedYAMLError) else ""
        raise UserError(f"{option}: {str(path)!r} is no YAML ({broken_yaml(error)}); {quotes}{advice}") from error
    if not isinstance(content, dict):
        raise UserError(f"{option}: {str(path)!r} holds no mapping; {advice}")
    return content


def _check_keys(content: Mapping[str, Any]) -> None:
    """Check the keys of a file, and the values of all but parameters and command."""
    if unknown := sorted(map(str, content.keys() - {*KEYS})):
        advice = AGENTS if set(unknown) <= OF_AGENTS else f"the keys are {', '.join(KEYS)}"
        raise UserError(f"file: {', '.join(unknown)} is not supported here; {advice}")
    if Path(str(content.get("program", PROGRAM))).name != PROGRAM:
        raise UserError(f"file: program is {content['program']!r}; only {PROGRAM} can be swept")
    if content.get("method") != "grid":
        advice = AGENTS if content.get("method") in ("random", "bayes") else "give grid"
        raise UserError(f"file: method is {content.get('method')!r}, but only grid is run here; {advice}")
    if not isinstance(content.get("parameters"), dict) or not content["parameters"]:
        raise UserError("file: there are no parameters; give each of them values")
    cap = content.get("run_cap")
    if cap is not None and (type(cap) is not int or cap < 1):
        raise UserError(f"file: run_cap is {cap!r}; give the number of runs, 1 or more")
    reference = content.get(REFERENCE, [])
    if not isinstance(reference, list) or not all(str(option).startswith("--") for option in reference):
        raise UserError(f"file: reference is {reference!r}; give a list of options of {PROGRAM}")


def flatten(parameters: Mapping[str, Any], prefix: str = "") -> dict[str, list[Any]]:
    """Return the values of the parameters by their dotted names.

    Args:
        parameters: The parameters of a sweep file, some of which have `parameters` of their own.
        prefix: The beginning of the names.

    Raises:
        UserError: A parameter has no values, belongs to the sweep, or replaces another one.
    """
    flat: dict[str, list[Any]] = {}
    for key, parameter in parameters.items():
        name = f"{prefix}{key}"
        if name in SET_BY_SWEEPS:
            raise UserError(f"file: parameter {name} is the sweep's own; give {SET_BY_SWEEPS[name]} instead")
        if isinstance(parameter, dict) and (of_agents := sorted(parameter.keys() & OF_AGENTS)):
            raise UserError(f"file: parameter {name} has {', '.join(of_agents)}; {AGENTS}")

        match parameter:
            case {"parameters": dict(inner), **others} if inner and not others:
                added = flatten(inner, f"{name}.")
            case {"value": value, **others} if not others:
                added = {name: [value]}
            case {"values": [_, *_] as values, **others} if not others:
                added = {name: values}
            case _:
                raise UserError(f"file: parameter {name} is {parameter!r}; give a value, or a list of values")

        for new, earlier in itertools.product(added, flat):
            if _replaces(new, earlier, flat[earlier]):
                raise UserError(f"file: parameter {new} replaces {earlier}; leave one of them out, or put {new} first")
        flat |= added
    return flat


def _replaces(option: str, earlier: str, values: Sequence[Any]) -> bool:
    """Return whether an option replaces an earlier one: the same, one that has it as its option, or a part of it.

    Args:
        option: Name of the option.
        earlier: Name of the earlier one.
        values: The values of the earlier one.
    """
    # An option of a class may be written with its full name, and the class itself, too.
    later, sooner = (name.replace(".init_args", "").removesuffix(".class_path") for name in (option, earlier))
    # An option of a class that is chosen by its name alone does not replace the class.
    is_part = later.startswith(f"{sooner}.") and any(isinstance(value, dict) for value in values)
    return later in ("config", sooner) or sooner.startswith(f"{later}.") or is_part


def _require_quotes(command: Any, text: str) -> None:  # noqa: ANN401 - YAML
    """Raise a UserError with the line of a part of the command that YAML reads as a mapping, for want of quotes."""
    for part in command if isinstance(command, list) else []:
        if isinstance(part, dict) and part:
            start = str(next(iter(part)))
            line = next((number for number, words in enumerate(text.splitlines(), 1) if start in words), 0)
            raise UserError(
                f"file: line {line} has a part of the command with a colon; quote it, as in '--model.methods={{a: b}}'"
            )


def _options(command: Any) -> tuple[list[str], list[str]]:  # noqa: ANN401 - YAML
    """Return the options of a command before the parameters, and after them."""
    if not isinstance(command, list) or not all(isinstance(part, str) for part in command):
        raise UserError(f"file: command is {command!r}; give a list of texts")
    parts = [part for part in command if part not in IGNORED]
    parts = _join(parts[2:] if parts[:2] == INSTALLED else parts)
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
        if (name := part.partition("=")[0].removeprefix("--")) in SET_BY_SWEEPS:
            raise UserError(f"file: {name} in the command is the sweep's own; give {SET_BY_SWEEPS[name]} instead")
    index = options.index(ARGUMENTS)
    return options[:index], options[index + 1 :]


def _join(parts: list[str]) -> list[str]:
    """Join options and values that are separate parts."""
    joined: list[str] = []
    for part in parts:
        is_option = part.startswith("--") or (part.startswith("$") and not part.startswith("${envvar:"))
        is_value = joined and joined[-1].startswith("--") and "=" not in joined[-1] and not is_option
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


def name_run(values: Sequence[Any], options: tuple[str, ...]) -> str:
    """Return a run's name: its values, paths by their last part, and a digest that makes it unique.

    Args:
        values: Values of the parameters.
        options: Options of headstart train.
    """
    digest = hashlib.sha256(json.dumps(options).encode()).hexdigest()[:8]
    text = re.sub(r"[^\w.+-]+", "-", "-".join(map(_short_name, values)), flags=re.ASCII)[:LONGEST_NAME].strip("-.")
    return f"{text}-{digest}" if text else digest


def _short_name(value: Any) -> str:  # noqa: ANN401 - YAML
    """Return a short name of a value: the class of an import path, or a file's name without its suffix."""
    if isinstance(value, dict) and isinstance(value.get("class_path"), str):
        value = value["class_path"]
    if not isinstance(value, str):
        return _in_one_line(value)
    name = value.rpartition(".")[2]
    is_class = "." in value and all(part.isidentifier() for part in value.split(".")) and name[:1].isupper()
    return name if is_class else Path(value).stem


def _in_one_line(value: Any) -> str:  # noqa: ANN401 - YAML
    """Return a value as YAML in one line, as options are read."""
    return value if isinstance(value, str) else json.dumps(value, default=str)
