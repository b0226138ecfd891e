"""What passes one side of a layer in a forward pass, read by hooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from headstart.modules.networks.embedding_strategy import InapplicableError, Prefix, embed
from headstart.modules.networks.taps import Strategy


@dataclass
class Record:
    """What one forward pass gives at one side of a layer.

    Args:
        path: Module path of the layer.
        side: Whether what leaves the layer is read, or what enters it.
        strategy: How it becomes one row per photo; None for the shape's usual one.
        width: Expected columns, None for any.
        prefix: What the network puts before patch tokens.
        photos: Number of photos in the pass.

    Attributes:
        calls: How often the layer was called.
        shape: Shape of the first tensor of its first call.
        rows: Its embedding, float32 `[photos, columns]`, None where there is none.
        problem: Why there is none.
    """

    path: str
    side: Literal["output", "input"]
    strategy: Strategy | None
    width: int | None
    prefix: Prefix
    photos: int = 1
    calls: int = field(default=0, init=False)
    shape: str = field(default="no tensor", init=False)
    rows: Tensor | None = field(default=None, init=False)
    problem: str = field(default="", init=False)

    def take(self, given: object) -> None:
        """Embed what a call of the layer gave; of several tensors the first."""
        self.calls += 1
        if self.calls > 1:
            return
        parts = given if isinstance(given, tuple | list) else [given]
        values = next((part for part in parts if isinstance(part, Tensor)), None)
        if values is None:
            return
        batch, *others = values.shape or (0,)
        self.shape = f"[{', '.join(map(str, ['n' if batch == self.photos else batch, *others]))}]"
        if batch != self.photos:
            self.problem = f"its first axis should have {self.photos} entries, one per photo"
            return
        try:
            self.rows = embed(values, self.strategy, self.prefix)
        except InapplicableError as error:
            self.problem = str(error)

    def __str__(self) -> str:
        """Describe shape and columns, or why there are none."""
        what = self.problem if self.rows is None else f"{self.rows.shape[1]} columns"
        return f"the {self.side} is {self.shape}{what and f' ({what})'}"


@contextmanager
def recording(network: nn.Module, records: Sequence[Record]) -> Iterator[None]:
    """Record what passes the layers; the hooks are gone afterwards, also after an exception.

    Args:
        network: The network.
        records: Filled by the forward pass within.
    """
    with ExitStack() as hooks:
        for record in records:
            hooks.enter_context(_hook(network.get_submodule(record.path), record))
        yield


def _hook(layer: nn.Module, record: Record) -> RemovableHandle:
    if record.side == "output":
        return layer.register_forward_hook(lambda _module, _args, output: record.take(output))
    # An input is read before the call, because a layer may overwrite it.
    return layer.register_forward_pre_hook(
        lambda _, args, kwargs: record.take([*args, *kwargs.values()]), with_kwargs=True
    )
