"""The source task of the embedded default's backbone: drawn objects, none of them a pet or furry animal."""

from __future__ import annotations

import numpy as np
from PIL import Image

from headstart.datamodules.drawings.canvas import Painter, render
from headstart.datamodules.drawings.drawn_animals import ANIMALS
from headstart.datamodules.drawings.drawn_plants import PLANTS
from headstart.datamodules.drawings.drawn_signs import SIGNS
from headstart.datamodules.drawings.drawn_things import THINGS

_PAINTERS: dict[str, Painter] = {**PLANTS, **ANIMALS, **THINGS, **SIGNS}

SOURCE_CLASSES: tuple[str, ...] = tuple(_PAINTERS)

# Sets the source task's random streams apart from those of every other task, whatever their seeds.
_STREAM = 7_331_000


def draw_object(label: int, index: int, seed: int = 0, size: int = 64) -> Image.Image:
    """Draws one object of the source task, by its class's position in `SOURCE_CLASSES`; otherwise as `draw_pet`."""
    rng = np.random.default_rng((_STREAM, seed, index, label))
    return render(_PAINTERS[SOURCE_CLASSES[label]], rng, size)
