"""Embeddings of the inputs and outputs of layers in a forward pass, recorded by hooks."""

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
    """The values at one side of a layer in one forward pass.

    Args:
        path: Module path of the layer.
        side: Whether the layer's output is recorded, or its input.
        strategy: How the values become one row per photo; None for the shape's usual strategy.
        width: Expected columns, None for any.
        prefix: The tokens before the patch tokens.
        photos: Number of photos in the pass.

    Attributes:
        calls: Number of calls of the layer.
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

    def record(self, passed: object) -> None:
        """Embed the first tensor of the layer's first call."""
        self.calls += 1
        parts = passed if isinstance(passed, tuple | list) else [passed]
        values = next((part for part in parts if isinstance(part, Tensor)), None)
        if self.calls > 1 or values is None:
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
        remark = self.problem if self.rows is None else f"{self.rows.shape[1]} columns"
        return f"the {self.side} is {self.shape}{remark and f' ({remark})'}"


@contextmanager
def recording(network: nn.Module, records: Sequence[Record]) -> Iterator[None]:
    """Record the inputs and outputs of layers within; the hooks are removed afterwards, also after an exception.

    Args:
        network: The network.
        records: The records that the forward pass within fills.
    """
    with ExitStack() as hooks:
        for record in records:
            hooks.enter_context(_hook(network.get_submodule(record.path), record))
        yield


def _hook(layer: nn.Module, record: Record) -> RemovableHandle:
    if record.side == "output":
        return layer.register_forward_hook(lambda _module, _args, output: record.record(output))
    # An input is recorded before the call, because a layer may overwrite it.
    return layer.register_forward_pre_hook(
        lambda _, args, kwargs: record.record([*args, *kwargs.values()]), with_kwargs=True
    )
