"""Files that options name, themselves or in the configurations that they name."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from headstart.output.home import expand_home
from headstart.output.usage import configs_of
from headstart.store.file_digests import state_of

# Endings of files whose texts may name further ones.
CONFIGURATIONS = (".yaml", ".yml", ".json")


def named_files(options: Sequence[str]) -> dict[str, str]:
    """Return the states of all files that options may name, by path; empty states of those that do not exist.

    Any text that could be a path in the working folder or beside its configuration counts, so that a file that appears
    there later is noticed. Folders are left out.

    Args:
        options: The options of `headstart train`.
    """
    configs = {str(expand_home(path)) for path in configs_of(options)}
    values = [option.partition("=")[2] or option for option in options]
    pending = [(Path(), text) for value in values for text in (value, *_texts(_parse(value, "")))]
    states: dict[str, str] = {}
    while pending:
        folder, text = pending.pop()
        for path in {str(expand_home(text)), str(folder / expand_home(text))} - states.keys():
            states[path] = "" if os.path.isdir(path) else state_of(path)  # noqa: PTH112 - False for impossible names
            if states[path] and (path in configs or path.endswith(CONFIGURATIONS)):
                pending += [(Path(path).parent, each) for each in _texts(_read(Path(path)))]
    return states


def _read(path: Path) -> Any:  # noqa: ANN401 - whatever YAML holds
    try:
        return _parse(path.read_text(encoding="utf-8"), path.suffix)
    except (OSError, UnicodeDecodeError):
        return None


def _parse(text: str, suffix: str) -> Any:  # noqa: ANN401 - whatever YAML holds
    """Return the values in a text; None if it has none, which the parser of the options then reports."""
    try:
        # YAML takes long for a large registry.
        return json.loads(text) if suffix == ".json" else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError, RecursionError):
        return None


def _texts(value: object) -> Iterator[str]:
    """Yield all texts of one line in values, which may contain themselves."""
    pending, seen = [value], set[int]()
    while pending:
        each = pending.pop()
        if isinstance(each, str) and "\n" not in each:
            yield each
        elif isinstance(each, Mapping | list) and id(each) not in seen:
            seen.add(id(each))
            pending += each.values() if isinstance(each, Mapping) else each
