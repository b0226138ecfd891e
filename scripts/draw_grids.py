"""Draw the labelled sample grids of the embedded default's two tasks for the documentation.

python -m headstart.scripts.draw_grids
"""

import math
from collections.abc import Sequence
from pathlib import Path

from jsonargparse import auto_cli
from PIL import Image, ImageDraw

from headstart.datamodules.drawings.drawn_objects import SOURCE_CLASSES, draw_object
from headstart.datamodules.drawings.drawn_pets import PET_CLASSES, draw_pet

IMAGES = Path(__file__).parents[1] / "docs" / "images"
_COLUMNS = 10
_GAP = 4
_CAPTION = 14


def tile(drawings: Sequence[tuple[Image.Image, str]]) -> Image.Image:
    """Return one picture of equally large pictures in rows, each with its caption below, on a white ground.

    The palette has 256 colours, because noise hardly compresses otherwise.
    """
    size = drawings[0][0].width
    across, down = size + _GAP, size + _GAP + _CAPTION
    sheet = Image.new("RGB", (_COLUMNS * across + _GAP, math.ceil(len(drawings) / _COLUMNS) * down + _GAP), "white")
    pen = ImageDraw.Draw(sheet)
    for position, (picture, text) in enumerate(drawings):
        row, column = divmod(position, _COLUMNS)
        left, top = _GAP + column * across, _GAP + row * down
        sheet.paste(picture, (left, top))
        pen.text((left + size // 2, top + size + 1), text, fill="black", anchor="ma", font_size=10)
    return sheet.quantize(256, dither=Image.Dither.NONE)


def draw_grids(output: Path = IMAGES) -> None:
    """Write `drawn_pets.png` (cats above, dogs below) and `drawn_objects.png` (one drawing per class).

    Args:
        output: The folder that the two pictures are written to.
    """
    output.mkdir(parents=True, exist_ok=True)
    labels = [label for label in (0, 1) for _ in range(2 * _COLUMNS)]
    pets = [(draw_pet(label, index), PET_CLASSES[label]) for index, label in enumerate(labels)]
    objects = [(draw_object(label, 0), name) for label, name in enumerate(SOURCE_CLASSES)]
    for name, drawings in (("drawn_pets", pets), ("drawn_objects", objects)):
        tile(drawings).save(output / f"{name}.png", optimize=True)


if __name__ == "__main__":
    auto_cli(draw_grids, as_positional=False)
