"""Whether the code that runs is that of the source files."""

import importlib.util
import inspect
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from headstart.modules.identity.origins import Origin
from headstart.output.errors import UserError


class _ReadOnlyLoader(SourceFileLoader):
    """Reads source and byte code, and writes none: the next look would find what this one wrote."""

    def set_data(self, path: str, data: Any, **_: Any) -> None:  # noqa: ANN401 - as in the base class
        """Do nothing."""


def require_current(origin: Origin, source: bytes, module: ModuleType | None) -> None:
    """Check that a module's source code is the code that runs.

    Python runs stored byte code instead of a file of the same size and time. It runs imported code until the next
    import.

    Args:
        origin: The module's origin.
        source: Content of its file.
        module: The module; None if it is not imported yet.

    Raises:
        UserError: Other code runs.
    """
    loader = _ReadOnlyLoader(origin.name, str(origin.file))
    if module is not None and type(getattr(module, "__loader__", None)) is not SourceFileLoader:
        # Other loaders, such as that of pytest, change the code.
        return
    try:
        code = loader.source_to_code(source, str(origin.file))
    except (SyntaxError, ValueError):
        return
    if loader.get_code(origin.name) != code:
        cached = importlib.util.cache_from_source(str(origin.file))
        raise UserError(
            f"{origin.file}: Python runs the byte code of another version of this file, which has the same size and "
            f"time of change; remove {cached}"
        )
    if module is not None and _differs(module, str(origin.file), code):
        raise UserError(f"{origin.file}: the file was changed after its import; reload it, or start Python again")


def _differs(module: ModuleType, file: str, code: CodeType) -> bool:
    """Whether a function of a module is in no version as it runs in its source code."""
    written = {(each.co_qualname, _essence(each)) for each in _codes(code)}
    for defined in list(vars(module).values()):
        if getattr(defined, "__module__", None) != module.__name__:
            continue
        for member in list(vars(defined).values()) if inspect.isclass(defined) else [defined]:
            function = inspect.unwrap(getattr(member, "__func__", member))
            # Functions from elsewhere, such as those that `dataclass` makes, have another file.
            if isinstance(function, FunctionType) and Path(function.__code__.co_filename) == Path(file):
                own = function.__code__
                if (own.co_qualname, _essence(own)) not in written:
                    return True
    return False


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _essence(code: CodeType) -> tuple[object, ...]:
    """Return what a function's code does, without names of files and numbers of lines."""
    constants = tuple(_essence(each) if isinstance(each, CodeType) else _constant(each) for each in code.co_consts)
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, constants


def _constant(value: object) -> object:
    # The order of a set's values differs; 1, 1.0 and True are equal.
    return value if isinstance(value, frozenset) else repr(value)
