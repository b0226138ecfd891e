"""Headstart: how much of a head start a pre-trained model gives, and which method makes most of it.

Exported names are imported when they are first used, so that `headstart.metrics` needs no torch. `__init__.pyi` lists
them.
"""

import lazy_loader

from headstart.output.executed_code import record_executed_code
from headstart.output.import_paths import hide_own_names

__version__ = "0.1.0"

record_executed_code()
hide_own_names()

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ = ["__version__", *__all__]
