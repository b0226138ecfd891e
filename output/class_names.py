"""Names of classes that options take beside import paths: `LoRA`, `lora`, and `modules.LoRA` of version 0.1."""

from __future__ import annotations

import inspect
import pkgutil
from typing import Any

from jsonargparse import _actions, _typehints

from headstart.output.import_paths import OWN

# The parser has no place to say how names are resolved, so its two functions for that are replaced.
_resolve, _import = _typehints.resolve_class_path_by_name, _typehints.import_object  # type: ignore[attr-defined]


def accept_other_names() -> None:
    """Let every option that takes a class take the other names, too."""
    for module in (_actions, _typehints):
        module.resolve_class_path_by_name = _resolve_name  # type: ignore[attr-defined]
        module.import_object = _import_class  # type: ignore[attr-defined]


def _resolve_name(kinds: Any, name: str) -> str:  # noqa: ANN401 - a class or a tuple of them
    """Give the import path of a subclass by its name, or by its name in lower case with underscores."""
    path = _resolve(kinds, name)
    if "." in path:
        return path
    known = {each for kind in _as_tuple(kinds) for each in _typehints.get_all_subclass_paths(kind)}
    fitting = [each for each in sorted(known) if _plain(each.rpartition(".")[2]) == _plain(name)]
    return fitting[0] if len(fitting) == 1 else path


def _as_tuple(kinds: Any) -> tuple[Any, ...]:  # noqa: ANN401 - as above
    return kinds if isinstance(kinds, tuple) else (kinds,)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _import_class(name: str, *options: Any, **more: Any) -> Any:  # noqa: ANN401 - whatever a path leads to
    """Import what a path leads to; the suite's own by the paths of version 0.1, unless the user has it, too."""
    try:
        return _import(name, *options, **more)
    except (ModuleNotFoundError, AttributeError) as error:
        if name.partition(".")[0] not in OWN or not _is_about(error, name):
            raise
        try:
            found = pkgutil.resolve_name(f"headstart.{name}")
        except (ImportError, AttributeError):
            raise error from None
        if inspect.ismodule(found):
            raise
        return found


def _is_about(error: ModuleNotFoundError | AttributeError, path: str) -> bool:
    """Tell whether it is the path that leads nowhere, not something that the user's own module needs."""
    module = error.name if isinstance(error, ModuleNotFoundError) else getattr(error.obj, "__name__", None)
    return f"{path}.".startswith(f"{module}.")
