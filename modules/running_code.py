"""The code that runs: digests of the suite's files and of the user's own modules, and why they may not be what ran.

Nothing is analysed. All files of the user's own that ran count, whatever they do.
"""

import hashlib
import multiprocessing
import os
import secrets
import sys
import sysconfig
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType

import headstart
from headstart.output.executed_code import executed
from headstart.output.import_paths import ROOT, SUITE_NAMES
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


# By names of modules: the specification of the import, and what `_digest` returned of it.
_digested: dict[str, tuple[ModuleSpec | None, str, str]] = {}


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
    """Return the SHA-256 of the user's own modules that are loaded, and of other own files that ran, by their names.

    An own module has a file that is neither in the standard library nor in a folder of installed packages. So those of
    packages that are installed for editing are own modules. A digest is taken once for each import. A file that ran,
    but is no loaded module, has its path in angle brackets as its name. A text that an own file ran has no digest.
    """
    return {name: sha256 for name, sha256, _ in _digested_code()}


def doubts(objects: Iterable[object]) -> list[str]:
    """Return why the digests may not be of the code that runs, in sentences without a full stop.

    Args:
        objects: Classes and functions of the user's own, which may come from nowhere else than a prompt.
    """
    missing = [f"{name_of(one)} has no source file" for one in objects if is_own(one) and not _has_file(one.__module__)]
    return missing + [doubt for *_, doubt in _digested_code() if doubt]


def _digested_code() -> Iterator[tuple[str, str, str]]:
    """Yield name, SHA-256 and doubt of all own code that ran: of modules, other files and texts."""
    for name, module, file in _own_files():
        # A module that is reloaded gets another specification.
        if name not in _digested or _digested[name][0] is not module.__spec__:
            _digested[name] = (module.__spec__, *_digest(module, file))
        yield name, *_digested[name][1:]
    for file in _other_files():
        yield f"<{file}>", *_digest(None, file)
    for caller in _callers():
        yield f"<a text that {caller} runs>", "", f"{caller} runs a text, by exec or eval"


def _digest(module: ModuleType | None, file: str) -> tuple[str, str]:
    """Return the SHA-256 of an own file, and why it may not be what ran; an empty text where nothing speaks for that.

    Args:
        module: The module of the file; None of a file that is no module.
        file: The file.
    """
    content, doubt = _content(module, file), ""
    if content is None:
        doubt = f"{file} cannot be read"
    elif _changed(Path(file)):
        doubt = f"{file} was changed after Python started; start it again"
    elif module is not None and _runs_other_byte_code(module, file, content):
        cached = getattr(module, "__cached__", None)
        doubt = f"Python runs the byte code of another version of {file}; remove {cached}"
    return hashlib.sha256(content or b"").hexdigest(), doubt


def prompt_doubts() -> list[str]:
    """Return why own modules may not be what their files say: somebody may patch them at a prompt or in a notebook."""
    is_worker = multiprocessing.parent_process() is not None
    if is_worker or getattr(sys.modules["__main__"], "__file__", None) is not None:
        return []
    return ["what is typed at a prompt or in a notebook may change own modules; run a script"]


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
    outermost, _, inner = name.partition(".")
    if outermost == SUITE:
        return _is_test(inner)
    if (file := _file_of(sys.modules.get(name) or sys.modules.get(outermost))) is not None:
        return _is_own_file(file)
    # What is built in has no file, and neither has what was typed in a notebook.
    return outermost not in sys.stdlib_module_names and outermost not in sys.builtin_module_names


def names_own(text: str) -> bool:
    """Return whether a text may be the path of something in an own module that is loaded.

    Args:
        text: The text, such as `package.module.name` or `module:name`.
    """
    outermost, _, inner = text.replace(":", ".").partition(".")
    if outermost == SUITE:
        return _is_test(inner)
    of_package = [name for name in sys.modules.copy() if name == outermost or name.startswith(f"{outermost}.")]
    return outermost == "__main__" or any(_own_files(of_package))


@cache
def installed_packages() -> str:
    """Return a digest of the names and versions of all installed packages, as of the first call."""
    folders = [Path(path) for path in sys.path if Path(path).name in INSTALLED]
    return digest_of({"installed": sorted({path.name for folder in folders for path in folder.glob("*.dist-info")})})


def _suite_files() -> list[Path]:
    files = (path for room in ROOMS for path in (ROOT / room).rglob("*.*"))
    return sorted(path for path in files if path.suffix in (".py", ".yaml"))


def _changed(file: Path) -> bool:
    """Return whether a file has changed since this process began; files in an archive have not."""
    # Other than the time of modification, this one cannot be set.
    return file.is_file() and file.stat().st_ctime > STARTED


def _own_files(names: Collection[str] | None = None) -> Iterator[tuple[str, ModuleType, str]]:
    """Yield name, module and file of the own modules that are loaded, or of those of some names, sorted by name."""
    loaded = sys.modules.copy()
    for name in sorted(loaded if names is None else names):
        module = loaded[name]
        file, (outermost, _, inner) = _file_of(module), name.partition(".")
        is_candidate = _is_test(inner) if outermost == SUITE else file is not None and _is_own_file(file)
        # In processes that a script starts, its module has another name as well.
        if file is not None and is_candidate and not (name == "__mp_main__" and _has_file("__main__")):
            yield ("__main__" if name == "__mp_main__" else name), module, file


def _other_files() -> list[str]:
    """Return the own files that ran, but are no loaded module: `runpy` ran them, or a module was not kept."""
    files = {file for _, file in executed.copy() if _is_own_path(file)}
    return sorted(files - {file for _, _, file in _own_files()}) if files else []


def _callers() -> list[str]:
    """Return the own files that ran texts, by `exec`, `eval` or functions made of them."""
    return sorted({caller for caller, _ in executed.copy() if _is_own_path(caller)})


def _is_own_path(file: str) -> bool:
    return not file.startswith("<") and _is_own_file(file)


def _is_test(inner: str) -> bool:
    """Return whether a module of the suite is one of its tests, whose methods are like a user's."""
    return inner.partition(".")[0] == "tests"


def _has_file(name: str) -> bool:
    return _file_of(sys.modules.get(name)) is not None


def _file_of(module: ModuleType | None) -> str | None:
    """Return the absolute path of a module's file; None where there is none, as for built-in modules."""
    file = getattr(module, "__file__", None)
    # Modules that torch makes name files that do not exist.
    if getattr(module, "__spec__", None) is None and getattr(module, "__name__", "") not in ("__main__", "__mp_main__"):
        return None
    if module is None or not isinstance(file, str):
        return None
    # pytest names the folder of a namespace package as its file. A script may have no suffix.
    path, has_suffix = _absolute(file)
    return path if has_suffix or module.__name__ == "__main__" else None


# There are thousands of loaded modules, which are looked through for each object that a key describes.
@cache
def _absolute(file: str) -> tuple[str, bool]:
    """Return an absolute path, and whether it has a suffix."""
    return os.path.abspath(file), bool(os.path.splitext(file)[1])  # noqa: PTH100, PTH122


@cache
def _is_own_file(file: str) -> bool:
    # Of thousands of loaded modules, most are installed: texts are compared much faster than paths.
    is_installed = any(f"{os.sep}{folder}{os.sep}" in file for folder in INSTALLED)
    if is_installed or file.startswith(_python_folders()):
        return False
    path = Path(file)
    is_suite = path.is_relative_to(ROOT) and Path(path.relative_to(ROOT).parts[0]).stem in SUITE_NAMES - {"tests"}
    return not is_suite


@cache
def _python_folders() -> tuple[str, ...]:
    """Return the folders of the standard library and of scripts, each with a separator at its end."""
    names = ("stdlib", "platstdlib", "scripts")
    return tuple(f"{os.path.abspath(sysconfig.get_path(name))}{os.sep}" for name in names)  # noqa: PTH100


def _content(module: ModuleType | None, file: str) -> bytes | None:
    """Return the content of a module's file, which may lie in an archive; None if it cannot be read."""
    with suppress(OSError):
        return Path(file).read_bytes()
    with suppress(OSError, AttributeError):
        return bytes(module.__loader__.get_data(file))  # type: ignore[union-attr]
    return None


def _runs_other_byte_code(module: ModuleType, file: str, content: bytes) -> bool:
    """Return whether Python has stored byte code of another version, which had the same size and time of change."""
    loader = module.__loader__
    if type(loader) is not SourceFileLoader:
        return False
    try:
        return loader.get_code(module.__name__) != loader.source_to_code(content, file)
    # The script that a process runs is loaded by another name.
    except (ImportError, SyntaxError, ValueError, OSError):
        return False
