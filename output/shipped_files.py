"""Files that come with the suite, found from any working folder, and files of options that arguments name."""

import os
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from headstart.output.arguments import expand_home
from headstart.output.import_paths import ROOT

CONFIGS = ROOT / "configs"
CONFIG = "--config"
# Options that name a file of options beside `--config`: `--model=configs/model/demo.yaml`.
GROUP = re.compile(r"(--[\w.]+=|)(configs/.*\.yaml)")
# The loader in C is ten times as fast, but not every PyYAML has it.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def find_file(named: str | Path) -> Path:
    """Find a file that options name: the user's own, else the one of that name among the configurations of the suite.

    Args:
        named: A path, such as `demo.yaml`, `configs/demo.yaml` or `~/mine.yaml`.

    Returns:
        Where it is; the path as it was given where neither is.
    """
    path = expand_home(named)
    inside = path.relative_to("configs") if path.parts[:1] == ("configs",) else path
    # These are False for what no file can be called, too, such as a whole configuration in one line.
    is_shipped = not os.path.exists(path) and os.path.isfile(CONFIGS / inside)  # noqa: PTH110, PTH113
    return CONFIGS / inside if is_shipped else path


def find_configurations(args: Sequence[str]) -> list[str]:
    """Return options with the paths of the configurations that they name.

    Args:
        args: Options of a command.
    """
    resolved = []
    for before, arg in pairwise(["", *args]):
        if before == CONFIG:
            resolved.append(_find(arg))
        elif arg.startswith(f"{CONFIG}="):
            resolved.append(f"{CONFIG}={_find(arg.removeprefix(f'{CONFIG}='))}")
        else:
            group = GROUP.fullmatch(arg)
            resolved.append(f"{group[1]}{_find(group[2])}" if group else arg)
    return resolved


def _find(value: str) -> str:
    """Return where the file of an option lies; a value that names no file, such as a mapping in one line, as it is."""
    path = find_file(value)
    return str(path) if path.is_absolute() and not Path(value).is_absolute() else value


def configs_of(args: Sequence[str]) -> list[str]:
    """Return the configuration files that arguments name, in order."""
    return [
        arg.removeprefix("--config=")
        for before, arg in pairwise(["", *find_configurations(args)])
        if before == "--config" or arg.startswith("--config=")
    ]


def load_yaml(text: str | bytes) -> Any:  # noqa: ANN401 - whatever YAML holds
    """Return what YAML of the suite holds, which it ships or has written."""
    return yaml.load(text, LOADER)


def read_yaml(path: str, is_file: bool = True) -> Any:  # noqa: ANN401 - whatever YAML holds
    """Return what a configuration file, or a text, holds; the error if it cannot be read."""
    try:
        return yaml.safe_load(Path(path).read_text(encoding="utf-8") if is_file else path)
    except (OSError, ValueError, yaml.YAMLError) as error:
        return error
