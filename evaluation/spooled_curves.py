"""Curves whose counts lie in a temporary file, so that those of one setting at a time are in memory."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, fields
from tempfile import TemporaryFile, gettempdir
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.sample_efficiency.curves import Curves
from headstart.output.errors import UserError, reason_of


class _Spool:
    """A field whose arrays lie in a file; the one that was used last is in memory."""

    def __init__(self) -> None:
        # The file has no name, so that it is gone with the process, however that ends.
        self._file: Any = None
        self._last: tuple[object, NDArray[Any]] = None, np.empty(0)

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"_{name}"

    def __set__(self, curves: Curves, array: NDArray[Any]) -> None:
        if array is not self._last[1]:
            narrow = array.astype(np.int16 if array.max(initial=0) < 2**15 else np.int32)
            narrow.flags.writeable = False
            self._last = self._write(narrow), narrow
        object.__setattr__(curves, self._name, self._last[0])

    def _write(self, array: NDArray[Any]) -> tuple[int, tuple[int, ...], np.dtype[Any]]:
        """Write an array; return where it begins, its shape and its type."""
        try:
            self._file = self._file or TemporaryFile()  # noqa: SIM115 - open as long as the process
            start = self._file.seek(0, os.SEEK_END)
            array.tofile(self._file)
        except OSError as error:
            raise UserError(
                f"runs: the traces do not fit into {gettempdir()!r} ({reason_of(error)}); make room, or name another "
                "folder in the environment variable TMPDIR"
            ) from error
        return start, array.shape, array.dtype

    def __get__(self, curves: Curves | None, owner: type) -> Any:  # noqa: ANN401 - an array
        if curves is None:
            raise AttributeError("the field has no default")
        where = getattr(curves, self._name)
        if self._last[0] != where:
            start, shape, dtype = where
            self._file.seek(start)
            array = np.fromfile(self._file, dtype, math.prod(shape)).reshape(shape)
            array.flags.writeable = False
            self._last = where, array
        return self._last[1]


@dataclass(frozen=True)
class SpooledCurves(Curves):  # type: ignore[misc]  # the descriptor is no default
    """Curves whose `correct` is read from a temporary file when it is used; so is that of curves made from them."""

    correct: NDArray[np.signedinteger[Any]] = _Spool()  # type: ignore[assignment]  # a field


def spool(curves: Curves) -> SpooledCurves:
    """Return the same curves with counts in a temporary file.

    Args:
        curves: The curves.
    """
    return SpooledCurves(**{field.name: getattr(curves, field.name) for field in fields(curves)})
