"""Digests of the code that runs, of the suite and of the user, and why they may be of other code than that which ran.

The code is not analysed: all files of the user that ran count, whatever they do.
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
# Folders of the suite whose code can affect a count of correct predictions; `output` only shows and writes.
FOLDERS = ("callbacks", "cli", "contract", "datamodules", "engines", "metrics", "modules", "store")
# Suffixes of its code, and of the tables that the code reads; weights have digests of their own in a key.
SUFFIXES = (".py", ".pyi", ".csv", ".json", ".yaml")
INSTALLED = ("site-packages", "dist-packages")
# Python needs longer than this to import the first module.
START_UP_SECONDS = 0.02


def _process_start() -> float:
    """Return when this process started if the system reports it; otherwise, when this module was imported."""
    with suppress(OSError, ValueError, IndexError):
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        running = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        return time.time() - running + START_UP_SECONDS
    return time.time()


# A file that changed after this time may differ from the code that was imported.
STARTED = _process_start()


# By name of module: its spec, and the digest and the doubt that `_digest` returned.
_digested: dict[str, tuple[ModuleSpec | None, str, str]] = {}


@cache
def suite_digest() -> str:
    """Return one digest of the version of the suite and of all files in `FOLDERS`, as of the first call.

    If the code that runs may differ from these files, the digest is random, so that no other process returns it.
    """
    if suite_doubts():
        return secrets.token_hex()
    contents = {str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest() for path in _suite_files()}
    return digest_of({"version": headstart.__version__, "files": contents})


@cache
def suite_doubts() -> list[str]:
    """Return why the files of the suite may differ from the code that runs, as of the first call."""
    return [f"{path} was changed after Python started; start it again" for path in _suite_files() if _changed(path)]


def user_modules() -> dict[str, str]:
    """Return the SHA-256 of the loaded user modules, and of other user files that ran, by name.

    A user module has a file that is neither in the standard library nor in a folder of installed packages. So modules
    of editable installs are user modules. A digest is computed once for each import. A file that ran, but is no loaded
    module, has its path in angle brackets as its name. A string that a user file ran has an empty digest.
    """
    return {name: sha256 for name, sha256, _ in _digested_code()}


def doubts(objects: Iterable[object]) -> list[str]:
    """Return why the digests may be of other code than that which runs, in sentences without a full stop.

    Args:
        objects: Classes and functions; those of the user may have been typed at a prompt.
    """
    users = filter(is_user_code, objects)
    missing = [f"{name_of(one)} has no source file" for one in users if not _has_file(one.__module__)]
    return missing + [doubt for *_, doubt in _digested_code() if doubt]


def _digested_code() -> Iterator[tuple[str, str, str]]:
    """Yield name, SHA-256 and doubt of all user code that ran: of modules, other files and strings."""
    for name, module, file in _user_files():
        # A module that is reloaded gets another specification.
        if name not in _digested or _digested[name][0] is not module.__spec__:
            _digested[name] = (module.__spec__, *_digest(module, file))
        yield name, *_digested[name][1:]
    for file in _other_files():
        yield f"<{file}>", *_digest(None, file)
    for caller in _callers():
        yield f"<a text that {caller} runs>", "", f"{caller} runs a text, by exec or eval"


def _digest(module: ModuleType | None, file: str) -> tuple[str, str]:
    """Return the SHA-256 of a user file, and why it may differ from the code that ran; empty if there is no doubt.

    Args:
        module: The module of the file; None for a file that is no module.
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
    """Return why user modules may differ from their files: they may be patched at a prompt or in a notebook."""
    is_worker = multiprocessing.parent_process() is not None
    if is_worker or getattr(sys.modules["__main__"], "__file__", None) is not None:
        return []
    return ["what is typed at a prompt or in a notebook may change your modules; run a script"]


def name_of(one: object) -> str:
    """Return the path of a class or a function, or of the class of another object."""
    named = one if hasattr(one, "__qualname__") else type(one)
    return f"{named.__module__}.{named.__qualname__}"


def is_user_code(one: object) -> bool:
    """Return whether a class or a function is code of the user.

    Args:
        one: The class or function.
    """
    name = getattr(one, "__module__", None) or "builtins"
    outermost, _, inner = name.partition(".")
    if outermost == SUITE:
        return _is_test(inner)
    if (file := _file_of(sys.modules.get(name) or sys.modules.get(outermost))) is not None:
        return _is_user_file(file)
    # Built-in modules have no file, and neither has code that was typed in a notebook.
    return outermost not in sys.stdlib_module_names and outermost not in sys.builtin_module_names


def is_user_path(text: str) -> bool:
    """Return whether a text may be the path of an object in a loaded user module.

    Args:
        text: The text, such as `package.module.name` or `module:name`.
    """
    outermost, _, inner = text.replace(":", ".").partition(".")
    if outermost == SUITE:
        return _is_test(inner)
    of_package = [name for name in sys.modules.copy() if name == outermost or name.startswith(f"{outermost}.")]
    return outermost == "__main__" or any(_user_files(of_package))


@cache
def installed_packages() -> str:
    """Return a digest of the names and versions of all installed packages, as of the first call."""
    folders = [Path(path) for path in sys.path if Path(path).name in INSTALLED]
    return digest_of({"installed": sorted({path.name for folder in folders for path in folder.glob("*.dist-info")})})


def _suite_files() -> list[Path]:
    files = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.*"))
    return sorted(path for path in files if path.suffix in SUFFIXES)


def _changed(file: Path) -> bool:
    """Return whether a file has changed since this process started; False for files in an archive."""
    # Unlike the modification time, the change time (ctime) cannot be set.
    return file.is_file() and file.stat().st_ctime > STARTED


def _user_files(names: Collection[str] | None = None) -> Iterator[tuple[str, ModuleType, str]]:
    """Yield name, module and file of the loaded user modules, or of those among some names, sorted by name."""
    loaded = sys.modules.copy()
    # Another thread may have removed some of these names.
    for name in sorted(loaded if names is None else loaded.keys() & names):
        module = loaded[name]
        file, (outermost, _, inner) = _file_of(module), name.partition(".")
        is_candidate = _is_test(inner) if outermost == SUITE else file is not None and _is_user_file(file)
        # In worker processes, multiprocessing loads the script as `__mp_main__`, too.
        if file is not None and is_candidate and not (name == "__mp_main__" and _has_file("__main__")):
            yield ("__main__" if name == "__mp_main__" else name), module, file


def _other_files() -> list[str]:
    """Return the user files that ran, but are no loaded modules: `runpy` ran them, or their modules were removed."""
    files = {file for _, file in executed.copy() if _is_user_path(file)}
    return sorted(files - {file for _, _, file in _user_files()}) if files else []


def _callers() -> list[str]:
    """Return the user files that ran strings, by `exec`, `eval` or functions made by these."""
    return sorted({caller for caller, _ in executed.copy() if _is_user_path(caller)})


def _is_user_path(file: str) -> bool:
    return not file.startswith("<") and _is_user_file(file)


def _is_test(inner: str) -> bool:
    """Return whether a module of the suite is one of its tests, which count as code of the user."""
    return inner.partition(".")[0] == "tests"


def _has_file(name: str) -> bool:
    return _file_of(sys.modules.get(name)) is not None


def _file_of(module: ModuleType | None) -> str | None:
    """Return the absolute path of a module's file; None where there is none, as for built-in modules."""
    file = getattr(module, "__file__", None)
    # torch creates modules whose `__file__` does not exist.
    if getattr(module, "__spec__", None) is None and getattr(module, "__name__", "") not in ("__main__", "__mp_main__"):
        return None
    if module is None or not isinstance(file, str):
        return None
    # pytest names the folder of a namespace package as its file. A script may have no suffix.
    path, has_suffix = _absolute(file)
    return path if has_suffix or module.__name__ == "__main__" else None


# Thousands of loaded modules are searched for each object that a key describes, so results are cached.
@cache
def _absolute(file: str) -> tuple[str, bool]:
    """Return an absolute path, and whether it has a suffix."""
    return os.path.abspath(file), bool(os.path.splitext(file)[1])  # noqa: PTH100, PTH122


@cache
def _is_user_file(file: str) -> bool:
    # Most of thousands of loaded modules are installed. Strings are compared much faster than paths.
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
    """Return whether Python has cached byte code of another version of a file, with the same size and time."""
    loader = module.__loader__
    if type(loader) is not SourceFileLoader:
        return False
    try:
        return loader.get_code(module.__name__) != loader.source_to_code(content, file)
    # The loader of the main script has another name for it than `__main__`, and raises an ImportError.
    except (ImportError, SyntaxError, ValueError, OSError):
        return False
