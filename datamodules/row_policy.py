"""In what way and by what means rows are computed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True)
class Policy:
    """In what two ways to the rows of the same pictures may differ; rows of one policy are never taken for another's.

    Attributes:
        precision: Arithmetic of the network.
        folded: Whether every batch norm is folded into the convolution before it, for speed. The network then has no
            layers left to take embeddings at: its rows are what enters its classifier.
        unreadable: What becomes of a picture that cannot be decoded: it is refused, or has the row of a black one and
            is remarked upon.
    """

    precision: Precision = "float32"
    folded: bool = False
    unreadable: Literal["refuse", "remark"] = "refuse"


@dataclass(frozen=True)
class Means:
    """By what means rows are computed and kept, which is nothing that they depend on.

    Attributes:
        cache: The cache folder.
        title: What the progress says.
        workers: Processes that decode; None for one per processor.
        device: Where a network runs that is loaded for it, `auto` for a GPU where there is one. Rows of one table come
            from one kind of device and one version of torch: newly computed ones of another replace the older ones.
    """

    cache: Path
    title: str
    workers: int | None = None
    device: str = "auto"
