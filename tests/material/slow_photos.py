"""Photos that take a moment to decode, and a command that computes their features."""

import time
from pathlib import Path

from PIL import Image

from headstart.datamodules.row_request import ComputeSettings
from headstart.datamodules.rows import find
from headstart.engines.options import EngineOptions
from headstart.tests.material.stored_rows import NumberedPhotos, features_of

# A second of decoding for each part of 64 pictures.
COUNT, SECONDS = 640, 1 / 64


class SlowPhotos(NumberedPhotos):
    """Photos that take a moment to decode."""

    def read(self, index: int) -> Image.Image:
        time.sleep(SECONDS)
        return super().read(index)


def main(cache: str, engine: str, value: str) -> None:
    """Compute all rows in a cache, on an engine that one option of a command chooses."""
    engines = EngineOptions(workers=int(value)) if engine == "workers" else EngineOptions(ray=value)
    find(features_of(SlowPhotos(COUNT)), ComputeSettings(Path(cache), "features", 0, engines=engines))
