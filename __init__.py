"""Headstart: how much of a head start a pre-trained model gives, and which method makes most of it.

What is exported is imported when it is asked for, so that `headstart.metrics` needs no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headstart.output.import_paths import hide_own_names

if TYPE_CHECKING:
    from headstart.datamodules.embedding import embed as embed
    from headstart.train import compare as compare

__version__ = "0.1.0"
_HOMES = {"compare": "headstart.train", "embed": "headstart.datamodules.embedding"}
__all__ = ["__version__", *_HOMES]

hide_own_names()


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever is exported under the name
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
