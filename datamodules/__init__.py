"""Data: photos, the stream of frozen features and the stream of photos.

Exported names are imported when they are first used: naming a data set needs no torch, feeding a stream does.
`__init__.pyi` lists them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
