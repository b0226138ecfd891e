"""Embedding strategies: how the values of a layer become one row per photo."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from headstart.modules.networks.taps import Strategy

SHAPES = {4: "a spatial map", 3: "a token sequence", 2: "a vector"}
DEFAULT_STRATEGIES: dict[int, Strategy] = {4: "pool", 3: "mean", 2: "flatten"}
CLASS_TOKENS = ("cls_token", "class_token", "class_embedding")


class InapplicableError(ValueError):
    """A strategy makes no sense for a shape; the message says why."""


@dataclass(frozen=True)
class Prefix:
    """The tokens that a network puts before the patch tokens.

    Args:
        count: How many there are: a class token, register tokens.
        has_class_token: Whether the first one is a class token.
        patches: Number of patch tokens, where the network defines it: a sequence of that length has no prefix yet.
    """

    count: int = 0
    has_class_token: bool = False
    patches: int | None = None

    @classmethod
    def around(cls, network: nn.Module, layer: str) -> Prefix:
        """Find the prefix that the outermost module around a layer declares.

        Args:
            network: The network.
            layer: Module path of the layer.

        Returns:
            The prefix by `num_prefix_tokens` and `cls_token`, as in timm's networks. Otherwise a class token where
            there is a parameter for one, as in the vision transformers of torchvision and open_clip; else none.
        """
        parts = layer.split(".")
        for depth in range(len(parts) + 1):
            module = network.get_submodule(".".join(parts[:depth]))
            patches = getattr(getattr(module, "patch_embed", None), "num_patches", None)
            count = getattr(module, "num_prefix_tokens", None)
            if isinstance(count, int):
                return cls(count, count > 0 and getattr(module, "cls_token", module) is not None, patches)
            if any(isinstance(getattr(module, name, None), Tensor) for name in CLASS_TOKENS):
                return cls(1, True, patches)
        return cls()

    def within(self, tokens: int) -> Prefix:
        """Return the prefix of a sequence with a number of tokens."""
        return Prefix() if tokens == self.patches else self


def embed(values: Tensor, strategy: Strategy | None, prefix: Prefix) -> Tensor:
    """Compute one row per photo from the values of a layer.

    | strategy | map `[n, c, h, w]` or `[n, h, w, c]` | tokens `[n, t, c]` | vector `[n, c]` |
    | --- | --- | --- | --- |
    | pool | mean over positions, `[n, c]` | mean without prefix tokens, `[n, c]` | error |
    | mean | mean over positions, `[n, c]` | mean over all tokens, `[n, c]` | error |
    | cls | error | first token, `[n, c]` | error |
    | flatten | `[n, c * h * w]` | `[n, t * c]` | `[n, c]` |

    Args:
        values: A map, tokens or a vector for each photo, the photos along the first axis. Maps are square, as photos
            are. Channels are last where the two axes before the last are equal and the last one differs. `[n, k, k, k]`
            is read with channels first.
        strategy: One of the strategies; None for pool on maps, mean on tokens and flatten on vectors.
        prefix: The tokens before the patch tokens.

    Returns:
        float32 `[n, columns]`, in memory of its own: later layers may overwrite the values of an earlier one.

    Raises:
        InapplicableError: The strategy makes no sense for the shape, or the numbers are complex.
    """
    if values.is_complex():
        raise InapplicableError("complex numbers are no embedding")
    if values.ndim not in SHAPES:
        raise InapplicableError(f"{values.ndim} axes are neither a map, nor tokens, nor a vector")
    strategy = strategy or DEFAULT_STRATEGIES[values.ndim]
    if strategy == "flatten":
        return values.flatten(1).to(torch.float32, copy=True)
    if strategy == "cls":
        return _class_token(values, prefix)
    if values.ndim == 4:
        return values.mean(_positions(values), dtype=torch.float32)
    if values.ndim == 3:
        return _patches(values, prefix if strategy == "pool" else Prefix()).mean(1, dtype=torch.float32)
    raise InapplicableError("a vector has no positions to average")


def _positions(values: Tensor) -> tuple[int, int]:
    _, first, second, last = values.shape
    return (1, 2) if first == second != last else (2, 3)


def _patches(tokens: Tensor, prefix: Prefix) -> Tensor:
    start = prefix.within(tokens.shape[1]).count
    if start >= tokens.shape[1]:
        raise InapplicableError(f"{tokens.shape[1]} tokens, {start} of them before the patches, hold no patch")
    return tokens[:, start:]


def _class_token(values: Tensor, prefix: Prefix) -> Tensor:
    if values.ndim != 3:
        raise InapplicableError(f"{SHAPES[values.ndim]} has no class token")
    if not prefix.within(values.shape[1]).has_class_token:
        raise InapplicableError("the network declares no class token for these tokens (num_prefix_tokens)")
    return values[:, 0].to(torch.float32, copy=True)
