"""Sweep files, in the format of Weights & Biases: https://docs.wandb.ai/models/sweeps/sweep-config-keys."""

import hashlib
import itertools
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from headstart.contract.unique_keys import UniqueKeyLoader
from headstart.output.errors import UsageError, UserError, broken_yaml, reason_of
from headstart.sweeps.parameters import AGENTS, OF_AGENTS, OWN, flatten, in_one_line, list_points, overrides, short_name

PROGRAM = "train.py"
# A key of the suite's own: options of headstart train for the runs from which thresholds follow.
REFERENCE = "reference"
# Agents of Weights & Biases read `metric`, and people `description`.
KEYS = (
    *("command", "description", "entity", "method", "metric", "name", "parameters", "program", "project"),
    *(REFERENCE, "run_cap"),
)
# First parts of the options of headstart train, which runs get from the file alone.
RUN_OPTIONS = ("criterion", "data", "model", "results", "seed_everything", "task", "trainer")
IN_THE_FILE = "write it into the command of the sweep file or, where it varies, into its parameters"
# The position of the parameters in a command.
ARGUMENTS = "${args}"
IGNORED = {"${env}", "${interpreter}", "${program}"}
# The beginning of a command for an installed suite.
INSTALLED = ["headstart", "train"]
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


def require_no_run_options(args: Sequence[str]) -> None:
    """Raise an error for options of headstart train, which belong in the sweep file.

    Args:
        args: Arguments of the command.

    Raises:
        UsageError: One of them is an option of headstart train.
    """
    for arg in args:
        name = arg.removeprefix("--").partition("=")[0]
        if arg.startswith("--") and name.partition(".")[0] in RUN_OPTIONS:
            instead = f"give {OWN[name]} instead" if name in OWN else IN_THE_FILE
            raise UsageError(f"{name}: it is an option of the runs; {instead}")


def read_sweep(path: Path) -> Sweep:
    """Read a sweep file.

    Args:
        path: The file.

    Raises:
        UserError: It cannot be read, or needs agents of Weights & Biases.
    """
    content = read_mapping("file", path, "name a sweep file, as in configs/sweep")
    _require_quotes(content.get("command"), path.read_text())
    _check_keys(content)
    parameters = flatten(content["parameters"])
    before, after = _options(content.get("command", [ARGUMENTS]))
    for option, parameter in itertools.product(after, parameters):
        name = option.partition("=")[0].removeprefix("--")
        if overrides(name, parameter, parameters[parameter]):
            raise UserError(f"file: {name} after {ARGUMENTS} replaces parameter {parameter}; put it before {ARGUMENTS}")

    varied = [key for key, parameter in parameters.items() if "value" not in parameter]
    runs: dict[str, Run] = {}
    for point in list_points(parameters, content.get("run_cap")):
        options = (*before, *(f"--{key}={in_one_line(value)}" for key, value in point.items()), *after)
        run = Run(name_run([point[key] for key in varied], options), options, point)
        runs.setdefault(run.name, run)

    name = str(content.get("name") or path.stem)
    dashboard = {key: str(content[key]) for key in ("project", "entity") if content.get(key) is not None}
    return Sweep(name, list(runs.values()), {"sweep": name, **dashboard}, _reference(content.get(REFERENCE, [])))


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
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{option}: {str(path)!r} cannot be read ({reason_of(error)}); {advice}") from error
    # A date that does not exist is a ValueError.
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        quotes = "quote a value with a colon or braces, or " if isinstance(error, yaml.MarkedYAMLError) else ""
        raise UserError(f"{option}: {str(path)!r} is no YAML ({broken_yaml(error)}); {quotes}{advice}") from error
    try:
        json.dumps(content, default=str, skipkeys=True)
    except ValueError as error:
        raise UserError(f"{option}: {str(path)!r} has an anchor that contains itself; {advice}") from error
    if not isinstance(content, dict):
        raise UserError(f"{option}: {str(path)!r} holds no mapping; {advice}")
    return content


def _check_keys(content: Mapping[str, Any]) -> None:
    if unknown := sorted(map(str, content.keys() - {*KEYS})):
        advice = AGENTS if set(unknown) <= set(OF_AGENTS) else f"the keys are {', '.join(KEYS)}"
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


def _reference(options: Any) -> tuple[str, ...]:  # noqa: ANN401 - YAML
    """Return the options of the reference runs."""
    is_list = isinstance(options, list) and all(isinstance(text, str) and text.startswith("--") for text in options)
    if not is_list:
        raise UserError(f"file: reference is {options!r}; give a list of options of {PROGRAM}")
    return tuple(options)


def _require_quotes(command: Any, text: str) -> None:  # noqa: ANN401 - YAML
    """Raise a UserError with the line of a part of the command that YAML reads as a mapping, for want of quotes."""
    for part in command if isinstance(command, list) else []:
        if isinstance(part, dict) and part:
            begins = str(next(iter(part)))
            line = next((number for number, words in enumerate(text.splitlines(), 1) if begins in words), 0)
            raise UserError(
                f"file: line {line} has a part of the command with a colon; quote it, as in '--model.methods={{a: b}}'"
            )


def _options(command: Any) -> tuple[list[str], list[str]]:  # noqa: ANN401 - YAML
    """Return the options of a command before the parameters, and after them."""
    if not isinstance(command, list) or not all(isinstance(part, str) for part in command):
        raise UserError(f"file: command is {command!r}; give a list of its parts")
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
        if (name := part.partition("=")[0].removeprefix("--")) in OWN:
            raise UserError(f"file: {name} in the command is the sweep's own; give {OWN[name]} instead")
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
    text = re.sub(r"[^\w.+-]+", "-", "-".join(map(short_name, values)), flags=re.ASCII)[:LONGEST_NAME].strip("-.")
    return f"{text}-{digest}" if text else digest
