"""A constructor's arguments cannot ask for a network that is never built, or that fills the memory."""

from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from headstart.modules.networks import build as building
from headstart.modules.networks.build import build, limited_size, require_usual_size
from headstart.modules.networks.spec import LibraryName, NetworkSpec
from headstart.output.errors import UserError
from headstart.tests.material.mistakes import unnamed

VIT, MANY = "vit_tiny_patch16_224", "model_parameters: the network has more than 20,"
TOO_LARGE: list[tuple[LibraryName, str, dict[str, Any], str]] = [
    ("timm", VIT, {"depth": 1_000_000_000}, "model_parameters.depth: 1000000000 is given; whole"),
    ("timm", VIT, {"embed_dim": 300_000}, MANY),
    ("timm", "resnet18", {"layers": [2, 2, 2**60, 2]}, "model_parameters.layers: 1152921504606846976 is given"),
    ("timm", "resnet18", {"block_args": {"groups": -(2**40)}}, "model_parameters.block_args.groups: -1099511627776 is"),
    ("torchvision", "resnet18", {"num_classes": 1_000_000_000}, "model_parameters.num_classes: 1000000000 is given"),
    ("torchvision", "mobilenet_v2", {"width_mult": 1e5}, MANY),
]


def test_networks_that_are_never_built() -> None:
    specs = [(NetworkSpec("x", library, model, None, args), words) for library, model, args, words in TOO_LARGE]
    assert unnamed((partial(build, spec), words) for spec, words in specs) == []


def test_modules_and_weights_are_counted_alone_while_a_network_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "MOST_MODULES", 3)
    monkeypatch.setattr(building, "MOST_PARAMETERS", 12)
    with limited_size("arguments"):
        nn.Sequential(nn.ReLU(), nn.ReLU(), nn.Linear(3, 3))  # 12 weights
    with pytest.raises(UserError, match="more than 3 modules"), limited_size("arguments"):
        nn.Sequential(*(nn.ReLU() for _ in range(4)))
    with pytest.raises(UserError, match="more than 12 weights"), limited_size("arguments"):
        nn.Linear(3, 4)
    nn.Sequential(*(nn.Linear(9, 9) for _ in range(9)))  # nothing is counted any more


def test_the_count_beforehand_takes_no_memory_and_draws_no_numbers() -> None:
    state, made = torch.get_rng_state(), list[nn.Linear]()
    require_usual_size({"width": 9}, lambda: made.append(nn.Linear(60_000, 60_000)), "arguments")
    assert made[0].weight.is_meta
    assert torch.equal(torch.get_rng_state(), state)
    # What cannot be built there is counted later.
    require_usual_size({"depth": 3}, lambda: nn.Linear(2, 2).weight.item(), "arguments")
