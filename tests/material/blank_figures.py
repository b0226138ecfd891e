"""Files of one pixel in the place of figures: to draw them takes most of a small run."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from PIL import Image


@contextmanager
def blank_figures() -> Iterator[None]:
    """Write blank figures within."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("headstart.output.figures.save", _write_blank)
        yield


def _write_blank(figure: Figure, path: Path, form: str) -> None:
    Image.new("L", (1, 1)).save(path, format="pdf" if form == "pdf" else "png")
