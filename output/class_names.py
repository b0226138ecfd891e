"""Names of classes that options take beside import paths: `LoRA`, `lora`, and `modules.LoRA` as in version 0.1."""

from __future__ import annotations

import pkgutil
from typing import Any

from jsonargparse import _actions, _typehints

from headstart.output.import_paths import OWN

# The parser has no place to say how names are resolved, so its function for that is replaced.
_resolve = _typehints.resolve_class_path_by_name


def accept_other_names() -> None:
    """Let every option that takes a class take the other names, too."""
    for module in (_actions, _typehints):
        module.resolve_class_path_by_name = _resolve_name  # type: ignore[attr-defined]


def _resolve_name(kinds: Any, name: str) -> str:  # noqa: ANN401 - a class or a tuple of them
    """Give the import path of a class by any of its names; a name that is none as it is."""
    path = _resolve(kinds, name)
    if "." in path:
        return _of_today(path)
    several = kinds if isinstance(kinds, tuple) else (kinds,)
    known = {each for kind in several for each in _typehints.get_all_subclass_paths(kind)}
    fitting = [each for each in known if _plain(each.rpartition(".")[2]) == _plain(name)]
    return fitting[0] if len(fitting) == 1 else path


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _of_today(path: str) -> str:
    """Give the import path of today for one of version 0.1, unless the user has something of that name."""
    if path.partition(".")[0] not in OWN:
        return path
    try:
        pkgutil.resolve_name(path)
    except (ModuleNotFoundError, AttributeError) as error:
        # What a module of the user's own lacks is no reason to take the suite's in its place.
        lacking = error.name if isinstance(error, ModuleNotFoundError) else getattr(error.obj, "__name__", None)
        if f"{path}.".startswith(f"{lacking}.") and _is_there(f"headstart.{path}"):
            return f"headstart.{path}"
    return path


def _is_there(path: str) -> bool:
    try:
        return callable(pkgutil.resolve_name(path))
    except (ImportError, AttributeError):
        return False
