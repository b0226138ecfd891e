"""Headstart: how much of a head start a pre-trained model gives, and which method makes most of it.

Exported names are imported when they are first used, so that `headstart.metrics` needs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headstart.output.executed_code import record_executed_code
from headstart.output.import_paths import hide_own_names
from headstart.output.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from headstart.datamodules.embedding import embed as embed
    from headstart.evaluation.classifiers.folder import load_classifier as load_classifier
    from headstart.train import compare as compare

__version__ = "0.1.0"
EXPORTS, __getattr__ = lazy_exports(__name__)
__all__ = ["__version__", *EXPORTS]

record_executed_code()
hide_own_names()
