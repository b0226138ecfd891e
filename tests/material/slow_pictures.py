"""Pictures that take a moment to decode, a request for their features, and a command that computes them."""

import hashlib
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from headstart.datamodules import row_request
from headstart.datamodules.photos.pictures import Pictures
from headstart.datamodules.pieces import compute_missing
from headstart.datamodules.row_policy import Policy, Resources
from headstart.datamodules.row_request import RowRequest
from headstart.engines.options import EngineOptions
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.tests.material.stored_rows import SMALL

COUNT, PIECE, SECONDS = 320, 16, 0.03


class SlowPictures(Pictures):
    """Pictures of noise."""

    def __init__(self) -> None:
        self.names = [str(index) for index in range(COUNT)]

    def read(self, index: int) -> Image.Image:
        time.sleep(SECONDS)
        return Image.fromarray(np.random.default_rng(index).integers(0, 256, (40, 40, 3), np.uint8))

    def digest(self, index: int) -> str:
        return hashlib.sha256(str(index).encode()).hexdigest()


@dataclass
class Size:
    """The size of a piece, in this process and in those that unpickle it."""

    size: int = PIECE

    def __call__(self, side: int, kind: str) -> int:
        return self.size


def slow_request() -> RowRequest:
    """Return a request in pieces of half a second of decoding."""
    setattr(row_request, "piece_size", Size())  # noqa: B010 - it is imported there
    network = BackboneSpec("mobilenet_v2", "random", {"width_mult": 0.25}, SMALL).network(0)
    return RowRequest(SlowPictures(), SMALL, Policy(folded=True, unreadable="remark", device="cpu"), network)


def main(cache: str, engine: str, value: str) -> None:
    """Compute all rows in a cache, on an engine that one option of a command chooses."""
    engines = EngineOptions(workers=int(value)) if engine == "workers" else EngineOptions(ray=value)
    print(compute_missing({"slow": slow_request()}, Resources(Path(cache), "features", 0), engines))
