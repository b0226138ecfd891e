"""Files of one pixel in the place of figures: to draw them takes a fifth of a small run."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image

PLOTS = ("plot_learning_curves", "plot_criterion_reached")


@contextmanager
def blank_figures() -> Iterator[None]:
    """Draw nothing within, and write blank figures."""
    with pytest.MonkeyPatch.context() as patched:
        for name in PLOTS:
            patched.setattr(f"headstart.callbacks.plots.{name}", lambda *_: None)
        patched.setattr("headstart.output.figures.save", _write_blank)
        yield


def _write_blank(figure: object, path: Path, form: str) -> None:
    Image.new("L", (1, 1)).save(path, format="pdf" if form == "pdf" else "png")
