"""Embeddings at layers of a frozen network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import torch
from torch import Tensor, nn

from headstart.modules.networks.embedding_strategy import Prefix
from headstart.modules.networks.layer_records import Record, recording
from headstart.modules.networks.normalization import Normalization
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.taps import LOGITS, PENULTIMATE, Tap
from headstart.modules.networks.weights import linear_heads
from headstart.output.errors import UserError, reason_of

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
        passes = zip(*self._probe([side for sides in candidates for side in sides]), strict=True)
        chosen = [self._choose([next(passes) for _ in sides]) for sides in candidates]
        self.sides = [side for side, _ in chosen]
        self.widths = [width for _, width in chosen]

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

    def _probe(self, sides: list[Record]) -> tuple[list[Record], list[Record]]:
        """Record two passes of one photo beside others, with different random numbers where the network uses any."""
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            return self._try_out(sides, lambda photo: photo.flip(-1)), self._try_out(sides, torch.zeros_like)

    @torch.no_grad()
    def _try_out(self, sides: Sequence[Record], beside: Callable[[Tensor], Tensor]) -> list[Record]:
        """Record a pass of a photo of noise and another one."""
        side, photo = self.preprocessing.crop, self.preprocessing.noise_photo().to(self.device)
        try:
            return self._run(torch.cat([photo, beside(photo)]), sides)
        except Exception as error:  # code of any network
            raise UserError(
                f"model {self.name!r}: the network cannot run on a photo of {side} x {side} pixels with forward_args "
                f"{self.forward_args}: {type(error).__name__}: {reason_of(error)}"
            ) from error

    def _run(self, photos: Tensor, sides: Sequence[Record]) -> list[Record]:
        # Photos arrive in the channels-last layout, in which networks that call view() cannot run.
        images = self.normalize(photos).contiguous()
        records = [replace(side, photos=len(photos)) for side in sides]
        with recording(self.network, records):
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
        if not same or (again.rows[0] - rows[0]).norm() > REPEATS_WITHIN * rows[0].norm():  # type: ignore[index]
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
