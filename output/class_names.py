"""Names of classes that options take beside import paths: `LoRA` and `lora`."""

from typing import Any

from jsonargparse import _actions, _typehints

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
        return path
    several = kinds if isinstance(kinds, tuple) else (kinds,)
    known = {each for kind in several for each in _typehints.get_all_subclass_paths(kind)}
    fitting = [each for each in known if _plain(each.rpartition(".")[2]) == _plain(name)]
    return fitting[0] if len(fitting) == 1 else path


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
