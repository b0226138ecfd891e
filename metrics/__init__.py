"""Pure functions: the criterion and its curves, the alignment of embeddings, transferability, and rankings.

Exported names are imported when they are first used. The functions take numpy arrays and need no torch. The
torchmetrics classes (`LinearCKA`, `GBC`, `HScore`, `LEEP`, `LogME`) take batches of tensors and need it.
`__init__.pyi` lists all names.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
