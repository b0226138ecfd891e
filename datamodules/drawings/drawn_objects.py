"""The source task of the embedded default's backbone: drawn objects, none of them a pet or furry animal."""

from functools import partial
from pathlib import Path

import numpy as np
import yaml
from PIL import Image

from headstart.datamodules.drawings.canvas import Painter, render
from headstart.datamodules.drawings.tables import paint_table

_TABLES = [Path(__file__).parent / "objects" / f"{group}.yaml" for group in ("plants", "animals", "things", "signs")]
PAINTERS: dict[str, Painter] = {
    name: partial(paint_table, steps) for path in _TABLES for name, steps in yaml.safe_load(path.read_text()).items()
}
SOURCE_CLASSES: tuple[str, ...] = tuple(PAINTERS)

# Separates the source task's random streams from those of every other task, whatever their seeds.
_STREAM = 7_331_000


def draw_object(label: int, index: int, seed: int = 0, size: int = 64) -> Image.Image:
    """Draw one object of the source task, by the index of its class in `SOURCE_CLASSES`; otherwise as `draw_pet`."""
    rng = np.random.default_rng((_STREAM, seed, index, label))
    return render(PAINTERS[SOURCE_CLASSES[label]], rng, size)
