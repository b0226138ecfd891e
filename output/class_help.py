"""The help of options that take a class: where its kinds are listed, or their names alone."""

import argparse
import re

from jsonargparse import DefaultHelpFormatter
from jsonargparse._typehints import ActionTypeHint, get_class_types

# Classes whose kinds a command lists.
LISTED = {"Method": "methods", "PhotoSource": "datasets"}
LISTS = "headstart list methods, or datasets, says which there are"
# How a folder is given where a class is needed.
FOLDERS = {
    "PhotoSource": "name its kind, ClassFolders if it holds train/ and validation/, else UnsplitClassFolders, "
    "and give the folder as its root"
}
# A longer list of names does not help.
MOST_NAMED = 20
CLASS = re.compile(r"<class '([\w.]+)'>")


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
