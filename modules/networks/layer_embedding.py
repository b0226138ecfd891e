"""Embeddings at layers of a frozen network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from headstart.modules.networks.embedding_strategy import InapplicableError, Prefix, embed
from headstart.modules.networks.normalization import Normalization
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.taps import LOGITS, PENULTIMATE, Tap
from headstart.modules.networks.weights import linear_heads
from headstart.output.errors import UserError, reason_of


class Embedded(NamedTuple):
    """The values at one side of a layer in one call.

    Attributes:
        rows: Their embedding, float32 `[photos, columns]`, None where there is none.
        text: Their shape and the columns, or why there are none.
    """

    rows: Tensor | None
    text: str


class Side(NamedTuple):
    """The output of a layer, or its input.

    Attributes:
        path: Module path of the layer.
        name: Which of the two.
        tap: How its values become one row per photo.
        prefix: The tokens before the patch tokens.
    """

    path: str
    name: Literal["output", "input"]
    tap: Tap
    prefix: Prefix

    def embed(self, passed: object, photos: int) -> Embedded:
        """Embed the first tensor of what passes in a call."""
        parts = passed if isinstance(passed, tuple | list) else [passed]
        values = next((part for part in parts if isinstance(part, Tensor)), None)
        if values is None:
            return Embedded(None, f"the {self.name} is no tensor")

        batch, *others = values.shape or (0,)
        text = f"the {self.name} is [{', '.join(map(str, ['n' if batch == photos else batch, *others]))}]"
        if batch != photos:
            return Embedded(None, f"{text} (its first axis should have {photos} entries, one per photo)")
        try:
            rows = embed(values, self.tap.strategy, self.prefix)
        except InapplicableError as error:
            return Embedded(None, f"{text} ({error})")
        return Embedded(rows, f"{text} ({rows.shape[1]} columns)")

    def follow(self, network: nn.Module, photos: int, calls: list[Embedded]) -> RemovableHandle:
        """Embed what passes in every call of the layer, until the handle is removed."""
        layer = network.get_submodule(self.path)
        if self.name == "output":
            return layer.register_forward_hook(lambda _module, _args, output: calls.append(self.embed(output, photos)))
        # An input is embedded before the call, because a layer may overwrite it.
        return layer.register_forward_pre_hook(
            lambda _, args, kwargs: calls.append(self.embed([*args, *kwargs.values()], photos)), with_kwargs=True
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
        chosen = [self._choose(both, [next(passes) for _ in both]) for both in candidates]
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
        for side, width, calls in zip(self.sides, self.widths, self._run(photos, self.sides), strict=True):
            embedded = self._only(side, calls)
            if embedded.rows is None or embedded.rows.shape[1] != width:
                raise UserError(f"{self._layer(side)}: {embedded.text}, where two photos gave {width} columns")
            rows.append(embedded.rows)
        return torch.cat(rows, 1)

    def _find_sides(self, tap: Tap) -> list[Side]:
        path = self._resolve(tap.layer)
        output = Side(path, "output", tap, Prefix.around(self.network, path))
        inputs = output._replace(name="input")
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
    def _probe(self, sides: Sequence[Side]) -> tuple[list[list[Embedded]], list[list[Embedded]]]:
        """Follow two passes of a photo of noise, at two places of a batch and with two states of the generators."""
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

    def _run(self, photos: Tensor, sides: Sequence[Side]) -> list[list[Embedded]]:
        """Run the network, and return what passed at each side, call by call."""
        # Photos arrive in the channels-last layout, in which networks that call view() cannot run.
        images = self.normalize(photos).contiguous()
        calls = [list[Embedded]() for _ in sides]
        # The hooks are removed also after an exception.
        with ExitStack() as hooks:
            for side, own in zip(sides, calls, strict=True):
                hooks.enter_context(side.follow(self.network, len(photos), own))
            self.network(images, **self.forward_args)
        return calls

    def _choose(
        self, sides: Sequence[Side], passes: Sequence[tuple[list[Embedded], list[Embedded]]]
    ) -> tuple[Side, int]:
        """Return the side of a layer that has the embedding, and its columns, by its calls in two passes."""
        tap = sides[0].tap
        embedded = [self._only(side, first) for side, (first, _) in zip(sides, passes, strict=True)]
        for side, (rows, _), (_, second) in zip(sides, embedded, passes, strict=True):
            if rows is not None and tap.width in {None, rows.shape[1]}:
                self._check_repeats(side, rows, second)
                return side, rows.shape[1]

        expected = "" if tap.width is None else f", and output_dim is {tap.width}"
        how = "" if tap.strategy is None else f" with embedding {tap.strategy!r}"
        raise UserError(f"{self._layer(sides[0])}{how}: {'; '.join(text for _, text in embedded)}{expected}")

    def _check_repeats(self, side: Side, rows: Tensor, second: Sequence[Embedded]) -> None:
        again = second[0].rows if second else None
        is_same = again is not None and again.shape == rows.shape
        if not is_same or (again[1] - rows[0]).norm() > REPEATS_WITHIN * rows[0].norm():  # type: ignore[index]
            raise UserError(
                f"{self._layer(side)} returns other values in a second pass of the same photo beside another one; the "
                "network draws random numbers or mixes the photos of a batch (as batch norm without "
                "track_running_stats), so turn that off (forward_args, model_parameters)"
            )

    def _only(self, side: Side, calls: Sequence[Embedded]) -> Embedded:
        """Return the values of the only call of a layer in a pass."""
        if len(calls) != 1:
            raise UserError(
                f"{self._layer(side)} is called {len(calls)} times in one forward pass; "
                "name a layer that is called once"
            )
        return calls[0]

    def _layer(self, side: Side) -> str:
        return f"model {self.name!r}: layer {side.path or LOGITS!r}"
