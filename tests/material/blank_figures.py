"""Files of one pixel in the place of figures: to draw them takes most of a small run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@contextmanager
def blank_figures() -> Iterator[None]:
    """Write blank figures within."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("headstart.output.figures.save", _write_blank)
        yield


def _write_blank(figure: Figure, path: Path, form: str) -> None:
    Image.new("L", (1, 1)).save(path, format="pdf" if form == "pdf" else "png")
