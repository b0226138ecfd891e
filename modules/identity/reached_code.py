"""All code that a piece of code reaches: the user's own modules, and those of the suite that can change a count."""

import hashlib
import os
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import FunctionType, ModuleType
from zipimport import zipimporter

from headstart.modules.identity.origins import SUITE, Origin, find_module, own_loaded_modules
from headstart.modules.identity.running_code import require_current
from headstart.modules.identity.source_code import SourceCode, parse
from headstart.output.errors import UserError
from headstart.output.files import digest_file

LONGEST_PATH = 1000

# Parts of the suite that change no count: they check, report and store, or their results are part of a key.
WITHOUT_COUNTS = tuple(
    f"{SUITE}.{name}"
    for name in (
        "benchmarks",
        "cli",
        "configs",
        "contract",
        "datamodules.photos",
        "engines",
        "evaluation",
        "modules.identity",
        "modules.memory_errors",
        "modules.method_contract",
        "modules.networks.size_limits",
        "modules.provenance",
        "output",
        "portal",
        "scripts",
        "store",
        "sweeps",
    )
)
# Packages that read options, which are part of a key themselves.
OF_OPTIONS = ("jsonargparse", "PyYAML")
# By the name of a module: the specification by which it was imported, and its source code at that time.
_SOURCES: dict[str, tuple[object, bytes]] = {}


class ReachedCode:
    """Finds the code that modules reach: by imports anywhere in them, and by names in texts where they import by name.

    Attributes:
        own: Digests of the user's own modules by name.
        suite: Digests of the suite's modules by name.
        packages: Versions of the installed packages that these import, by name.
        variables: Names of environment variables that the user's own modules read.
        texts: Texts in the user's own modules, which may name files.
    """

    def __init__(self) -> None:
        self.own: dict[str, str] = {}
        self.suite: dict[str, str] = {}
        self.packages: dict[str, str] = {}
        self.variables: set[str] = set()
        self.texts: set[str] = set()
        self._found: dict[str, set[str]] = {}
        self._folders: set[Path] = {Path()}
        self._looked_for: set[Path] = set()
        self._paths: set[str] = set()

    @property
    def files(self) -> dict[str, str]:
        """Digests of files by the texts that name them, sorted."""
        return {name: " ".join(sorted(digests)) for name, digests in sorted(self._found.items())}

    @property
    def digests(self) -> dict[str, str]:
        """Digests by module, sorted; one for all modules of the suite."""
        suite = {SUITE: hashlib.sha256(repr(sorted(self.suite.items())).encode()).hexdigest()} if self.suite else {}
        return dict(sorted({**self.own, **suite}.items()))

    def add(self, path: str) -> None:
        """Add a module, and all that it reaches.

        Args:
            path: Its path, or that of something in it.

        Raises:
            UserError: A module of the user's own runs other code than its file has, or a file cannot be read.
        """
        if path in self._paths:
            return
        self._paths.add(path)
        for origin, rest in _origins(path):
            if origin.distributions:
                self.packages |= {name: version for name, version in origin.distributions if name not in OF_OPTIONS}
            elif origin.file is not None and origin.name not in (self.suite if origin.is_suite else self.own):
                self._add_module(origin)
            # A lazy package imports the exported name when it is first used.
            home = (
                dict(_parse(origin).exports).get(rest[0])
                if rest and origin.is_package and not origin.distributions
                else None
            )
            if home is not None:
                self.add(home)

    def add_patches(self) -> None:
        """Add the loaded modules of the user's own that assign to what they import, as a monkeypatch does."""
        for name in own_loaded_modules():
            if _changes_others(name):
                self.add(name)

    def add_files(self, paths: Iterable[Path] = ()) -> None:
        """Add the files that texts name, relative to the present folder, that of a module, or one of the given paths.

        Args:
            paths: Paths of files, which are added, and of folders.
        """
        for path in sorted(paths):
            if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises for impossible names
                self._folders.add(path)
            else:
                self._add_file(path.name, path)
        for folder in sorted(self._folders):
            for text in sorted(self.texts):
                if 0 < len(text) < LONGEST_PATH and text.isprintable():
                    self._add_file(text, folder / text)

    def declare(self, file: str, digest: str) -> None:
        """Add a file with a known digest."""
        self._found.setdefault(file, set()).add(digest)

    def _add_file(self, name: str, path: Path) -> None:
        if path in self._looked_for:
            return
        self._looked_for.add(path)
        if not os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises for impossible names
            return
        if path.suffix != ".py":
            self.declare(name, digest_file(path))
            return
        # What a file that is executed imports counts as well.
        code = parse(path.read_bytes(), "")
        self.declare(name, code.digest)
        self._add_reached(code, path.parent)

    def _add_module(self, origin: Origin) -> None:
        code = _parse(origin)
        if origin.is_suite:
            # The packages of the suite only export.
            if not origin.is_package:
                self.suite[origin.name] = code.digest
                self._add_all(path for path in code.imports if not path.startswith(WITHOUT_COUNTS))
            return

        self.own[origin.name] = code.digest
        self._add_reached(code, Path(str(origin.file)).parent)

    def _add_reached(self, code: SourceCode, folder: Path) -> None:
        """Add what code of the user's own reads and imports."""
        self.variables |= {*code.variables, *(name for name in code.possible_variables if name in os.environ)}
        self.texts |= code.texts
        self._folders.add(folder)
        self._add_all(code.imports)
        if code.is_dynamic:
            self._add_all(name for path in sorted(code.imports) for name in _submodules(path))

    def _add_all(self, paths: Iterable[str]) -> None:
        for path in sorted(paths):
            self.add(path)


def reached_by(path: str) -> list[object]:
    """Return digests, versions, values of variables and files that code of the user's own reaches, as JSON values.

    Args:
        path: Path of a class or function.
    """
    code = ReachedCode()
    code.add(path)
    code.add_files()
    variables = {name: os.environ.get(name) for name in sorted(code.variables)}
    return [sorted(code.own.items()), sorted(code.packages.items()), variables, code.files]


def keep_sources() -> None:
    """Keep the present source code of the suite's loaded modules as the code that runs, even if files change later."""
    for name in [each for each in sys.modules if each.partition(".")[0] == SUITE]:
        origin = find_module(name)
        if origin is not None and origin.is_suite and origin.file is not None:
            _source_of(origin)


def _changes_others(name: str) -> bool:
    """Whether a loaded module of the user's own assigns to what it imports, or others hold functions of its own."""
    module = sys.modules[name]
    if type(getattr(module, "__loader__", None)) is not SourceFileLoader:
        # pytest loads tests, whose patches end with them.
        return False
    source = Path(str(module.__file__)).read_bytes()
    code = parse(source, name if hasattr(module, "__path__") else name.rpartition(".")[0])
    imported = [*vars(module).values(), *map(_loaded, code.imports)]
    return code.changes_others or any(_holds(one, name) for one in imported)


def _loaded(path: str) -> object:
    """Return a loaded module, or what one holds under a name; None if there is none."""
    parent, _, last = path.rpartition(".")
    return sys.modules.get(path) or vars(sys.modules.get(parent, object)).get(last)


def _holds(one: object, name: str) -> bool:
    """Whether an object is a class or module of others that holds a function of a module."""
    if not isinstance(one, type | ModuleType):
        return False
    home = one.__module__ if isinstance(one, type) else one.__name__
    if home == name or not any(
        isinstance(each, FunctionType) and each.__globals__.get("__name__") == name for each in vars(one).values()
    ):
        return False
    origin = find_module(home)
    return origin is not None and not origin.is_own


def _origins(path: str) -> Iterator[tuple[Origin, list[str]]]:
    """Return the modules along a path, and the rest of the path after each."""
    names = path.split(".")
    for length in range(1, len(names) + 1):
        origin = find_module(".".join(names[:length]))
        if origin is None:
            return
        yield origin, names[length:]
        if not origin.is_package or origin.distributions:
            return


def _submodules(path: str) -> list[str]:
    """Return the modules of a package of the user's own; none for other paths."""
    origin, rest = next(iter(list(_origins(path))[-1:]), (None, []))
    if origin is None or rest or not (origin.is_package and origin.is_own and origin.file):
        return []
    return [each.name for each in pkgutil.iter_modules([str(origin.file.parent)], f"{path}.")]


def _parse(origin: Origin) -> SourceCode:
    if origin.file is None:
        return SourceCode("")
    package = origin.name if origin.is_package else origin.name.rpartition(".")[0]
    return parse(_source_of(origin), package, origin.is_own)


def _source_of(origin: Origin) -> bytes:
    module = sys.modules.get(origin.name)
    # A module that is reloaded, as in a notebook, gets another specification.
    spec = getattr(module, "__spec__", None)
    known, source = _SOURCES.get(origin.name, (None, b""))
    if not source or module is None or known is not spec:
        file = Path(str(origin.file))
        loader = getattr(module, "__loader__", None)
        try:
            # Code in an archive has no file of its own.
            source = loader.get_data(str(file)) if isinstance(loader, zipimporter) else file.read_bytes()
        except OSError as error:
            raise UserError(
                f"{file} cannot be read ({error.strerror}); the source code of a method is part of its key"
            ) from error
        if origin.is_own:
            require_current(origin, source, module)
        _SOURCES[origin.name] = spec, source
    return source
