"""The type of seeds, among the types of options."""

from typing import TYPE_CHECKING

from jsonargparse.typing import restricted_number_type

if TYPE_CHECKING:
    Seed = int
else:
    # NumPy's old generators, which Lightning seeds beside PyTorch's, take no larger ones.
    Seed = restricted_number_type("Seed", int, [(">=", 0), ("<", 2**32)])
    # A process that reads a pickled seed imports this module first.
    Seed.__module__ = __name__
