"""Networks as a registry's entries name them, and photos of noise for them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from headstart.contract.documents import Registry
from headstart.contract.schema import ModelEntry, Preprocess
from headstart.modules.networks.build import build
from headstart.modules.networks.spec import NetworkSpec, prefix_model_errors


def name_network(
    name: str,
    source: str = "torchvision",
    weights: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    seed: int = 0,
    allowed: Sequence[str] = (),
    folder: Path = Path(),
    layer: str = "penultimate",
) -> NetworkSpec:
    preprocess = Preprocess(mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5), resize=32, crop=32)
    entry = ModelEntry.model_construct(
        model_name=name,
        source=source,
        weights=weights,
        layer=layer,
        model_parameters=parameters or {},
        preprocess=preprocess,
    )
    return Registry(folder / "registry.json", {name: entry}, "").networks([name], seed, allowed)[name]


def build_network(name: str, source: str = "torchvision", weights: str | None = None, **fields: Any) -> nn.Module:
    network = name_network(name, source, weights, **fields)
    with prefix_model_errors(name):
        return build(network)[0]


def random_photos(count: int = 3, side: int = 32) -> Tensor:
    """Return photos of noise, uint8 `[count, 3, side, side]`, always the same."""
    generator = torch.Generator().manual_seed(count)
    return torch.randint(256, (count, 3, side, side), generator=generator, dtype=torch.uint8)
