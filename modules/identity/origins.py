"""Where a module comes from: the standard library, an installed package, the suite, or the user."""

import os
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.machinery import ModuleSpec
from pathlib import Path

from headstart.output.import_paths import ROOT

SUITE = __name__.partition(".")[0]
INSTALLED = {"site-packages", "dist-packages"}
# Packages whose modules have another name; a look at all installed packages takes long.
PACKAGES = {"PIL": "pillow", "sklearn": "scikit-learn", "yaml": "pyyaml"}


@dataclass(frozen=True)
class Origin:
    """Where a module comes from.

    Attributes:
        name: Its name.
        file: Its file; None for a namespace package.
        is_package: Whether it is a package.
        distributions: Version by name of the installed packages that it may be part of. Empty if it is part of none, or
            of the suite or its tests, which are identified by their code.
    """

    name: str
    file: Path | None
    is_package: bool
    distributions: tuple[tuple[str, str], ...] = ()

    @property
    def is_suite(self) -> bool:
        """Whether it is part of the suite; its tests are not."""
        outermost, _, inner = self.name.partition(".")
        return outermost == SUITE and inner.partition(".")[0] != "tests"

    @property
    def is_own(self) -> bool:
        """Whether it is the user's own."""
        return not (self.is_suite or self.distributions)


def find_module(name: str) -> Origin | None:
    """Find a module without importing it.

    Args:
        name: Its name.

    Returns:
        Where it comes from; None if there is none, if it is Python's own, or if it has neither file nor folder.
    """
    file, is_package = _locate(name)
    if file is None:
        return Origin(name, None, True) if is_package else None
    # A relative path is another file in another working directory.
    return _origin(name, file if os.path.isabs(file) else os.path.abspath(file), is_package)  # noqa: PTH100, PTH117


def own_loaded_modules() -> list[str]:
    """Return the names of the user's own modules that this process has imported and whose files are there, sorted."""
    # The suite's tests patch for themselves.
    elsewhere, names = (str(_standard_library()), str(ROOT / "tests")), []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or file.startswith(elsewhere) or any(folder in file for folder in INSTALLED):
            continue
        # In processes that a script starts, its module has another name.
        if name != "__mp_main__" and name.partition(".")[0] != SUITE:
            origin = find_module(name)
            if origin is not None and origin.is_own and Path(file).is_file():
                names.append(name)
    return sorted(names)


@cache
def _origin(name: str, path: str, is_package: bool) -> Origin | None:
    """Return where a module with a file comes from; None if it is Python's own."""
    file, outermost = Path(path), name.partition(".")[0]
    if outermost == SUITE:
        return Origin(name, file, is_package)
    if file.is_relative_to(_standard_library()) and INSTALLED.isdisjoint(file.parts):
        return None
    # The folder in which imports look for the outermost package.
    root = file.parents[min(name.count(".") + is_package, len(file.parents) - 1)]
    return Origin(name, file, is_package, _distributions(outermost, root))


def _locate(name: str) -> tuple[str | None, bool]:
    """Return a module's file, None if it has none, and whether it is a package."""
    module = sys.modules.get(name)
    if module is not None:
        file = getattr(module, "__file__", None)
        # pytest names the folder of a namespace package as its file.
        return (file if file and os.path.splitext(file)[1] else None), hasattr(module, "__path__")  # noqa: PTH122
    spec = _find_spec(name)
    if spec is None:
        return None, False
    return (spec.origin if spec.has_location else None), spec.submodule_search_locations is not None


def _find_spec(name: str) -> ModuleSpec | None:
    """Find the specification of a module; `importlib.util.find_spec` would import its parents."""
    parent, _, _ = name.rpartition(".")
    path: Sequence[str] | None = None
    if parent:
        loaded = sys.modules.get(parent)
        above = None if loaded else _find_spec(parent)
        path = above.submodule_search_locations if above else getattr(loaded, "__path__", None)
        if path is None:
            return None
    specs = (finder.find_spec(name, path) for finder in sys.meta_path)
    return next((spec for spec in specs if spec is not None), None)


@cache
def _standard_library() -> Path:
    return Path(sysconfig.get_path("stdlib")).absolute()


@cache
def _distributions(module: str, root: Path) -> tuple[tuple[str, str], ...]:
    """Return name and version of the packages that installed an outermost module in a folder.

    A package that is installed for editing lies elsewhere than its metadata, and is the user's own.
    """
    if not (root.name in INSTALLED or any(root.glob("*.dist-info"))):
        return ()
    direct = _metadata(PACKAGES.get(module, module), root)
    names = [] if direct else _all_packages().get(module, [])
    installed = direct or [each for name in names for each in _metadata(name, root)]
    return tuple(sorted({(each.name, each.version) for each in installed}))


@cache
def _all_packages() -> dict[str, list[str]]:
    return dict(metadata.packages_distributions())


def _metadata(name: str, root: Path) -> list[metadata.Distribution]:
    try:
        distribution = metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError):
        return []
    return [distribution] if Path(str(distribution.locate_file(""))).resolve() == root.resolve() else []
