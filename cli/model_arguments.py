"""Arguments of a model are dropped when a later option names another model."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from headstart.output.shipped_files import CONFIG, find_file

BACKBONE = "--data.backbone"
NO_ARGUMENTS = f"{BACKBONE}.model_args={{}}"


def drop_arguments_of_others(args: Sequence[str]) -> list[str]:
    """Remove the arguments of a model if a later configuration or option names another model.

    Args:
        args: Options of a task.
    """
    found: list[str] = []
    current, first = None, None
    for arg in _joined(args):
        is_config = arg.startswith(f"{CONFIG}=")
        name = _name_in(str(find_file(arg.removeprefix(f"{CONFIG}=")))) if is_config else _named(arg)
        first = None if is_config else len(found) if first is None and arg.startswith(BACKBONE) else first
        if name is not None and current is not None and name != current:
            # Before other options of the backbone, among which may be arguments of this model.
            found.insert(len(found) if first is None else first, NO_ARGUMENTS)
        current = name or current
        found.append(arg)
    return found


def _joined(args: Sequence[str]) -> Iterator[str]:
    """Yield the arguments, with options that may name a model joined to the values after them."""
    rest = iter(args)
    for arg in rest:
        value = next(rest, None) if arg in (CONFIG, BACKBONE, f"{BACKBONE}.name") else None
        yield arg if value is None else f"{arg}={value}"


def _named(arg: str) -> str | None:
    """Return the model that an option names; None if it names none."""
    option, _, value = arg.partition("=")
    if option == f"{BACKBONE}.name":
        return value
    return _name_of(_load(value, Path())) if option == BACKBONE else None


def _name_in(path: str) -> str | None:
    """Return the model that a configuration names, itself or in a file that it refers to."""
    folder = Path(path).parent
    data = _load(_part(_load(path, Path()), "data"), folder)
    return _name_of(_load(_part(_part(data, "init_args") or data, "backbone"), folder))


def _name_of(backbone: Any) -> str | None:  # noqa: ANN401 - what YAML holds
    name = _part(backbone, "name")
    return None if name is None else str(name)


def _part(content: Any, key: str) -> Any:  # noqa: ANN401 - as above
    return content.get(key) if isinstance(content, dict) else None


def _load(value: Any, folder: Path) -> Any:  # noqa: ANN401 - as above
    """Return a value that is YAML or the path of a YAML file; None if it cannot be read, which the parser reports."""
    if not isinstance(value, str):
        return value
    try:
        file = folder / value
        return yaml.safe_load(file.read_text(encoding="utf-8") if file.suffix in (".yaml", ".yml", ".json") else value)
    except (OSError, ValueError, yaml.YAMLError):
        return None
