"""The code that runs: digests of the suite's files and of the user's own modules, and why they may not be what ran.

Nothing is analysed. All own modules that are loaded count, whatever they do.
"""

import hashlib
import os
import secrets
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType

import headstart
from headstart.output.import_paths import OWN, ROOT
from headstart.store.json_digest import digest_of

SUITE = "headstart"
# The rooms of the suite whose code can touch a count; `output` only shows and writes.
ROOMS = ("callbacks", "cli", "contract", "datamodules", "engines", "metrics", "modules", "store")
INSTALLED = ("site-packages", "dist-packages")
# Python needs longer than this to import the first module.
START_UP_SECONDS = 0.02


def _process_start() -> float:
    """Return when this process began, where the system says so; else when this module was imported."""
    with suppress(OSError, ValueError, IndexError):
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        running = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        return time.time() - running + START_UP_SECONDS
    return time.time()


# A file that changed after this may differ from what was imported.
STARTED = _process_start()


class _Digested:
    """A module's file as it was when it was first digested.

    Args:
        module: The module.
        file: Its file.
    """

    def __init__(self, module: ModuleType, file: str) -> None:
        self.spec = module.__spec__
        self.sha256 = self.doubt = ""
        try:
            self.sha256 = hashlib.sha256(Path(file).read_bytes()).hexdigest()
        # Such as a file in an archive.
        except OSError:
            self.doubt = f"{file} cannot be read"
        if _changed(Path(file)):
            self.doubt = f"{file} was changed after Python started; start it again"


_digested: dict[str, _Digested] = {}


@cache
def suite_digest() -> str:
    """Return one digest of the suite's version, and of its files that can touch a count, as of the first call.

    Where other code may run than these files hold, no other process returns the same.
    """
    if suite_doubts():
        return secrets.token_hex()
    contents = {str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest() for path in _suite_files()}
    return digest_of({"version": headstart.__version__, "files": contents})


@cache
def suite_doubts() -> list[str]:
    """Return why the digest of the suite may not be of the code that runs, as of the first call."""
    return [f"{path} was changed after Python started; start it again" for path in _suite_files() if _changed(path)]


def own_modules() -> dict[str, str]:
    """Return the SHA-256 of the user's own modules that are loaded, by their sorted names.

    An own module has a file that is neither in the standard library nor in a folder of installed packages. So those of
    packages that are installed for editing are own modules. A digest is taken once for each import.
    """
    return {name: _digest(name, module, file).sha256 for name, module, file in _own_files()}


def doubts(objects: Iterable[object]) -> list[str]:
    """Return why the digests may not be of the code that runs, in sentences without a full stop.

    Args:
        objects: Classes and functions of the user's own, which may come from nowhere else than a prompt.
    """
    typed = [one for one in objects if is_own(one) and not _has_file(one.__module__)]
    reasons = [f"{name_of(one)} has no source file" for one in typed]
    reasons += [doubt for name, module, file in _own_files() if (doubt := _digest(name, module, file).doubt)]
    return list(dict.fromkeys(reasons))


def name_of(one: object) -> str:
    """Return the path of a class or a function, or of the class of another object."""
    named = one if hasattr(one, "__qualname__") else type(one)
    return f"{named.__module__}.{named.__qualname__}"


def is_own(one: object) -> bool:
    """Return whether a class or a function is the user's own.

    Args:
        one: The class or function.
    """
    name = getattr(one, "__module__", None) or "builtins"
    outermost = name.partition(".")[0]
    if (file := _file_of(sys.modules.get(name) or sys.modules.get(outermost))) is not None:
        return _is_own_file(file)
    # What is built in has no file, and neither has what was typed in a notebook.
    return outermost not in sys.stdlib_module_names and outermost not in sys.builtin_module_names


def names_own(text: str) -> bool:
    """Return whether a text may be the path of something in an own module that is loaded.

    Args:
        text: The text, such as `package.module.name` or `module:name`.
    """
    path = f"{text.replace(':', '.')}."
    return any(path.startswith(f"{name}.") for name in ("__main__", *(name for name, _, _ in _own_files())))


@cache
def installed_packages() -> str:
    """Return a digest of the names and versions of all installed packages, as of the first call."""
    folders = [Path(path) for path in sys.path if Path(path).name in INSTALLED]
    return digest_of({"installed": sorted({path.name for folder in folders for path in folder.glob("*.dist-info")})})


def _suite_files() -> list[Path]:
    return sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def _changed(file: Path) -> bool:
    """Return whether a file has changed since this process began."""
    # Other than the time of modification, this one cannot be set.
    return file.is_file() and file.stat().st_ctime > STARTED


def _own_files() -> Iterator[tuple[str, ModuleType, str]]:
    """Yield name, module and file of the own modules that are loaded, sorted by name."""
    for name, module in sorted(sys.modules.items()):
        file = _file_of(module)
        # In processes that a script starts, its module has another name as well.
        if file is not None and _is_own_file(file) and not (name == "__mp_main__" and _has_file("__main__")):
            yield ("__main__" if name == "__mp_main__" else name), module, file


def _digest(name: str, module: ModuleType, file: str) -> _Digested:
    # A module that is reloaded gets another specification.
    if name not in _digested or _digested[name].spec is not module.__spec__:
        _digested[name] = _Digested(module, file)
    return _digested[name]


def _has_file(name: str) -> bool:
    return _file_of(sys.modules.get(name)) is not None


def _file_of(module: ModuleType | None) -> str | None:
    """Return the absolute path of a module's file; None where there is none, as for built-in modules."""
    file = getattr(module, "__file__", None)
    # Modules that torch makes name files that do not exist.
    if getattr(module, "__spec__", None) is None and getattr(module, "__name__", "") not in ("__main__", "__mp_main__"):
        return None
    # pytest names the folder of a namespace package as its file.
    return os.path.abspath(file) if isinstance(file, str) and os.path.splitext(file)[1] else None  # noqa: PTH100, PTH122


@cache
def _is_own_file(file: str) -> bool:
    # Of thousands of loaded modules, most are installed: texts are compared much faster than paths.
    is_installed = any(f"{os.sep}{folder}{os.sep}" in file for folder in INSTALLED)
    if is_installed or file.startswith(_python_folders()):
        return False
    path = Path(file)
    is_suite = path.is_relative_to(ROOT) and Path(path.relative_to(ROOT).parts[0]).stem in OWN - {"tests"}
    return not is_suite


@cache
def _python_folders() -> tuple[str, ...]:
    """Return the folders of the standard library and of scripts, each with a separator at its end."""
    names = ("stdlib", "platstdlib", "scripts")
    return tuple(f"{os.path.abspath(sysconfig.get_path(name))}{os.sep}" for name in names)  # noqa: PTH100
