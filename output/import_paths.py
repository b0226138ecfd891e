"""Import paths: the user's names never lead to files of the suite, nor the suite's to files of the user."""

import sys
from importlib import machinery
from importlib.machinery import FileFinder, ModuleSpec
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
# Names of the files and folders of the suite; a checkout may have others of the user's beside them.
NAMES = frozenset(
    {
        "__init__",
        "__main__",
        "benchmarks",
        "callbacks",
        "cli",
        "contract",
        "datamodules",
        "engines",
        "estimators",
        "evaluate",
        "evaluation",
        "metrics",
        "modules",
        "output",
        "portal",
        "scripts",
        "store",
        "sweep",
        "sweeps",
        "tests",
        "train",
    }
)


class _OwnFolder(FileFinder):
    """Finds the suite's files in a folder as parts of `headstart` alone, and other files as usual."""

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find a module; None for a file of the suite by any other name than `headstart.…`."""
        hidden = not fullname.startswith("headstart.") and (Path(self.path) != ROOT or fullname in NAMES)
        return None if hidden else super().find_spec(fullname)


def hide_own_names() -> None:
    """Hide the suite's folders from plain imports: `import evaluate` finds the user's or an installed package.

    So no module of the suite is ever loaded twice, as `modules.method` and as `headstart.modules.method`.
    """
    if _find_own_folder in sys.path_hooks:
        return
    sys.path_hooks.insert(0, _find_own_folder)
    for path in [*sys.path_importer_cache]:
        if _is_own(path):
            del sys.path_importer_cache[path]


def _find_own_folder(path: str) -> _OwnFolder:
    if not (_is_own(path) and Path(path).is_dir()):
        # Python asks the next hook then.
        raise ImportError(path)
    folder = str(Path(path).resolve())
    compiled = machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES
    return _OwnFolder(folder, compiled, (machinery.SourceFileLoader, machinery.SOURCE_SUFFIXES))


def _is_own(path: str) -> bool:
    target = Path(path).resolve()
    return target == ROOT or (target.is_relative_to(ROOT) and Path(target.relative_to(ROOT).parts[0]).stem in NAMES)


# The working folder that was added to the import path.
_ADDED: list[str] = []


def import_from_working_folder() -> None:
    """Add the working folder to the end of the import path, after libraries, for modules of the user's own.

    It is added by its name: an empty name would mean another folder while a configuration elsewhere is read, whose
    paths are relative to it. Where Python itself imports from there, as in a notebook, the order is Python's.
    """
    if "" not in sys.path:
        # Python begins with the folder of the script, and after `-m` with the working folder.
        script = getattr(sys.modules["__main__"], "__file__", None) or ""
        first = Path.cwd() if Path(script).resolve() == ROOT / "__main__.py" else Path(script).parent
        if _is_own(script) and sys.path and Path(sys.path[0]) == first:
            del sys.path[0]

    # A process may change its folder between two commands.
    sys.path[:] = [path for path in sys.path if path not in _ADDED]
    _ADDED[:] = [str(Path.cwd())]
    sys.path += _ADDED
