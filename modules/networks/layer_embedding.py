"""Embeddings at layers of a frozen network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from headstart.modules.networks.embedding_strategy import InapplicableError, Prefix, embed
from headstart.modules.networks.normalization import Normalization
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.taps import LOGITS, PENULTIMATE, Strategy, Tap
from headstart.modules.networks.weights import linear_heads
from headstart.output.errors import UserError, reason_of


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


def _hook(layer: nn.Module, record: Record) -> RemovableHandle:
    if record.side == "output":
        return layer.register_forward_hook(lambda _module, _args, output: record.record(output))
    # An input is recorded before the call, because a layer may overwrite it.
    return layer.register_forward_pre_hook(
        lambda _, args, kwargs: record.record([*args, *kwargs.values()]), with_kwargs=True
    )


# Relative to the embedding's norm; sums that a GPU computes in another order differ a thousand times less.
REPEATS_WITHIN = 1e-3


class LayerEmbedding(nn.Module):
    """A frozen network, from photos to embeddings at its layers.

    It stays in evaluation mode, whichever mode is requested. The constructor runs the network twice on a photo of
    noise, beside different ones. A layer that does not fit, or whose values are random or depend on the other photos,
    therefore raises an error before a long computation.

    Args:
        name: The model's name, for messages.
        network: The network.
        taps: The layers; their embeddings are concatenated.
        preprocessing: Preparation of photos for the network.
        forward_args: Further arguments of the network's forward call.

    Attributes:
        widths: Columns of each tap's embedding.

    Raises:
        UserError: The network cannot run on a photo; a layer is unknown; it is not called exactly once in a pass; it
            has no embedding of the width; or its embedding differs between passes or batches.
    """

    def __init__(
        self,
        name: str,
        network: nn.Module,
        taps: Sequence[Tap],
        preprocessing: Preprocessing,
        forward_args: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.name = name
        self.network = network.requires_grad_(False)
        self.preprocessing = preprocessing
        self.normalize = Normalization(preprocessing)
        self.forward_args = dict(forward_args or {})
        self.eval()

        headless = getattr(network, "num_classes", None) == 0
        candidates = [self._find_sides(tap) for tap in taps if not (tap.of_classifier and headless)]
        passes = zip(*self._probe([side for both in candidates for side in both]), strict=True)
        sides = [self._choose([next(passes) for _ in both]) for both in candidates]
        self.sides = [side for side, _ in sides]
        self.widths = [width for _, width in sides]

    @property
    def device(self) -> torch.device:
        """The device of the network; a network without parameters runs on the processor."""
        return next(self.network.parameters(), torch.empty(0)).device

    def train(self, mode: bool = True) -> LayerEmbedding:
        """Stay in evaluation mode, whichever mode is requested."""
        return super().train(False)

    @torch.no_grad()
    def forward(self, photos: Tensor) -> Tensor:
        """Compute embeddings.

        Args:
            photos: Prepared photos, uint8 `[samples, 3, height, width]`.

        Returns:
            float32 `[samples, sum of widths]`.

        Raises:
            UserError: A layer is not called once, or has another shape than before.
        """
        rows = []
        for record, width in zip(self._run(photos, self.sides), self.widths, strict=True):
            self._check_calls(record)
            if record.rows is None or record.rows.shape[1] != width:
                raise UserError(f"{self._layer(record)}: {record}, where two photos gave {width} columns")
            rows.append(record.rows)
        return torch.cat(rows, 1)

    def _find_sides(self, tap: Tap) -> list[Record]:
        path = self._resolve(tap.layer)
        output = Record(path, "output", tap.strategy, tap.width, Prefix.around(self.network, path))
        inputs = replace(output, side="input")
        if tap.layer == PENULTIMATE != path:
            return [inputs]
        return [output] if tap.width is None else [output, inputs]

    def _resolve(self, layer: str) -> str:
        modules = [path for path, _ in self.network.named_modules(remove_duplicate=False) if path]
        if layer in modules:
            return layer
        if layer == LOGITS:
            return ""
        if layer != PENULTIMATE:
            close = "".join(get_close_matches(layer, modules, n=1, cutoff=0.0)) or "none"
            raise UserError(f"model {self.name!r}: the network has no layer {layer!r}; the closest name is {close}")
        heads = list(linear_heads(self.network, lambda: self._probe([])))
        if len(heads) != 1:
            listed = " and ".join(heads) or "none"
            raise UserError(
                f"model {self.name!r}: layer {layer!r} needs one linear classifier, but there is {listed}; name a layer"
            )
        return heads[0]

    @torch.no_grad()
    def _probe(self, sides: Sequence[Record]) -> tuple[list[Record], list[Record]]:
        """Record two passes of a photo of noise, at two places of a batch and with two states of the generators."""
        side, photo = self.preprocessing.crop, self.preprocessing.noise_photo().to(self.device)
        first, second = torch.cat([photo, photo.flip(-1)]), torch.cat([torch.zeros_like(photo), photo])
        try:
            with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
                return self._run(first, sides), self._run(second, sides)
        except Exception as error:  # code of any network
            raise UserError(
                f"model {self.name!r}: the network cannot run on a photo of {side} x {side} pixels with forward_args "
                f"{self.forward_args}: {type(error).__name__}: {reason_of(error)}"
            ) from error

    def _run(self, photos: Tensor, sides: Sequence[Record]) -> list[Record]:
        # Photos arrive in the channels-last layout, in which networks that call view() cannot run.
        images = self.normalize(photos).contiguous()
        records = [replace(side, photos=len(photos)) for side in sides]
        # The hooks are removed also after an exception.
        with ExitStack() as hooks:
            for record in records:
                hooks.enter_context(_hook(self.network.get_submodule(record.path), record))
            self.network(images, **self.forward_args)
        return records

    def _choose(self, sides: list[tuple[Record, Record]]) -> tuple[Record, int]:
        """Return the side of a layer, each recorded twice, that has the embedding, and its columns."""
        first = sides[0][0]
        self._check_calls(first)
        for record, again in sides:
            if record.rows is not None and record.width in {None, record.rows.shape[1]}:
                self._check_repeats(record.rows, again)
                return record, record.rows.shape[1]

        expected = "" if first.width is None else f", and output_dim is {first.width}"
        how = "" if first.strategy is None else f" with embedding {first.strategy!r}"
        raise UserError(f"{self._layer(first)}{how}: {'; '.join(str(record) for record, _ in sides)}{expected}")

    def _check_repeats(self, rows: Tensor, again: Record) -> None:
        same = again.rows is not None and again.rows.shape == rows.shape
        if not same or (again.rows[1] - rows[0]).norm() > REPEATS_WITHIN * rows[0].norm():  # type: ignore[index]
            raise UserError(
                f"{self._layer(again)} returns other values in a second pass of the same photo beside another one; the "
                "network draws random numbers or mixes the photos of a batch (as batch norm without "
                "track_running_stats), so turn that off (forward_args, model_parameters)"
            )

    def _check_calls(self, record: Record) -> None:
        if record.calls != 1:
            raise UserError(
                f"{self._layer(record)} is called {record.calls} times in one forward pass; "
                "name a layer that is called once"
            )

    def _layer(self, record: Record) -> str:
        return f"model {self.name!r}: layer {record.path or LOGITS!r}"
