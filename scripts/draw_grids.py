"""Draws the labelled sample grids of the embedded default's two tasks for the documentation.

python -m scripts.draw_grids
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jsonargparse import auto_cli
from PIL import Image, ImageDraw

from datamodules.drawings.drawn_objects import SOURCE_CLASSES, draw_object
from datamodules.drawings.drawn_pets import PET_CLASSES, draw_pet

IMAGES = Path(__file__).parents[1] / "docs" / "images"
_GAP = 4
_CAPTION = 14


def tile(rows: Sequence[Sequence[Image.Image]], captions: Sequence[Sequence[str]]) -> Image.Image:
    """Lays rows of pictures of one size out, each picture with its caption below, on a white ground.

    The palette has 256 colours, because noise hardly compresses otherwise.
    """
    size = rows[0][0].width
    across, down = size + _GAP, size + _GAP + _CAPTION
    sheet = Image.new("RGB", (len(rows[0]) * across + _GAP, len(rows) * down + _GAP), "white")
    pen = ImageDraw.Draw(sheet)
    for y, (pictures, texts) in enumerate(zip(rows, captions, strict=True)):
        for x, (picture, text) in enumerate(zip(pictures, texts, strict=True)):
            left, top = _GAP + x * across, _GAP + y * down
            sheet.paste(picture, (left, top))
            pen.text((left + size // 2, top + size + 1), text, fill="black", anchor="ma", font_size=10)
    return sheet.quantize(256, dither=Image.Dither.NONE)


def draw_grids(output: Path = IMAGES, columns: int = 10, size: int = 64, seed: int = 0) -> None:
    """Writes `drawn_pets.png` (cats above, dogs below) and `drawn_objects.png` (one drawing per class).

    Args:
        output: The folder that the two pictures are written to.
        columns: Drawings per row.
        size: Width and height of each drawing in pixels.
        seed: The family of drawings shown.
    """
    output.mkdir(parents=True, exist_ok=True)
    labels = (0, 0, 1, 1)
    pets = [
        [draw_pet(label, row * columns + i, seed, size) for i in range(columns)] for row, label in enumerate(labels)
    ]
    tile(pets, [[PET_CLASSES[label]] * columns for label in labels]).save(output / "drawn_pets.png", optimize=True)

    blank = Image.new("RGB", (size, size), "white")
    missing = -len(SOURCE_CLASSES) % columns
    objects = [draw_object(label, 0, seed, size) for label in range(len(SOURCE_CLASSES))] + [blank] * missing
    names = [*SOURCE_CLASSES, *[""] * missing]
    rows = [slice(start, start + columns) for start in range(0, len(objects), columns)]
    tile([objects[row] for row in rows], [names[row] for row in rows]).save(output / "drawn_objects.png", optimize=True)


if __name__ == "__main__":
    auto_cli(draw_grids, as_positional=False)
