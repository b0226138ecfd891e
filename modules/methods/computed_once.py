"""Values that are computed once for each tensor of inputs."""

from collections.abc import Callable

from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary


class ComputedOnce(WeakTensorKeyDictionary):
    """Values that do not change while a method learns, by the inputs that they are computed from.

    The same validation samples come after every batch, and computing these values costs more than all the rest.
    """

    def of(self, inputs: Tensor, compute: Callable[[], Tensor]) -> Tensor:
        """Return the value of some inputs, computed where they are new.

        Args:
            inputs: The inputs.
            compute: Computes the value.
        """
        if inputs not in self:
            self[inputs] = compute()
        value: Tensor = self[inputs]
        return value
