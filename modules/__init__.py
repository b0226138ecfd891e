"""Backbones, transfer methods and the comparison of methods.

Exported names are imported when they are first used: naming a network needs no torch, training one does.
`__init__.pyi` lists them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
