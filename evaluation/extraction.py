"""Options of the computation of embeddings, as the command line shows them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from jsonargparse.typing import NonNegativeInt


@dataclass(frozen=True)
class Extraction:
    """How embeddings are computed.

    Args:
        precision: Arithmetic of the networks; float32 is the contract's.
        device: Where the networks run; `auto` takes a GPU where there is one. Rows that are stored are those of one
            kind of device.
        num_workers: Processes that decode stimuli; null for one per processor.
        cache_dir: Folder that embeddings are kept in; by default that of HEADSTART_CACHE, else one in the user's
            cache directory.
        seed: Seed of models without weights; together with a model's name it gives its random weights.
        allow_modules: Python modules that models of source `custom` may come from; none by default.
    """

    precision: Literal["float32", "bfloat16"] = "float32"
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    num_workers: NonNegativeInt | None = None
    cache_dir: str | None = None
    seed: int = 0
    allow_modules: list[str] = field(default_factory=list)
