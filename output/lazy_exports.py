"""Names that a package exports, each imported when it is first used."""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_exports(package: str) -> tuple[dict[str, str], Callable[[str], Any]]:
    """Return what a package exports, and a `__getattr__` that imports it.

    The exported names are those that the package's own file imports under `if TYPE_CHECKING`. Type checkers and the
    interpreter thus read the same list.

    Args:
        package: Name of the package, its `__name__`.

    Returns:
        The module that defines each name, sorted by name; the package's `__getattr__`.
    """
    source = Path(str(sys.modules[package].__file__)).read_text(encoding="utf-8")
    blocks = [node.body for node in ast.parse(source).body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block if isinstance(node, ast.ImportFrom)]
    homes = dict(sorted((alias.name, str(node.module)) for node in imports for alias in node.names))

    def import_export(name: str) -> Any:  # noqa: ANN401 - whatever is exported under the name
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return homes, import_export
