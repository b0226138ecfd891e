"""Options that take a class: the names that they accept beside import paths, their help, and what is wrong."""

import argparse
import difflib
import inspect
import pkgutil
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jsonargparse import DefaultHelpFormatter, _actions, _typehints
from jsonargparse._typehints import ActionTypeHint, get_all_subclass_paths, get_class_types

from headstart.output.errors import reason_of

# Classes whose kinds a command lists.
LISTED = {"Method": "methods", "PhotoSource": "datasets"}
LISTS = "headstart list methods, or datasets, says which there are"
# How a folder or a table is given where a class is needed.
PATHS = {
    "PhotoSource": "name its kind, ClassFolders if it holds train/ and validation/, else UnsplitClassFolders, or "
    "CsvPhotos for a table, and give the path as its root or file"
}
# A longer list of names does not help.
MOST_NAMED = 20
CLASS = re.compile(r"<class '([\w.]+)'>")
# jsonargparse has no hook to resolve names, so its function is replaced.
_resolve = _typehints.resolve_class_path_by_name


class ClassHelp(DefaultHelpFormatter):
    """Leaves out the dozens of import paths that an option takes."""

    def _get_help_string(self, action: argparse.Action) -> str:
        text: str = super()._get_help_string(action)
        if not isinstance(action, ActionTypeHint):
            return text
        known: str = action.extra_help()  # type: ignore[no-untyped-call]
        return text.replace(known, _kinds(action, known)) if known else text

    def _get_type_str(self, action: argparse.Action) -> str | None:
        text: str | None = super()._get_type_str(action)
        return None if text is None else CLASS.sub(r"\1", text)


def _kinds(action: ActionTypeHint, known: str) -> str:
    """Return the known classes that an option takes, without those of its annotation, which are base classes."""
    bases = [base.__name__ for base in get_class_types(action._typehint)]
    if lists := [LISTED[base] for base in bases if base in LISTED]:
        return f"; headstart list {lists[0]}"
    names = [path.rpartition(".")[2] for path in known.partition(": ")[2].split(", ")]
    names = [name for name in names if name not in bases]
    return f", one of {', '.join(names)}" if len(names) <= MOST_NAMED else ""


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
    paths = {each for kind in several for each in _typehints.get_all_subclass_paths(kind)}
    fitting = [each for each in paths if _plain(each.rpartition(".")[2]) == _plain(name)]
    return fitting[0] if len(fitting) == 1 else path


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def missing_file(value: str) -> str:
    """Return that there is no file of options, if a value names one; else an empty text."""
    is_missing = Path(value).suffix in (".yaml", ".yml", ".json") and not Path(value).expanduser().exists()
    return f"there is no file {value}" if is_missing else ""


def class_mistake(value: str, bases: Sequence[type], is_needed: bool) -> str:
    """Return why an option cannot take a value as a class; empty if the value does not look like one.

    Args:
        value: The value.
        bases: The kinds of classes that the option takes.
        is_needed: Whether it takes nothing else.
    """
    if missing := missing_file(value):
        return missing
    if re.fullmatch(r"\w+(\.\w+)+", value) and not Path(value).is_file():
        return _path_mistake(value, bases[-1])
    hint = next((PATHS[base.__name__] for base in bases if base.__name__ in PATHS), "")
    if hint and Path(value).expanduser().exists():
        return f"{value} is a {'folder' if Path(value).expanduser().is_dir() else 'file'}; {hint}"
    if is_needed and value.isidentifier() and value not in ("null", "true", "false"):
        return f"there is no {' or '.join(base.__name__ for base in bases)} {value!r}{suggest_class(value, bases)}"
    return ""


def _path_mistake(path: str, base: type) -> str:
    """Return why an option cannot take the class or function of an import path."""
    try:
        target = pkgutil.resolve_name(path)
    except Exception as error:
        # A module of the user's may raise anything while it is imported.
        return f"{path} cannot be imported: {reason_of(error)}{suggest_class(path)}"
    if isinstance(target, type) and issubclass(target, base):
        return f"{path} is abstract; {PATHS.get(base.__name__, 'name a class of its kind')}"
    return f"{path} is no {base.__name__}; name one, or a function that is annotated with -> {base.__name__}"


def suggest_class(path: str, bases: Sequence[type] = ()) -> str:
    """Return a hint at the class of the suite, or of these kinds, with the closest name; empty if there is none."""
    paths = {subclass.rpartition(".")[2]: subclass for base in bases for subclass in get_all_subclass_paths(base)}
    packages = [package for name, package in sys.modules.items() if re.fullmatch(r"headstart\.\w+", name)]
    paths |= {name: f"{package.__name__}.{name}" for package in packages for name in getattr(package, "__all__", [])}
    close = difflib.get_close_matches(path.rpartition(".")[2], paths, n=1)
    is_usable = close and not inspect.isabstract(pkgutil.resolve_name(paths[close[0]]))
    return f" (closest: {paths[close[0]]})" if is_usable else ""
