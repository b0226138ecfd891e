"""Arguments of a model belong to that model: another one that options name begins with its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from headstart.output.usage import configs_of

BACKBONE = "--data.backbone"
FORGET = f"{BACKBONE}.model_args={{}}"


def forget_arguments_of_others(args: Sequence[str]) -> list[str]:
    """Leave out a configuration's arguments of a model where the options name another model.

    Args:
        args: Options of a task.
    """
    named = [_named(arg) for arg in args]
    chosen = [name for name in named if name is not None]
    configured = [name for path in configs_of(args) if (name := _name_in(path)) is not None]
    if not chosen or not configured or chosen[-1] == configured[-1]:
        return list(args)
    # Before all options of the backbone, among which may be arguments of the model that they name.
    first = next(index for index, arg in enumerate(args) if arg.startswith(BACKBONE))
    return [*args[:first], FORGET, *args[first:]]


def _named(arg: str) -> str | None:
    """Give the model that an option names; None where it names none."""
    option, _, value = arg.partition("=")
    if option == f"{BACKBONE}.name":
        return value
    return _name_of(_load(value, Path())) if option == BACKBONE else None


def _name_in(path: str) -> str | None:
    """Give the model that a configuration names, itself or in a file that it refers to."""
    folder = Path(path).parent
    data = _load(_part(_load(path, Path()), "data"), folder)
    return _name_of(_load(_part(_part(data, "init_args") or data, "backbone"), folder))


def _name_of(backbone: Any) -> str | None:  # noqa: ANN401 - what YAML holds
    name = _part(backbone, "name")
    return None if name is None else str(name)


def _part(content: Any, key: str) -> Any:  # noqa: ANN401 - as above
    return content.get(key) if isinstance(content, dict) else None


def _load(value: Any, folder: Path) -> Any:  # noqa: ANN401 - as above
    """Read a value that is YAML or the path of a file of it; what cannot be read is told by the parser."""
    if not isinstance(value, str):
        return value
    try:
        file = folder / value
        return yaml.safe_load(file.read_text(encoding="utf-8") if file.suffix == ".yaml" else value)
    except (OSError, ValueError, yaml.YAMLError):
        return None
