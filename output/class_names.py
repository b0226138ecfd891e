"""Names of classes that options take beside import paths: `LoRA`, `lora`, and `modules.LoRA` as in version 0.1."""

import pkgutil
from typing import Any

from jsonargparse import _actions, _typehints

from headstart.output.import_paths import OWN

# jsonargparse has no hook to resolve names, so its function is replaced.
_resolve = _typehints.resolve_class_path_by_name


def accept_other_names() -> None:
    """Accept the other names in every option that takes a class."""
    for module in (_actions, _typehints):
        module.resolve_class_path_by_name = _resolve_name  # type: ignore[attr-defined]


def _resolve_name(kinds: Any, name: str) -> str:  # noqa: ANN401 - a class or a tuple of them
    """Return the import path of a class by any of its names; an unknown name unchanged."""
    path = _resolve(kinds, name)
    if "." in path:
        return _present_path(path)
    several = kinds if isinstance(kinds, tuple) else (kinds,)
    known = {each for kind in several for each in _typehints.get_all_subclass_paths(kind)}
    fitting = [each for each in known if _plain(each.rpartition(".")[2]) == _plain(name)]
    return fitting[0] if len(fitting) == 1 else path


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _present_path(path: str) -> str:
    """Return the present import path for one of version 0.1, unless the user has a class of that name."""
    if path.partition(".")[0] not in OWN:
        return path
    try:
        pkgutil.resolve_name(path)
    except (ModuleNotFoundError, AttributeError) as error:
        # An error inside the user's own module must not lead to the suite's class of the same name.
        lacking = error.name if isinstance(error, ModuleNotFoundError) else getattr(error.obj, "__name__", None)
        if f"{path}.".startswith(f"{lacking}.") and _exists(f"headstart.{path}"):
            return f"headstart.{path}"
    return path


def _exists(path: str) -> bool:
    try:
        return callable(pkgutil.resolve_name(path))
    except (ImportError, AttributeError):
        return False
